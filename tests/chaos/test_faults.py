"""What is counted as a fault is one: who finds nothing to strike says so."""

import types

import pytest

from chaos.faults import KINDS
from chaos.schedule import Planned, Rounds
from chaos.story import Story
from kit.clock import boottime_ns
from kit.relay import Relay
from kit.resp import RespError


class Server:
    """It answers what it is told to, or raises it."""
    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def cli(self, *words):
        self.asked.append(words[0])
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def lease_key(self, _):
        return "key"

    def locks(self):
        return self.answer

    def end_backend(self, _):
        self.asked.append("end")


def struck(name, server=None, relays=None, sidecar=None, app=None, writable=None, one_way=False):
    """(the faults that count, those that do not) after this one."""
    pod = types.SimpleNamespace(name="pod-a", relays=relays or {}, network=None, sidecar=sidecar,
                                app=app)
    stand = types.SimpleNamespace(
        targets=lambda: [server], independent=False, one_way=one_way, ttl_ms=300, primary=server,
        writable=lambda s: writable or s, wait_recovered=lambda: None)
    rounds = Rounds(stand, [pod], Story(), "redis", "1", None)
    if app:
        app.story = rounds.story
    rounds._strike(Planned(0, KINDS[name], 0, 0.01, "1"))
    assert rounds.failures == []
    return [f[:2] for f in rounds.story.faults], rounds.void


@pytest.mark.parametrize("name, answer, counts", [
    ("lease gone", 1, True), ("lease gone", 0, False),
    ("lease gone", RespError("READONLY"), False), ("lease gone", ConnectionError(), False),
    ("connections killed", 1, True), ("connections killed", 0, False),
    ("connections killed", ConnectionError(), False),
    ("all keys gone", "OK", True), ("all keys gone", RespError("no"), False),
    ("session ended", [1 << 22], True), ("session ended", [], False)])
def test_only_what_had_an_effect_counts(name, answer, counts):
    faults, void = struck(name, Server(answer))
    assert (len(faults), void) == ((1, 0) if counts else (0, 1))


@pytest.mark.parametrize("name", ("lease gone", "connections killed"))
def test_where_one_is_written_to_that_one_is_struck(name):
    replica, master = Server(RespError("READONLY")), Server(1)
    assert len(struck(name, replica, writable=master)[0]) == 1
    assert master.asked and not replica.asked


class App:
    def __init__(self, attached):
        self.attached = attached

    def order(self, _):
        if self.attached:
            self.story.tell("app", "pod-a", 0, "resigned", boottime_ns())


def test_who_is_not_attached_cannot_resign_on_its_attachment():
    assert struck("application resigns", app=App(True)) == ([("application resigns", "pod-a")], 0)
    assert struck("application resigns", app=App(False)) == ([], 1)


class Connection:
    def __init__(self, answer):
        self.answer = answer

    def __enter__(self):
        if isinstance(self.answer, ConnectionError):
            raise self.answer
        return self

    def __exit__(self, *_):
        pass

    def sendall(self, _):
        pass

    def recv(self, _):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer, counts", [
    (b"ok\n", True), (TimeoutError(), True), (b"", False), (b"error busy\n", False),
    (ConnectionRefusedError(), False), (ConnectionResetError(), False)])
def test_a_resignation_counts_when_the_sidecar_has_heard_it(answer, counts):
    sidecar = types.SimpleNamespace(connection=lambda timeout: Connection(answer))
    assert len(struck("leadership resigned", sidecar=sidecar)[0]) == counts


def test_half_open_needs_connections():
    relay = Relay(1)
    assert struck("half-open", relays={"r": relay}) == ([], 1)
    relay.close()


def test_who_is_refused_meets_nobody():
    class Noted(Relay):
        said = []

        def refuse(self):
            super().refuse()
            self.said.append("refuse")

        def welcome(self):
            super().welcome()
            self.said.append("welcome")
    relay = Noted(1)
    assert struck("refused", relays={"r": relay})[1] == 0 and Noted.said == ["refuse", "welcome"]
    relay.close()


def test_one_way_of_all_is_cut_for_all():
    assert struck("cut off", one_way=True)[0] == [("cut off", "all pods")]
    assert struck("cut off")[0] == [("cut off", "pod-a")]
