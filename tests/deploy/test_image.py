"""The image of docker/Dockerfile, as it was built: what is in it and what is not, and how it runs."""

import os
import re
import subprocess

import pytest

from deploy import containers
from deploy.containers import BRIDGE, inspect, memory_kib, output, podman, process_of
from e2e.conftest import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import
from kit.clock import wait_until
from kit.readme import ROOT
from kit.redis_server import Redis

pytestmark = pytest.mark.skipif(containers.why_not() is not None, reason=str(containers.why_not()))
BESIDE_LIBRARIES_MAX = 40 << 20
ANON_MAX_KIB = 3 << 10


@pytest.fixture(scope="module")
def image():
    return containers.images()[0]


@pytest.fixture(scope="module")
def files(image):
    """{path: size} of all that is in the image."""
    work = output("from", "--pull-never", image, program="buildah")
    try:
        root = output("mount", work, program="buildah")
        return {os.path.relpath(os.path.join(folder, name), root):
                os.lstat(os.path.join(folder, name)).st_size
                for folder, _, names in os.walk(root) for name in names}
    finally:
        podman("rm", work, program="buildah")


def is_library(path):
    return bool(re.search(r"\.so(\.|$)", path))


def test_it_is_small(files):
    total = sum(files.values())
    libraries = sum(size for path, size in files.items() if is_library(path))
    print(f"image: {total / 1e6:.1f} MB, of which libraries {libraries / 1e6:.1f} MB")
    assert total - libraries <= BESIDE_LIBRARIES_MAX


def test_there_is_no_shell_and_nothing_to_install_with(files):
    programs = {os.path.basename(p) for p in files if re.match(r"(usr/)?(s?bin|local/s?bin)/", p)}
    assert programs == {"gavel", "gavelctl"}
    for name in ("busybox", "dpkg", "apt", "python", "perl"):
        assert not [p for p in files if os.path.basename(p).startswith(name) and "status.d" not in p]


def test_it_has_the_libraries_it_needs_and_no_others(files, image):
    have = {os.path.basename(p) for p in files if is_library(p)}
    traced = podman("run", "--rm", "--entrypoint", next("/" + p for p in files if "/ld-linux" in p),
                    image, "--list", "/usr/bin/gavel").stdout.decode()
    need = {os.path.basename(line.split()[0]) for line in traced.splitlines()
            if ".so" in line and "vdso" not in line}
    assert need == have
    # Each came with its licence, and is known to scanners.
    assert len([p for p in files if p.startswith("usr/share/doc/") and p.endswith("copyright")]) > 10
    assert "etc/ssl/certs/ca-certificates.crt" in files


def test_labels_user_and_entry_point(image):
    config = inspect("image", image)["Config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/usr/bin/gavel"] and config["Cmd"] == ["run"]
    labels = {k.removeprefix("org.opencontainers.image."): v for k, v in config["Labels"].items()}
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        version = re.search(r"project\(gavel VERSION (\S+)", f.read()).group(1)
    assert labels["version"] == version and labels["title"] == "gavel"
    assert {"description", "licenses", "revision", "base.name"} <= set(labels)
    told = output("run", "--rm", image, "--version")
    assert told.startswith(f"gavel {version} ({labels['revision']})")


def test_it_builds_without_a_warning_against_newer_libraries():
    with open(os.path.join(ROOT, "build", "logs", "prepare.log"), encoding="utf-8",
              errors="replace") as f:
        assert not [line for line in f if re.search(r"\.[ch]:\d+:\d+: warning:", line)]


def test_compose_s_memory_folder_and_read_only_root(image, folder, closing):
    """It leads, as an unprivileged user without capabilities, on a root that cannot be written to."""
    redis = closing(Redis(folder + "/redis", ["--bind", "0.0.0.0", "--protected-mode", "no"]))
    name = f"gavel-test-{os.getpid()}"
    # podman alone would put a tmpfs over /run as well, with root's folders in it.
    podman("run", "-d", "--name", name, "--read-only", "--read-only-tmpfs=false", "--cap-drop",
           "ALL", "--security-opt", "no-new-privileges", "--tmpfs", "/run/gavel", image, "run",
           "--store", f"redis://{BRIDGE}:{redis.port}", "--election", "a", "--ttl", "2s")
    try:
        def leads():
            assert inspect("container", name)["State"]["Running"], podman("logs", name).stderr
            return podman("exec", name, "/usr/bin/gavel", "check", check=False).returncode == 0
        wait_until(leads, 60, "the container leads")
        pid = process_of(name)
        memory = memory_kib(pid)
        print(f"image: RssAnon {memory['RssAnon']} KiB, VmRSS {memory['VmRSS']} KiB while leading")
        assert memory["RssAnon"] < ANON_MAX_KIB
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            status = f.read()
        assert re.search(r"^Uid:\s65532\s", status, re.M)
        assert re.search(r"^CapEff:\s0+$", status, re.M)
        # What compose's health check asks.
        podman("exec", name, "/usr/bin/gavel", "wait", "--for", "ready", "--timeout", "2s")
        podman("stop", "-t", "20", name)
        assert inspect("container", name)["State"]["ExitCode"] == 0
        log = podman("logs", name)
        assert b'"drained"' in log.stdout + log.stderr
    finally:
        subprocess.run(["podman", "rm", "-f", "-t", "0", name], env=containers.environment(),
                       capture_output=True, check=False)
