"""The client for Python within the test's own process: what a program of its own cannot show."""

import os
import sys
import threading

from clients.fake_sidecar import FakeSidecar
from clients.languages import CLIENTS
from kit.clock import boottime_ns, wait_until

sys.path.insert(0, os.path.join(CLIENTS, "python"))
from gavel import Gavel  # noqa: E402


def attached(fake, closing, on_revoke=None):
    """A client that is attached to the fake, and the other end of its connection."""
    count = len(fake.attached)
    gavel = closing(Gavel(fake.path))
    gavel.attach(on_revoke)
    wait_until(lambda: len(fake.attached) > count, 10, "it attaches")
    fake.attached[-1].sendall(b"ok\n")
    return gavel, fake.attached[-1]


def lease(connection, token, valid_ms=60_000):
    deadline = boottime_ns() + valid_ms * 1_000_000
    connection.sendall(b"lease %d %d %d 60000\n" % (token, valid_ms, deadline))


def said(fake, line):
    wait_until(lambda: line in fake.asked, 10, f"{line} is said")


def test_a_child_by_fork_has_no_part_in_the_attachment(folder, closing):
    fake = closing(FakeSidecar(folder + "/fake"))
    fake.answer = b"follower -\n"
    gavel, connection = attached(fake, closing)
    lease(connection, 7)
    wait_until(lambda: gavel.token() == 7, 10, "it leads")
    gone, going = os.pipe()
    child = os.fork()
    if child == 0:
        led = gavel.is_leader()
        os.write(going, b"y" if led else b"n")
        threading.Event().wait(30)  # it lives on, for the parent to see that nothing is held open
        os._exit(0)
    try:
        assert os.read(gone, 1) == b"n"
        assert b"check\n" in fake.asked
        assert gavel.token() == 7  # nothing has changed for the parent
        gavel.detach()
        wait_until(lambda: fake.ended, 10, "the attachment has ended, while the child lives")
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(gone)
        os.close(going)


def test_a_revocation_that_comes_while_another_is_being_served(folder, closing):
    fake = closing(FakeSidecar(folder + "/fake"))
    told, go = [], threading.Event()

    def stop(token):
        told.append(token)
        go.wait(20)
    gavel, connection = attached(fake, closing, stop)
    lease(connection, 5)
    connection.sendall(b"revoke 5 60000\n")
    wait_until(lambda: told == [5], 10, "the first is served")
    lease(connection, 6)
    connection.sendall(b"revoke 6 60000\n")
    wait_until(lambda: gavel._revoked == 6, 10, "the second is heard")
    go.set()
    wait_until(lambda: told == [5, 6], 10, "the second is served too")
    said(fake, b"done 6\n")


def test_an_error_in_on_revoke_is_not_done_and_the_next_one_is_served(folder, closing):
    fake = closing(FakeSidecar(folder + "/fake"))
    told, failed = [], []
    hook, threading.excepthook = threading.excepthook, failed.append

    def stop(token):
        told.append(token)
        if token == 5:
            raise ValueError("cannot stop")
    try:
        _, connection = attached(fake, closing, stop)
        connection.sendall(b"revoke 5 60000\n")
        wait_until(lambda: failed, 10, "the error is reported")
        connection.sendall(b"revoke x\nrevoke\nbeat x\n")  # nothing that it knows
        connection.sendall(b"revoke 6 60000\n")
        said(fake, b"done 6\n")
    finally:
        threading.excepthook = hook
    assert told == [5, 6] and b"done 5\n" not in fake.asked
