"""gavel exec when it is itself killed or stopped, and what it believes of a sidecar."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from kit.clock import MS, boottime_ns, wait_until
from kit.execed import CHILD, Beats, Exec, children_of, is_running
from kit.relay import Relay
from kit.sidecar import GAVELCTL, LONG, clean_env

SEED = int(os.environ.get("GAVEL_SEED", "20261202"))


@pytest.fixture
def two(start, folder, closing):
    """The leader's exec, the other one's, and what their commands write."""
    beats = Beats(folder + "/beats")
    execs = []
    for name in ("pod-a", "pod-b"):
        pod = start(name, "--ttl", "1s", "--app-timeout", "300ms", http="off")
        execs.append(closing(Exec(pod.socket_path, sys.executable, CHILD, beats.path, "stubborn")))
        if name == "pod-a":
            wait_until(lambda: len({b[1] for b in beats.all()}) == 2, 20, "both of pod-a run")
    return execs[0], execs[1], beats


def other_runs_alone(beats, old, what):
    """No process of the old command has done anything since the first one of the new one did."""
    def new():
        return [b for b in beats.all() if b[0] > old]
    wait_until(new, 20, f"the other one's command runs after {what}")
    time.sleep(0.05)  # survivors would write meanwhile
    last = max(b[2] for b in beats.all() if b[0] <= old)
    first = min(b[2] for b in new())
    assert last < first, f"{what}: both ran for {(last - first) / MS} ms"
    # A process that was killed does nothing more, but takes its time to be gone on a busy host.
    wait_until(lambda: not beats.running(old), 5, "no orphans")


@pytest.mark.parametrize("victim", ["supervisor", "guard"])
@pytest.mark.parametrize("number", range(10 if LONG else 1))
def test_either_process_is_killed(two, victim, number):
    execed, _, beats = two
    old = beats.token()
    supervisor = execed.supervisor()
    time.sleep(random.Random(SEED + number).uniform(0, 0.4))  # anywhere between two renewals
    os.kill(supervisor if victim == "supervisor" else execed.process.pid, signal.SIGKILL)
    other_runs_alone(beats, old, f"kill of the {victim}")
    status = execed.wait()
    wait_until(lambda: not is_running(supervisor))
    assert status == (125 if victim == "supervisor" else -signal.SIGKILL)
    assert victim == "guard" or "was killed (signal 9)" in execed.error


def test_the_supervisor_is_stopped(two):
    execed, other, beats = two
    old = beats.token()
    supervisor = execed.supervisor()
    os.kill(supervisor, signal.SIGSTOP)
    try:
        other_runs_alone(beats, old, "stop of the supervisor")
    finally:
        os.kill(supervisor, signal.SIGCONT)
    # That is no end for exec: it runs the command again at the next election.
    between = beats.token()
    other.close()
    wait_until(lambda: beats.token() > between, 20, "it runs the command again")
    assert execed.supervisor() == supervisor


def test_the_guard_is_stopped(two):
    execed, _, beats = two
    old = beats.token()
    execed.process.send_signal(signal.SIGSTOP)
    try:
        os.kill(execed.supervisor(), signal.SIGKILL)
        wait_until(lambda: len(beats.running(old)) == 1)  # what is left of the command
        assert all(b[0] == old for b in beats.all()), "the other one ran beside an orphan"
    finally:
        execed.process.send_signal(signal.SIGCONT)
    other_runs_alone(beats, old, "kill of the supervisor")
    assert execed.wait() == 125


def test_a_command_that_was_asked_to_end_gets_no_more_time(start, redis, folder, closing):
    """Leadership was doubted, then renewed: who ignores SIGTERM is killed, and started again."""
    relay = closing(Relay(redis.port))
    pod = start("pod-a", "--ttl", "2s", "--mode", "efficiency", store=relay.url)
    token = pod.wait_leader().token
    path = folder + "/says"
    script = f"echo up $GAVEL_TOKEN >> {path}; trap 'echo term >> {path}' TERM; " \
             "while :; do sleep 0.02; done"

    def said():
        with contextlib.suppress(FileNotFoundError), open(path) as f:
            return f.read().split("\n")[:-1]
        return []
    closing(Exec(pod.socket_path, "sh", "-c", script))
    wait_until(said)
    relay.freeze()
    wait_until(lambda: "term" in said())
    relay.thaw()
    wait_until(lambda: len(said()) == 3, 15, "it is run again")
    assert said()[1] == "term" and said()[2].startswith("up ")
    assert pod.check().token == token or not said()[2].endswith(str(token))


def test_a_signal_to_the_group_arrives_once(start, closing):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    script = "trap 'echo usr1' USR1; trap 'echo usr2' USR2; echo up; while :; do sleep 0.05; done"
    execed = closing(Exec(pod.socket_path, "sh", "-c", script, start_new_session=True))
    assert execed.process.stdout.readline() == "up\n"
    for number, word in ((signal.SIGUSR1, "usr1\n"), (signal.SIGUSR2, "usr2\n")) * 2:
        os.killpg(execed.process.pid, number)
        assert execed.process.stdout.readline() == word


def test_the_command_has_none_of_our_descriptors(start):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    done = subprocess.run([GAVELCTL, "exec", "--socket", pod.socket_path, "--", "ls",
                           "/proc/self/fd"], env=clean_env(), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=20, check=True)
    assert done.stdout.split() == ["0", "1", "2", "3"]  # 3 is its own, of that folder


@pytest.fixture
def scripted(folder):
    """A sidecar that says what it is told to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(folder + "/scripted.sock")
        listener.listen(5)
        listener.settimeout(20)
        yield listener


