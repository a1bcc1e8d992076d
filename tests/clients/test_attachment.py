"""The end of an attached connection tells the sidecar that the application has stopped. So no client
ends it while its work still runs, whatever goes wrong; and each attaches again after that. All
languages go through a scenario together."""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time

import pytest

from clients.fake_sidecar import FakeSidecar
from clients.languages import ATTACHES, CLIENTS, PROGRAMS
from clients.test_clients import built  # noqa: F401
from kit.clock import boottime_ns, wait_until

JUNK = b"x" * 6000  # longer than any line


class Attached:
    """A program of one language, and the other end of its attached connection."""

    def __init__(self, language, folder, closing, program, env=()):
        self.language = language
        self.fake = closing(FakeSidecar(f"{folder}/{language}"))
        self.fake.answer = b"follower -\n"
        self.program = program(language, self.fake.path, "a", env=env)

    def accept(self, count=1):
        wait_until(lambda: len(self.fake.attached) >= count, 60, f"{self.language} attaches")
        self.connection = self.fake.attached[count - 1]
        self.connection.sendall(b"ok\n")

    def lease(self, token, valid_ms=600_000, ttl_ms=600_000):
        self.until_ns = boottime_ns() + valid_ms * 1_000_000
        self.connection.sendall(b"lease %d %d %d %d\n" % (token, valid_ms, self.until_ns, ttl_ms))

    def leads(self):
        wait_until(lambda: self.program.ask("is_leader") == "true", 20, f"{self.language} leads")

    def revoke(self, token):
        self.connection.sendall(b"revoke %d 60000\n" % token)

    def said(self, line):
        wait_until(lambda: line in self.fake.asked, 20, f"{self.language} says {line}")

    def has_ended_it(self):
        poll = select.poll()
        poll.register(self.connection, select.POLLRDHUP)
        return bool(poll.poll(0))

    def unread(self):
        return struct.unpack("i", fcntl.ioctl(self.connection, termios.FIONREAD, b"\0" * 4))[0]


@pytest.fixture
def attached(folder, closing, program):
    """attached(verbs): each language, attached to a fake of its own."""
    def make(*verbs, languages=ATTACHES, **kwargs):
        everyone = [Attached(x, folder, closing, program, **kwargs) for x in languages if x in ATTACHES]
        for one in everyone:
            for verb in verbs:
                one.program.tell(verb)
        for one in everyone:
            if verbs:
                one.accept()
        return everyone
    return make


def test_a_connection_of_no_use_stays_open_until_the_work_has_stopped(attached):
    everyone = attached("run")
    for one in everyone:
        one.lease(7)
        one.program.wait_for("started", "7")
    for one in everyone:
        one.connection.sendall(JUNK)
    for one in everyone:
        one.program.wait_for("cancelled", "7")
        assert one.program.ask("is_leader") == "false", one.language
    time.sleep(0.3)  # in which it would be tried again
    for one in everyone:
        assert not one.has_ended_it() and len(one.fake.attached) == 1, one.language
        one.program.tell("finish")
        one.program.wait_for("stopped")
        wait_until(one.has_ended_it, 20, f"{one.language} ends it")
    for one in everyone:
        one.accept(2)
        one.lease(8)
        one.program.wait_for("started", "8")
        one.program.tell("finish")
        one.program.wait_for("returned")


def test_what_the_application_does_beside_run_is_given_the_time_of_its_lease(attached):
    """The client cannot know of that work: it was told of the lease, so it ends with that."""
    everyone = attached("attach")
    for one in everyone:
        one.lease(7, valid_ms=2000)
        one.leads()
        one.connection.sendall(JUNK)
    for one in everyone:
        wait_until(lambda p=one: p.program.ask("is_leader") == "false", 20, "it does not lead")
        if one.has_ended_it():
            assert boottime_ns() >= one.until_ns, one.language
        wait_until(one.has_ended_it, 20, f"{one.language} ends it")
        assert boottime_ns() >= one.until_ns - 20_000_000, one.language  # by a clock of hundredths
    for one in everyone:
        one.accept(2)
        one.lease(8)
        one.leads()
        one.connection.sendall(JUNK)
        wait_until(lambda p=one: p.program.ask("is_leader") == "false", 20, "it does not lead")
        assert not one.has_ended_it(), one.language
        one.program.tell("detach")  # its own word that all has stopped
        wait_until(one.has_ended_it, 20, f"{one.language} ends it")


def test_beats_that_are_not_taken_end_nothing(attached):
    """A sidecar that is stopped reads none of them."""
    everyone = attached("run")
    for one in everyone:
        one.fake.reads = False
        one.lease(7)
        one.connection.sendall(b"beat 4\n")
        one.program.wait_for("started", "7")
    before = {}

    def all_full():
        now = {one.language: one.unread() for one in everyone}
        same = now == before
        before.update(now)
        return same and min(now.values()) > 1000
    wait_until(all_full, 60, "all buffers are full", poll=0.3)
    for one in everyone:
        assert not one.has_ended_it(), one.language
        assert one.program.ask("is_leader") == "true", one.language  # its lease stands
        assert not one.program.all("cancelled"), one.language
        one.fake.reads = True
        wait_until(lambda p=one: p.unread() < 100, 20, "there is room for a word again")
        one.revoke(7)
        one.program.wait_for("cancelled", "7")
        assert not one.has_ended_it(), one.language
        one.program.tell("finish")
        one.said(b"done 7\n")
        assert not one.has_ended_it(), one.language


