"""How run() begins and ends: one at a time, and no longer than its attachment."""

import os

from clients.test_attachment import attached, no_thread  # noqa: F401
from clients.test_clients import built  # noqa: F401
from kit.clock import wait_until
from kit.clockshim import ClockShim

LANGUAGES = ("c", "go", "node", "java")


def test_a_second_run_is_refused_while_the_first_works(attached):  # noqa: F811
    everyone = attached("run", languages=LANGUAGES)
    for one in everyone:
        one.lease(7)
        one.program.wait_for("started", "7")
        one.program.tell("run")
        one.program.wait_for("refused")
        assert one.program.ask("is_leader") == "true", one.language
        assert b"done 7\n" not in one.fake.asked and not one.has_ended_it(), one.language
        one.program.tell("finish")
        one.program.wait_for("returned")


def test_run_ends_when_another_thread_detaches(attached):  # noqa: F811
    """While it waits to lead. And the next one runs."""
    everyone = attached("run", languages=LANGUAGES)
    for one in everyone:
        one.program.tell("detach")
        one.program.wait_for("refused")
        wait_until(one.has_ended_it, 20, f"{one.language} ends it")
        one.program.tell("run")
        one.accept(2)
        one.lease(8)
        one.program.wait_for("started", "8")
        one.program.tell("finish")
        one.program.wait_for("returned")


def test_a_child_by_fork_leaves_the_attachment_alone(attached):  # noqa: F811
    for one in attached("run", languages=("c",)):
        one.lease(7)
        one.program.wait_for("started", "7")
        one.fake.answer = None
        one.program.tell("watch")
        wait_until(lambda p=one: b"watch a\n" in p.fake.asked, 20, "it watches")
        assert one.program.ask("fork") == "3"
        assert one.program.ask("is_leader") == "true"
        assert not one.program.all("cancelled") and not one.program.all("change")
        assert not one.has_ended_it()
        one.program.tell("finish")
        one.program.wait_for("returned")


def test_a_run_that_could_not_begin_has_left_nothing(attached, no_thread, folder):  # noqa: F811
    """`done` is not said for what the application does by itself after that."""
    switch = folder + "/no-thread"
    one, = attached(languages=("java",), env={"LD_PRELOAD": no_thread, "NO_THREAD": switch})
    assert one.program.ask("is_leader") == "false"  # it has begun
    open(switch, "w").close()
    one.program.tell("run_here")
    one.program.wait_for("cannot")
    os.unlink(switch)
    one.program.tell("attach_only")
    one.accept()
    one.lease(7)
    one.leads()
    one.revoke(7)
    one.connection.sendall(b"beat 4\n")
    one.said(b"beat\n")
    assert b"done 7\n" not in one.fake.asked and not one.has_ended_it()
    one.program.tell("detach")
    wait_until(one.has_ended_it, 20, "it ends")


def test_a_wall_clock_that_is_set_back_gives_no_lease_again(attached, folder):  # noqa: F811
    """Go reads its clocks without a library that could be put before it."""
    shim = ClockShim(folder)
    for one in attached("attach", languages=("c", "java", "node"), env=shim.env):
        one.lease(7)
        one.leads()
        shim.step(3600)
        wait_until(lambda p=one: p.program.ask("is_leader") == "false", 20, "it is over")
        shim.step(0)
        assert one.program.ask("is_leader") == "false", one.language
        one.lease(7)
        one.leads()
        one.program.tell("detach")
        wait_until(one.has_ended_it, 20, f"{one.language} ends it")


def test_a_child_that_returns_from_work_ends_there(attached):  # noqa: F811
    one, = attached("run", languages=("c",), env={"FORKS": "1"})
    one.lease(7)
    one.program.wait_for("started", "7")
    one.program.wait_for("child", "3")
    assert one.program.ask("is_leader") == "true" and not one.program.all("cancelled")
    assert b"done 7\n" not in one.fake.asked and not one.has_ended_it()
    one.program.tell("finish")
    one.program.wait_for("returned")
