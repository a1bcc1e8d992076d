"""The client for Python within the test's own process: what a program of its own cannot show."""

import os
import subprocess
import sys
import threading

import pytest

from clients.fake_sidecar import FakeSidecar
from clients.languages import CLIENTS
from kit.clock import boottime_ns, wait_until

sys.path.insert(0, os.path.join(CLIENTS, "python"))
import gavel as client  # noqa: E402
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


def in_a_thread(function, *arguments):
    """What it returned, in a list, once it has."""
    results = []
    threading.Thread(target=lambda: results.append(function(*arguments)), daemon=True).start()
    return results


def test_a_run_that_could_not_begin_has_left_nothing(folder, closing, monkeypatch):
    """`done` is not said for what the application does by itself after that."""
    fake = closing(FakeSidecar(folder + "/fake"))
    gavel = closing(Gavel(fake.path))

    def cannot(_thread):
        raise RuntimeError("can't start new thread")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", cannot)
        with pytest.raises(RuntimeError, match="new thread"):
            gavel.run(lambda leadership: None)
    fake.takes = True
    gavel.attach()
    wait_until(lambda: b"lease\n" in fake.asked, 10, "it is attached")
    lease(fake.attached[-1], 7)
    wait_until(lambda: gavel.token() == 7, 10, "it leads")
    fake.attached[-1].sendall(b"revoke 7 60000\nbeat 4\n")
    said(fake, b"beat\n")
    assert b"done 7\n" not in fake.asked and not fake.ended
    gavel.close()
    wait_until(lambda: fake.ended, 10, "close() ends the attachment")


def test_detach_ends_run(folder, closing):
    fake = closing(FakeSidecar(folder + "/fake"))
    fake.takes = True
    gavel = closing(Gavel(fake.path))
    waiting = in_a_thread(gavel.run, lambda leadership: 1)
    wait_until(lambda: fake.attached, 10, "it is attached")
    gavel.detach()
    wait_until(lambda: waiting == [None], 10, "run() returns while it waits")
    working = []
    ended = in_a_thread(gavel.run, lambda leadership: working.append(leadership) or leadership.wait(60))
    wait_until(lambda: len(fake.attached) == 2, 10, "it is attached")
    lease(fake.attached[-1], 7)
    wait_until(lambda: working, 10, "it works")
    gavel.detach()
    wait_until(lambda: ended == [None], 10, "run() returns when the work has stopped")
    assert working[0].cancelled()
    wait_until(lambda: len(fake.ended) == 2, 10, "the attachment has ended")


def test_there_is_one_run_at_a_time(folder, closing):
    fake = closing(FakeSidecar(folder + "/fake"))
    fake.takes = True
    gavel = closing(Gavel(fake.path))
    ended = in_a_thread(gavel.run, lambda leadership: leadership.wait(60) and "cancelled")
    wait_until(lambda: fake.attached, 10, "it is attached")
    with pytest.raises(RuntimeError, match="runs already"):
        gavel.run(lambda leadership: "second")
    assert not ended and not fake.ended  # nothing has changed for the first
    gavel.close()
    wait_until(lambda: ended == [None], 10, "the first has ended")


def test_a_wall_clock_that_is_set_back_gives_no_lease_again(folder, closing, monkeypatch):
    fake = closing(FakeSidecar(folder + "/fake"))
    gavel, connection = attached(fake, closing)
    lease(connection, 7)
    wait_until(lambda: gavel.token() == 7, 10, "it leads")
    now, ahead = client._now, [3600 * 10**9]
    monkeypatch.setattr(client, "_now", lambda: (now()[0], now()[1] + ahead[0]))
    assert gavel.token() is None
    ahead[0] = 0
    assert gavel.token() is None
    lease(connection, 7)
    wait_until(lambda: gavel.token() == 7, 10, "a newer line of the lease is believed")


def test_a_sidecar_that_hangs_up_is_no_signal(folder, closing):
    """SIGPIPE ends a program that has it as it was, as those of the command line do."""
    fake = closing(FakeSidecar(folder + "/fake"))
    fake.answer = b"error too-many\n"
    program = ("import signal, sys\nfrom gavel import _Line\n"
               "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
               "line = _Line(sys.argv[1], 10)\nline.say('check')\nprint(line.read(10))\n"
               "line._readable.poll()\n"  # it has hung up
               "try:\n    line.say('check')\nexcept OSError:\n    print('goes on')\n")
    done = subprocess.run([sys.executable, "-c", program, fake.path], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PYTHONPATH": os.path.join(CLIENTS, "python")})
    assert (done.returncode, done.stdout.split("\n")[-2]) == (0, "goes on"), done
