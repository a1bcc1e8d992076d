"""docker/compose.yaml without Docker: it parses, names our images and official ones, and its parts fit each
other; and the demonstration's application and sidecars as processes, on Redis and PostgreSQL."""

import os
import re
import subprocess
import sys
import threading

import pytest
import yaml

from e2e.conftest import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import
from kit.clock import wait_until
from kit.readme import ROOT
from kit.sidecar import GAVEL, run

DOCKER = os.path.join(ROOT, "docker")
SERVICE_KEYS = set("image build restart read_only cap_drop security_opt stop_grace_period depends_on "
                   "healthcheck environment volumes group_add hostname command ports".split())


@pytest.fixture(scope="module")
def compose():
    with open(os.path.join(DOCKER, "compose.yaml"), encoding="utf-8") as f:
        return yaml.safe_load(f)


def test_images_are_ours_or_official(compose):
    for name, service in compose["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        image = service["image"]
        ours = image.startswith("localhost/gavel")
        assert ours or re.match(r"docker\.io/(library/(redis|postgres)|prom/prometheus):", image)
        assert ours == ("build" in service), "ours are built, never pulled"
        if ours:
            path = os.path.join(DOCKER, service["build"]["context"], service["build"]["dockerfile"])
            assert os.path.exists(path)


def test_each_application_shares_a_folder_with_its_sidecar(compose):
    services = compose["services"]
    folders = set()
    for i in "123":
        app, gavel = services["app-" + i], services["gavel-" + i]
        assert app["volumes"] == gavel["volumes"] == [f"run-{i}:/run/gavel"]
        folders.add(f"run-{i}")
        assert app["depends_on"]["gavel-" + i] == {"condition": "service_healthy"}
        assert app["group_add"] == ["65532"] and app["hostname"] == "app-" + i
        assert gavel["environment"]["GAVEL_IDENTITY"] == "app-" + i
    assert folders == set(compose["volumes"])
    for volume in compose["volumes"].values():
        assert volume["driver_opts"]["o"].startswith("uid=65532,gid=65532,mode=0770")


def test_files_that_are_mounted_exist(compose):
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or os.path.isfile(os.path.join(DOCKER, source))


def test_gavel_accepts_the_configuration(compose, tmp_path):
    for i in "123":
        given = compose["services"]["gavel-" + i]["environment"]
        done = run(GAVEL, "config", env={**given, "RUNTIME_DIRECTORY": str(tmp_path)})
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


def test_prometheus_scrapes_what_is_there(compose):
    with open(os.path.join(DOCKER, "demo", "prometheus.yaml"), encoding="utf-8") as f:
        config = yaml.safe_load(f)
    targets = config["scrape_configs"][0]["static_configs"][0]["targets"]
    assert [t.removesuffix(":4041") for t in targets] == \
        [s for s in compose["services"] if s.startswith("gavel-")]
    mounted = [v.split(":")[1] for v in compose["services"]["prometheus"]["volumes"]]
    assert config["rule_files"] == [mounted[1]] and mounted[0] == "/etc/prometheus/prometheus.yml"


class App:
    """The demonstration's application; in the place of psycopg2 a module that asks psql."""
    MODULE = '''
import json, re, subprocess
class _Cursor:
    def __init__(self, url): self.url = url
    def execute(self, text, values):
        text = re.sub(r"%\\((\\w+)\\)s", lambda m: "'" + str(values[m.group(1)]) + "'", text)
        done = subprocess.run(["psql", "-XAtq", "-d", self.url, "-c", text], check=True,
                              capture_output=True, text=True)
        self.rows = done.stdout.split()
    def fetchone(self): return [self.rows[0]] if self.rows else None
class _Connection:
    autocommit = False
    def __init__(self, url): self.url = url
    def cursor(self): return _Cursor(self.url)
def connect(url, connect_timeout): return _Connection(url)
'''

    def __init__(self, folder, sidecar, url):
        os.makedirs(folder + "/modules", exist_ok=True)
        with open(folder + "/modules/psycopg2.py", "w", encoding="utf-8") as f:
            f.write(self.MODULE)
        self.lines = []
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(DOCKER, "demo", "app.py")], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "GAVEL_SOCKET": sidecar.socket_path, "DATABASE_URL": url,
                 "HOSTNAME": sidecar.identity, "EVERY_S": "0.1",
                 "PYTHONPATH": folder + "/modules"})
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def wrote(self):
        """[(value, token)]"""
        found = [re.search(r"wrote (\d+) token (\d+)", line) for line in self.lines]
        return [(int(m.group(1)), int(m.group(2))) for m in found if m]

    def close(self):
        self.process.kill()
        self.process.wait()


def test_the_leader_s_writes_are_fenced(folder, closing, start, postgres):
    with open(os.path.join(DOCKER, "demo", "table.sql"), encoding="utf-8") as f:
        postgres.sql(f.read() + "GRANT ALL ON counter TO PUBLIC;")
    sidecars = [start(f"app-{i}", "--ttl", "2s") for i in "123"]
    apps = {s.identity: closing(App(folder, s, postgres.url)) for s in sidecars}

    def writer():
        return next((s for s in sidecars if len(apps[s.identity].wrote()) > 2), None)
    first = wait_until(writer, 30, "one writes")
    # The whole replica dies: application and sidecar.
    apps[first.identity].close()
    first.kill9()
    sidecars.remove(first)
    second = wait_until(writer, 30, "another one writes")
    # Handed over: the application stops and says so.
    second.ask("resign a", timeout=30)
    sidecars.remove(second)
    third = wait_until(writer, 30, "the third writes")
    assert [line for line in apps[second.identity].lines if "stops, token" in line]

    order = [apps[s.identity].wrote() for s in (first, second, third)]
    tokens = [{token for _, token in wrote} for wrote in order]
    assert all(len(t) == 1 for t in tokens)
    a, b, c = (t.pop() for t in tokens)
    assert a < b < c
    values = [value for wrote in order for value, _ in wrote]
    assert values == sorted(values) and len(values) == len(set(values))
    # A write of the first one that comes late is refused.
    late = postgres.sql(f"UPDATE counter SET value = 0 WHERE id = 1 AND fence_token <= {a} "
                        "RETURNING value")
    assert not late
