"""gavel exec: a command that runs only while this replica leads, and is gone before another may."""

import os
import random
import signal
import sys
import time

import pytest

from kit.clock import MS, boottime_ns, wait_until
from kit.execed import CHILD, Beats, Exec, children_of, is_running
from kit.latency import Latency
from kit.relay import Relay
from kit.sidecar import GAVEL, GAVELCTL, LONG, TIMING, run

ROUNDS = (200 if LONG else 20) if TIMING else 4
SEED = int(os.environ.get("GAVEL_SEED", "20261202"))


@pytest.fixture
def leader(start):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    pod.wait_leader()
    return pod


def run_exec(pod, *words, program=GAVELCTL):
    return run(program, "exec", "--socket", pod.socket_path, *words)


@pytest.mark.parametrize("program", [GAVEL, GAVELCTL])
def test_the_command_has_the_token_and_its_status_is_ours(leader, program):
    token = leader.check().token
    done = run_exec(leader, "--", "sh", "-c", "echo $GAVEL_TOKEN; exit 7", program=program)
    assert (done.returncode, done.stdout) == (7, f"{token}\n"), done.stderr
    wait_until(lambda: leader.event("application", what="gone"))


def test_statuses_of_what_cannot_be_run(leader):
    missing = run_exec(leader, "--", "/nothing/there")
    assert missing.returncode == 127
    assert missing.stderr == "gavelctl exec: /nothing/there: No such file or directory\n"
    assert run_exec(leader, "--", "/etc/passwd").returncode == 126
    assert run_exec(leader, "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_wrong_use_and_no_sidecar(leader, folder):
    assert run_exec(leader).returncode == 64
    assert run_exec(leader, "a b", "--", "true").returncode == 64
    done = run_exec(leader, "other", "--", "true")
    assert done.returncode == 125 and "no election of that name" in done.stderr
    done = run(GAVELCTL, "exec", "--socket", folder + "/none", "--timeout", "300ms", "--", "true")
    assert done.returncode == 125
    # By then other calls have failed for other reasons.
    assert done.stderr == (f"gavelctl exec: {folder}/none: no sidecar: No such file or directory; "
                           "is it running? --socket says where\n")


def test_signals_are_passed_on(leader, closing):
    script = "trap 'echo usr1' USR1; trap 'echo term; exit 3' TERM; echo up; " \
             "while :; do sleep 0.05; done"
    execed = closing(Exec(leader.socket_path, "sh", "-c", script))
    assert execed.process.stdout.readline() == "up\n"
    execed.process.send_signal(signal.SIGUSR1)
    assert execed.process.stdout.readline() == "usr1\n"
    execed.process.send_signal(signal.SIGTERM)
    assert execed.process.stdout.readline() == "term\n"
    assert execed.process.wait(10) == 3


def test_nothing_is_left_when_the_command_ends(leader, folder):
    script = f"setsid sh -c 'echo $$ > {folder}/pid; exec sleep 1000' & " \
             f"while [ ! -s {folder}/pid ]; do sleep 0.01; done; exit 5"
    assert run_exec(leader, "--", "sh", "-c", script).returncode == 5
    with open(folder + "/pid") as f:
        assert not is_running(int(f.read()))


def test_once_ends_when_leadership_is_lost(leader, closing):
    execed = closing(Exec(leader.socket_path, "sleep", "1000", options=("--once",)))
    wait_until(lambda: leader.event("application", what="attached"))
    wait_until(lambda: children_of(execed.supervisor()))
    assert run(GAVELCTL, "resign", "--socket", leader.socket_path).returncode == 0
    assert execed.wait() == 124


def test_a_command_that_does_not_end_is_killed_within_the_drain(start, folder, closing):
    pod = start("pod-a", "--ttl", "3s", "--mode", "efficiency", "--drain", "800ms")
    beats = Beats(folder + "/beats")
    closing(Exec(pod.socket_path, sys.executable, CHILD, beats.path, "stubborn", options=("--once",)))
    wait_until(lambda: len({b[1] for b in beats.all()}) == 2)
    latency = closing(Latency())
    asked = boottime_ns()
    pod.terminate()
    assert pod.wait() == 0
    wait_until(lambda: not any(is_running(b[1]) for b in beats.all()))
    last = max(b[2] for b in beats.all())
    assert last - asked > 500 * MS, "killed long before it had to be"
    if TIMING:
        assert last - asked < 800 * MS + latency.worst_ns(asked, last + 100 * MS)


def test_it_beats_as_often_as_it_has_to(start, folder, closing):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency", "--app-timeout", "200ms")
    beats = Beats(folder + "/beats")
    execed = closing(Exec(pod.socket_path, sys.executable, CHILD, beats.path, "obeys", options=("--once",)))
    wait_until(lambda: len(beats.all()) > 300, 20)
    assert not pod.event("application-hung")
    execed.process.send_signal(signal.SIGTERM)
    assert execed.process.wait(10) == 128 + signal.SIGTERM


class Field:
    """Two sidecars on one Redis, each behind a relay of its own, each with its exec."""

    def __init__(self, folder, redis, start, closing, new_relay):
        self.pods, self.execs, self.relays = [], [], []
        self.beats = Beats(folder + "/beats")
        self.random = random.Random(SEED)
        for n in "ab":
            relay = closing(new_relay(redis.port))
            pod = start(f"pod-{n}", "--ttl", "1s", "--drain", "2s", store=relay.url, http="off")
            self.relays.append(relay)
            self.pods.append(pod)
            self.execs.append(closing(Exec(
                pod.socket_path, sys.executable, CHILD, self.beats.path,
                self.random.choice(("obeys", "stubborn")))))

    def leading(self):
        """The one whose command runs now."""
        def found():
            for i, pod in enumerate(self.pods):
                check = pod.check()
                if check.leader and self.beats.token() == check.token:
                    return i
            return None
        index = wait_until(lambda: (found() is not None and [found()]) or None, 20,
                           "a command runs under the leader's token")[0]
        return index

    def fail(self, index, kind):
        pod = self.pods[index]
        if kind == "store":
            self.relays[index].freeze()
        elif kind == "pause":
            pod.freeze()
        elif kind == "kill":
            pod.kill9()
            pod.wait()
        else:
            pod.terminate()

    def mend(self, index, kind):
        pod = self.pods[index]
        if kind == "store":
            self.relays[index].thaw()
        elif kind == "pause":
            pod.thaw()
        else:
            pod.wait()
            pod.start()


def test_the_command_is_gone_before_another_may_lead(folder, redis, start, closing):
    field = Field(folder, redis, start, closing, Relay)
    kinds = ["store", "pause", "kill", "term"]
    for number in range(ROUNDS):
        index = field.leading()
        old = field.beats.token()
        kind = kinds[number % 4]
        time.sleep(field.random.uniform(0, 0.4))  # anywhere between two renewals
        field.fail(index, kind)
        new = wait_until(lambda o=old: field.beats.token() > o and field.beats.token(), 20,
                         f"the other one's command runs after {kind}")
        seen = field.beats.all()
        last = max(b[2] for b in seen if b[0] <= old)
        first = min(b[2] for b in seen if b[0] == new)
        assert last < first, f"round {number}, {kind}: both ran for {(last - first) / MS} ms"
        field.mend(index, kind)
        old_ones = {b[1] for b in seen if b[0] <= old}
        assert not [p for p in old_ones if is_running(p)], f"round {number}, {kind}: orphans"
        os.truncate(field.beats.path, 0)  # O_APPEND goes on at its start