def attached(listener):
    s, _ = listener.accept()
    s.settimeout(20)
    assert s.recv(100) == b"attach\n"
    s.sendall(b"ok\n")
    assert s.recv(100) == b"lease\n"
    return s


def test_a_deadline_of_another_clock_is_ignored(scripted, closing):
    execed = closing(Exec(scripted.getsockname(), "sh", "-c", "echo $GAVEL_TOKEN"))
    with attached(scripted) as s:
        s.sendall(b"lease 7 2000 %d 2000\n" % (boottime_ns() + 60_000 * MS))
        assert "further away" in execed.process.stderr.readline()
        s.sendall(b"lease 8 2000 %d 2000\n" % (boottime_ns() + 2_000 * MS))
        assert execed.process.stdout.readline() == "8\n"
        assert execed.process.wait(10) == 0


def test_a_connection_that_makes_no_sense_is_kept_while_the_command_runs(scripted, closing):
    """For its end would say that nothing runs."""
    execed = closing(Exec(scripted.getsockname(), "sh", "-c",
                          "trap 'echo term; sleep 0.3; exit 3' TERM; echo up; "
                          "while :; do sleep 0.02; done", options=("--once",)))
    with attached(scripted) as s:
        s.sendall(b"lease 8 5000 %d 5000\n" % (boottime_ns() + 5_000 * MS))
        assert execed.process.stdout.readline() == "up\n"
        command = children_of(execed.supervisor())
        s.sendall(b"x" * 20000 + b"\n")
        assert execed.process.stdout.readline() == "term\n"
        with contextlib.suppress(ConnectionResetError):  # it has not read all of it
            while s.recv(100) != b"":
                pass
        assert command and not any(map(is_running, command))
        assert execed.process.wait(10) == 124


def test_another_time_namespace_is_refused(start):
    """By its clock all deadlines would be far away."""
    enter = ["unshare", "--time", "--boottime", "-100", "--fork"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no time namespace can be made here")
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    done = subprocess.run([*enter, GAVELCTL, "exec", "--socket", pod.socket_path, "--", "echo",
                           "ran"], env=clean_env(), capture_output=True, text=True, timeout=20,
                          check=False)
    assert (done.returncode, done.stdout) == (125, ""), done.stderr
    assert "time namespace" in done.stderr


def test_the_command_cannot_become_one_that_cannot_be_killed(start):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency", "--socket-mode", "0666")
    pod.wait_leader()
    os.chmod(pod.folder, 0o755)
    ordinary = {} if os.geteuid() != 0 else {
        "user": "nobody", "group": "nogroup", "extra_groups": []}
    program = shutil.copy(GAVELCTL, pod.folder + "/gavelctl")  # where an ordinary user gets
    done = subprocess.run([program, "exec", "--socket", pod.socket_path, "--", "grep", "NoNewPrivs",
                           "/proc/self/status"], text=True, capture_output=True, timeout=30, **ordinary)
    assert done.stdout.split() == ["NoNewPrivs:", "1"], done.stdout + done.stderr


def test_hundreds_of_descendants_are_ended(start, folder):
    pod = start("pod-a", "--ttl", "5s", "--mode", "efficiency")
    pod.wait_leader()
    ids = folder + "/ids"
    script = (f"for i in $(seq 600); do setsid sleep 600 & echo $! >> {ids}; done; "
              f"touch {ids}.done; wait")
    command = subprocess.Popen([GAVELCTL, "exec", "--once", "--socket", pod.socket_path, "--", "sh",
                                "-c", script], stdin=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(ids + ".done"), 60)
    with open(ids, encoding="ascii") as f:
        found = [int(line) for line in f]
    assert len(found) == 600
    pod.kill9()
    assert command.wait(30) == 124
    assert not [pid for pid in found if is_running(pid)]
