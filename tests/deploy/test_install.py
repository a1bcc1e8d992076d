"""`cmake --install` into a DESTDIR, what --version tells, and the systemd unit that is installed."""

import os
import re
import shutil
import subprocess

import pytest

from e2e.conftest import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import
from kit.readme import README, ROOT
from kit.sidecar import BIN, Sidecar, run

EXPOSURE_MAX = 2.5


@pytest.fixture(scope="module")
def destination(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("dest"))
    done = subprocess.run(["cmake", "--install", BIN], env={**os.environ, "DESTDIR": path},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return path + "/usr/local"


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(f, n), folder)
                  for f, _, names in os.walk(folder) for n in names)


def test_all_is_installed(destination):
    files = files_below(destination)
    for name in ("bin/gavel", "bin/gavelctl", "include/gavel_page.h", "share/doc/gavel/LICENSE",
                 "lib/systemd/system/gavel@.service", "lib/sysusers.d/gavel.conf",
                 "share/gavel/sql/gavel_election.sql", "share/gavel/monitoring/alerts.yaml",
                 "share/gavel/monitoring/dashboard.json", "share/gavel/operations.md",
                 "share/gavel/kubernetes/base/deployment.yaml"):
        assert name in files, name
    assert [f for f in files if f.endswith("libgavel_page.a")]
    assert not [f for f in files if f.startswith("/") or "test" in os.path.basename(f)
                and f != "share/gavel/monitoring/alerts_test.yaml"]


def test_the_installed_program_runs(destination, folder, closing):
    a = closing(Sidecar(folder, f"local:{folder}/state", options=("--mode", "efficiency"),
                        binary=destination + "/bin/gavel"))
    a.wait_leader()
    done = run(destination + "/bin/gavelctl", "check", "--socket", a.socket_path)
    assert done.returncode == 0 and done.stdout.startswith("leader ")