def test_the_connection_stays_for_on_revoke_too(attached):
    """Work has returned by itself, and what else there is still stops: one word of either is not
    the end of both."""
    everyone = attached("attach", "run", env={"SLOW": "1"})
    for one in everyone:
        one.lease(7)
        one.program.wait_for("started", "7")
        one.revoke(7)
        one.program.wait_for("revoked", "7")  # and it does not come back
        one.program.wait_for("cancelled", "7")
        one.lease(8)
        one.program.tell("finish")
        one.program.wait_for("started", "8")
        one.program.tell("finish")
        one.program.wait_for("stopped", "8")
    time.sleep(0.3)
    for one in everyone:
        assert not one.has_ended_it() and b"done 7\n" not in one.fake.asked, one.language
        one.program.tell("go")
        wait_until(one.has_ended_it, 20, f"{one.language} ends it")
        one.program.wait_for("returned")


@pytest.fixture(scope="session")
def no_thread(tmp_path_factory):
    """A library to be preloaded; while the file $NO_THREAD exists, no thread can be had."""
    library = str(tmp_path_factory.mktemp("no_thread") / "nothread.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                    os.path.join(PROGRAMS, "nothread.c"), "-ldl"], check=True)
    return library


def test_a_revocation_is_told_where_no_thread_can_be_had(attached, no_thread, folder):
    """All threads are there from the beginning. Go and Node need none."""
    switch = folder + "/no-thread"
    everyone = attached(languages=("c", "python", "java"),
                        env={"LD_PRELOAD": no_thread, "NO_THREAD": switch})
    for one in everyone:
        assert one.program.ask("is_leader") == "false"  # it has begun
    open(switch, "w").close()
    for one in everyone:
        one.program.tell("attach")
        wait_until(lambda p=one.program: p.all("cannot"), 20, f"{one.language} says so")
        assert one.program.ask("is_leader") == "false"
        assert not one.fake.attached, one.language
    os.unlink(switch)
    for one in everyone:
        one.program.tell("attach")
        one.accept()
        one.lease(7)
        one.leads()
    open(switch, "w").close()
    for one in everyone:
        one.revoke(7)
        one.program.wait_for("revoked", "7")
        one.said(b"done 7\n")
        assert not one.has_ended_it() and len(one.fake.attached) == 1, one.language
        one.program.tell("detach")
        wait_until(one.has_ended_it, 20, f"{one.language} ends it")


def test_a_callback_that_fails_ends_nothing(attached):
    """It is reported as an error of its thread. (In Go a panic ends the process, and in Node an error
    that is not handled: the program here does.)"""
    everyone = attached("attach", languages=("python", "node", "java"), env={"THROWS": "1"})
    for one in everyone:
        one.fake.answer = lambda p=one: p.fake.leader()
        one.program.tell("watch")
        one.lease(7)
        one.revoke(7)
        one.program.wait_for("revoked", "7")
        one.revoke(8)
        one.program.wait_for("revoked", "8")
        # The fake ends each `watch` when it has answered.
        one.program.wait_for("change", "true", count=2)
        one.program.wait_for("change", "false", count=2)
        one.program.wait_for("failed", count=6)
        assert not one.has_ended_it() and len(one.fake.attached) == 1, one.language
        assert not [x for x in one.fake.asked if x.startswith(b"done")], one.language


@pytest.mark.skipif("node" not in ATTACHES, reason="no node here")
def test_in_node_a_callback_that_fails_ends_the_process(folder, closing):
    """Unless the application handles such errors, as the README says."""
    fake = closing(FakeSidecar(folder + "/fake"))
    fake.answer = b"follower -\n"
    with open(folder + "/app.mjs", "w") as f:
        f.write(f"""import {{ Gavel }} from '{os.path.abspath(CLIENTS)}/node/gavel.mjs'
if (process.argv[2]) process.on('uncaughtException', () => {{ console.log('handled'); process.exit(0) }})
new Gavel({{ path: '{fake.path}' }}).onChange(() => {{ throw new Error('no') }})
setTimeout(() => process.exit(2), 20000)
""")
    for handles, status in (("", 1), ("yes", 0)):
        done = subprocess.run(["node", folder + "/app.mjs", handles], capture_output=True, timeout=60)
        assert (done.returncode, b"handled" in done.stdout) == (status, bool(handles)), done


def test_attaching_and_detaching_from_many_threads(attached):
    """Each time the old connection ends before the new one is made."""
    everyone = attached()
    for one in everyone:
        one.fake.takes = True
        one.program.tell("churn")
    for one in everyone:
        one.program.wait_for("churned")
        one.program.tell("attach")

    def leads(one):
        for one.connection in [x for x in one.fake.attached if x not in one.fake.ended]:
            try:
                one.lease(7)
            except OSError:
                continue  # it has just ended
        return one.program.ask("is_leader") == "true"
    for one in everyone:
        wait_until(lambda p=one: leads(p), 20, f"{one.language} leads", poll=0.05)
        one.program.tell("detach")
        one.program.wait_for("detached")
        wait_until(lambda p=one: len(p.fake.ended) == len(p.fake.attached), 20, "all have ended")
