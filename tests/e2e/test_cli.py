"""The command line that talks to a sidecar: what it prints, and its exit status."""

import json
import os
import re
import subprocess

import pytest

from kit.clock import S, boottime_ns, wait_until
from kit.sidecar import BIN, GAVEL, GAVELCTL, clean_env, run


@pytest.fixture
def leader(start):
    a = start("pod-a", "--mode", "efficiency")
    a.wait_leader()
    return a


@pytest.fixture
def follower(leader, start):
    b = start("pod-b", "--mode", "efficiency")
    b.wait_state("follower")
    return b


@pytest.mark.parametrize("program", [GAVEL, GAVELCTL])
def test_check(leader, follower, folder, program):
    yes = run(program, "check", "--socket", leader.socket_path)
    assert yes.returncode == 0
    words = yes.stdout.split()
    assert words[0] == "leader" and int(words[1]) == leader.check().token
    assert run(program, "check", "a", "--socket", leader.socket_path).returncode == 0
    no = run(program, "check", "--socket", follower.socket_path)
    assert no.returncode == 1 and no.stdout == "follower pod-a\n"
    gone = run(program, "check", "--socket", folder + "/nobody.sock")
    assert gone.returncode == 2 and folder + "/nobody.sock" in gone.stderr
    assert run(program, "check", "--frobnicate").returncode == 64
    assert run(program, "check", "a", "b", "c").returncode == 64


def test_the_socket_is_found_where_the_sidecar_puts_it(folder):
    os.mkdir(folder + "/run")
    env = {"RUNTIME_DIRECTORY": folder + "/run"}
    with subprocess.Popen([GAVEL, "run", "--store", f"local:{folder}/locks", "--election", "a", "--mode",
                           "efficiency", "--http", "off", "--health", "off"],
                          env=clean_env(env), stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: run(GAVEL, "check", env=env).returncode == 0, 10)
            assert run(GAVELCTL, "check", env=env).returncode == 0
            assert os.listdir(folder + "/run")
        finally:
            process.terminate()
            process.wait(15)


def test_wait(leader, follower, folder):
    ctl = GAVELCTL
    assert run(ctl, "wait", "--socket", leader.socket_path, "--timeout", "5s").returncode == 0
    assert run(ctl, "wait", "--for", "ready", "--socket", follower.socket_path,
               "--timeout", "5s").returncode == 0
    began = boottime_ns()
    late = run(ctl, "wait", "--for", "leader", "--socket", follower.socket_path,
               "--timeout", "700ms")
    assert late.returncode == 1 and 0.7 * S <= boottime_ns() - began < 5 * S
    gone = run(ctl, "wait", "--socket", folder + "/nobody.sock", "--timeout", "300ms")
    assert gone.returncode == 2


def test_wait_sees_the_change(leader, follower):
    with subprocess.Popen([GAVELCTL, "wait", "--for", "leader", "--socket",
                           follower.socket_path, "--timeout", "20s"], env=clean_env()) as waiting:
        assert waiting.poll() is None
        leader.terminate()
        assert waiting.wait(20) == 0
    assert follower.leads()


def test_status(leader, follower, folder):
    words = run(GAVELCTL, "status", "--socket", follower.socket_path)
    assert words.returncode == 0 and "follower" in words.stdout and "pod-a" in words.stdout
    as_json = run(GAVELCTL, "status", "--json", "--socket", leader.socket_path)
    assert as_json.returncode == 0
    answer = json.loads(as_json.stdout)
    answer = answer[0] if isinstance(answer, list) else answer
    assert answer["state"] == "leader" and answer["token"] == leader.check().token
    assert run(GAVELCTL, "status", "--socket", folder + "/nobody.sock").returncode == 2


def test_resign(leader, follower, folder):
    done = run(GAVELCTL, "resign", "--socket", leader.socket_path)
    assert done.returncode == 0
    wait_until(follower.leads, 5)
    assert not leader.leads()
    assert run(GAVELCTL, "resign", "--socket", folder + "/nobody.sock").returncode == 2


def test_resign_of_a_follower(follower, leader):
    done = run(GAVELCTL, "resign", "--socket", follower.socket_path)
    assert done.returncode == 0
    assert leader.leads()


def test_watch(leader, follower):
    with follower.connection() as s:
        s.sendall(b"watch\n")
        lines = s.makefile("r")
        assert lines.readline() == "follower pod-a\n"
        leader.terminate()
        for line in lines:
            if line.startswith("leader "):
                break
        token = int(line.split()[1])
        first = int(line.split()[3])
        assert token == follower.check().token
        again = lines.readline()  # without any change: half the validity later
        assert again.startswith(f"leader {token} ") and int(again.split()[3]) > first


def test_version_and_help():
    for program in (GAVEL, GAVELCTL):
        version = run(program, "--version")
        assert version.returncode == 0 and re.search(r"\d+\.\d+\.\d+", version.stdout)
        helps = run(program, "--help")
        assert helps.returncode == 0 and "check" in helps.stdout
        assert run(program).returncode == 64
        assert run(program, "frobnicate").returncode == 64
    assert "--store" in run(GAVEL, "run", "--help").stdout


def test_flags_alone_mean_run(folder):
    done = run(GAVEL, "--election=x", "--store", "local:" + folder, "--ttl=no")
    assert done.returncode == 78 and "gavel run" in done.stderr and "--ttl" in done.stderr
    assert run(GAVEL, "--frobnicate=1").returncode == 64
    done = run(GAVELCTL, "--election=x")
    assert done.returncode == 64 and "the command comes before its options" in done.stderr


def test_gavelctl_is_static_and_needs_nothing():
    linked = subprocess.run(["ldd", GAVELCTL], capture_output=True, text=True)
    if os.path.basename(BIN) == "release":
        assert "not a dynamic executable" in linked.stderr + linked.stdout
    assert "libuv" not in linked.stdout