def test_an_application_builds_against_what_is_installed(destination, tmp_path):
    source = tmp_path / "reader.c"
    source.write_text('#include <gavel_page.h>\n#include <stddef.h>\nint main(void) {\n'
                      '    struct gavel_page *page = gavel_page_create("/nowhere/a.lease");\n'
                      '    struct gavel_page_answer answer;\n'
                      '    return page != NULL && gavel_page_check(page, &answer);\n}\n')
    (library,) = [f for f in files_below(destination) if f.endswith("libgavel_page.a")]
    built = subprocess.run(["cc", "-Wall", "-Werror", "-I", destination + "/include", "-o",
                            tmp_path / "reader", source, os.path.join(destination, library)],
                           capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert subprocess.run([tmp_path / "reader"]).returncode == 0


def test_version_tells_what_it_was_built_from(destination):
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        version = re.search(r"project\(gavel VERSION (\S+)", f.read()).group(1)
    told = run(destination + "/bin/gavel", "--version").stdout
    assert re.fullmatch(rf"gavel {re.escape(version)} \(\w+\)\nbuilt with \S+ [\d.]+, \w+, \w+\n"
                        r"against libuv [\d.]+, hiredis [\d.]+, libpq [\d.]+, libmicrohttpd [\d.]+, "
                        r"OpenSSL [\d.]+, jansson [\d.]+\n", told), told
    told = run(destination + "/bin/gavelctl", "--version").stdout
    assert told.startswith(f"gavelctl {version} (") and "against" not in told


def unit(destination):
    with open(destination + "/lib/systemd/system/gavel@.service", encoding="utf-8") as f:
        return f.read()


needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


@pytest.fixture
def unit_file(destination, tmp_path):
    """The unit with the program where it is in this test."""
    text = unit(destination)
    assert "ExecStart=/usr/local/bin/gavel run\n" in text
    path = tmp_path / "gavel@.service"
    path.write_text(text.replace("/usr/local/bin/gavel", destination + "/bin/gavel"))
    return path


@needs_systemd
def test_the_unit_is_right(unit_file):
    done = subprocess.run(["systemd-analyze", "verify", "--man=no",
                           str(unit_file).replace("@.", "@billing.")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr


@needs_systemd
def test_a_wrong_unit_is_found(unit_file):
    unit_file.write_text(unit_file.read_text().replace("WatchdogSec=30s", "WatchdogSec=often"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no",
                           str(unit_file).replace("@.", "@billing.")],
                          capture_output=True, text=True, timeout=60)
    assert "Failed to parse" in done.stderr


@needs_systemd
def test_the_unit_is_confined(unit_file):
    done = subprocess.run(["systemd-analyze", "security", "--offline=true",
                           f"--threshold={int(EXPOSURE_MAX * 10)}", "--no-pager", str(unit_file)],
                          capture_output=True, text=True, timeout=60)
    exposure = float(re.search(r"Overall exposure level.*: ([\d.]+)", done.stdout).group(1))
    print(f"systemd: exposure {exposure}")
    assert done.returncode == 0 and exposure <= EXPOSURE_MAX


def allowed_calls(text):
    """The system calls that the unit's filters leave."""
    def members(name):
        done = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name],
                              capture_output=True, text=True, timeout=30)
        found = set()
        for line in (x.strip() for x in done.stdout.splitlines()[1:]):
            if line.startswith("@"):
                found |= members(line)
            elif line and not line.startswith("#"):
                found.add(line)
        return found
    allowed = set()
    for words in re.findall(r"^SystemCallFilter=(.*)$", text, re.M):
        for name in words.lstrip("~").split():
            allowed = allowed - members(name) if words.startswith("~") else allowed | members(name)
    return allowed


@needs_systemd
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
@pytest.mark.parametrize("kind", ["redis", "local"])
def test_gavel_makes_no_system_call_that_the_unit_forbids(destination, folder, closing, request,
                                                          kind):
    store = request.getfixturevalue("redis").url if kind == "redis" else f"local:{folder}/state"
    trace = os.path.join(folder, "trace")
    a = closing(Sidecar(folder, store, options=("--ttl", "1s", "--mode", "efficiency"),
                        binary=destination + "/bin/gavel",
                        prefix=("strace", "-f", "-qq", "-o", trace)))
    a.wait_leader(timeout=30)
    a.request("/v1/elections?")
    assert a.probe("/metrics").status == 200
    a.ask("resign a", timeout=30)
    assert a.state() != "leader"
    with open(f"/proc/{a.pid}/task/{a.pid}/children", encoding="ascii") as f:
        os.kill(int(f.read().split()[0]), 15)
    assert a.wait() == 0
    with open(trace, encoding="utf-8", errors="replace") as f:
        # What the filter would see: all after the program was started.
        made = set(re.findall(r"^\d+ +(\w+)\(", f.read(), re.M)) - {"execve"}
    allowed = allowed_calls(unit(destination))
    assert len(made) > 20 and len(allowed) > 200
    assert made <= allowed, made - allowed


def test_environment_of_the_unit_is_a_configuration(destination, tmp_path):
    """What its comment shows is accepted, with the folders that systemd makes."""
    lines = re.findall(r"^#     (GAVEL_\w+)=(\S+)", unit(destination), re.M)
    assert [k for k, _ in lines] == ["GAVEL_STORE", "GAVEL_ELECTION"]
    done = run(destination + "/bin/gavel", "config",
               env={**dict(lines), "RUNTIME_DIRECTORY": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "SECRET" not in done.stdout


def test_environment_of_the_readme_is_a_configuration(destination, tmp_path):
    with open(README, encoding="utf-8") as f:
        here = re.search(r"/etc/gavel/billing\.env <<END\n(.*?)    END\n", f.read(), re.S).group(1)
    lines = dict(line.strip().split("=", 1) for line in here.splitlines())
    assert set(lines) == {"GAVEL_STORE", "GAVEL_ELECTION"}
    done = run(destination + "/bin/gavel", "config",
               env={**lines, "RUNTIME_DIRECTORY": str(tmp_path)})
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


def test_a_second_instance_is_given_other_ports(destination):
    """With the ports that its comment gives to the second one."""
    second = re.search(r"(GAVEL_HTTP)=localhost:(\d+) and (GAVEL_HEALTH)=:(\d+)", unit(destination))
    assert second and {second.group(2), second.group(4)}.isdisjoint({"4040", "4041"})
    assert second.group(2) != second.group(4)
    assert "StartLimitIntervalSec=0" in unit(destination).split("[Service]")[0]
