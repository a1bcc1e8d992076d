"""Applications that were written for the old Kubernetes leader-elector: its flags, its answer, and the
way in which they poll it."""

import re
import shutil
import subprocess
import threading

import pytest

from e2e.conftest import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import
from kit.clock import MS, boottime_ns, wait_until
from kit.ports import free_port
from kit.readme import ROOT
from kit.sidecar import GAVEL, Sidecar, run

LATE_NS = 25 * MS


class OldFlags(Sidecar):
    """Started as the old image was."""
    def command(self):
        return [GAVEL, f"--election={self.elections[0]}", f"--id={self.identity}",
                "--election-namespace=old", f"--http={self.http}", "--store", self.store,
                "--socket", self.socket_path, "--health", ":0", "--page-dir", "off", *self.options]


class Poller:
    """The application: what it took for the leader, and when."""

    def __init__(self, port, every_ms):
        self.seen = []
        self.process = subprocess.Popen(
            ["node", f"{ROOT}/tests/deploy/poller.js", str(port), str(every_ms)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.seen.append((boottime_ns(), line.strip()))

    def last(self):
        return self.seen[-1][1] if self.seen else ""

    def when(self, text, after=0):
        return next((t for t, line in self.seen if line == text and t > after), None)

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def old(folder, closing, redis):
    def start(identity, *options):
        return closing(OldFlags(folder, redis.url, identity, ("example",), options,
                                http=f"localhost:{free_port()}"))
    return start


def test_the_old_flags_have_their_old_meaning(old, redis):
    a = old("pod-a", "--ttl=2s")
    a.wait_leader()
    answer = a.request("/")
    assert answer.status == 200 and answer.json() == {"name": "pod-a"}
    assert answer.headers["content-type"].startswith("application/json")
    status = a.status()
    assert status["namespace"] == "old" and status["election"] == "example"
    assert redis.record("example", "old")
    for host in ("127.0.0.1", "::1"):  # "localhost" is either
        assert a.request("/", host=host).json() == {"name": "pod-a"}


def test_durations_are_written_as_before():
    shown = run(GAVEL, "config", "--store=redis://localhost", "--election=example", "--ttl=1m30s",
                "--http=0.0.0.0:4040", "--socket", "off", "--page-dir", "off")
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"ttl\s.*(1m30s|90s)", shown.stdout), shown.stdout


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_pollers_follow_a_handover_and_a_crash(old, closing, timely):
    """Nobody takes itself for the leader after another has begun to lead, as long as the interval of
    its polls is within --valid-for."""
    every_ms = 250
    flags = ("--ttl=3s", "--valid-for=500ms", "--drain=2s")
    a = old("pod-a", *flags)
    a.wait_leader()
    b = old("pod-b", *flags)
    pollers = {s.identity: closing(Poller(s.http_port, every_ms)) for s in (a, b)}
    for poller in pollers.values():
        wait_until(lambda p=poller: p.last() == "leader is pod-a", 30)

    begun = boottime_ns()
    a.ask("resign example", timeout=20)
    b.wait_leader()
    wait_until(lambda: pollers["pod-b"].last() == "leader is pod-b", 30)
    wait_until(lambda: pollers["pod-a"].last() == "leader is pod-b", 30)
    # pod-a's own application had put its name away before pod-b's put its own there.
    other = next(t for t, line in pollers["pod-a"].seen if t > begun and line != "leader is pod-a")
    # (A poller that the host did not let run in time tells nothing.)
    assert other <= pollers["pod-b"].when("leader is pod-b", begun) + every_ms * MS or \
        timely.worst_ns(timely.began, boottime_ns()) > LATE_NS

    b.kill9()
    a.wait_leader(timeout=20)
    wait_until(lambda: pollers["pod-a"].last() == "leader is pod-a", 30)
    assert "problem" in pollers["pod-b"].last()


def test_an_old_deployment_says_what_to_remove(folder):
    """The two flags that have no meaning any more are named in the error."""
    for flag in ("--use-cluster-credentials", "--initial-wait=10s"):
        done = run(GAVEL, "run", "--store=redis://localhost", "--election=x", flag)
        assert done.returncode == 64 or done.returncode == 78
        assert flag.split("=")[0] in done.stderr
