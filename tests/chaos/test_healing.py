"""Whether one leads in time after a round: a late host excuses what it explains, and no more."""

import threading

import pytest

from chaos import schedule
from chaos.healing import Found, judge, longest_quiet_ns
from chaos.pods import Pod
from chaos.schedule import Rounds
from chaos.story import Application, Story
from kit.clock import MS, S, boottime_ns

BOUND = 8 * S
UNTIL = 38   # s
PATIENCE = 152
LATE = [(t * S, t * S + 5 * S) for t in range(0, 300, 7)]  # never so much as two seconds in a row


@pytest.mark.parametrize("now, led, late, expected", [
    (1, 1, [], Found.LED),
    (UNTIL, UNTIL, [], Found.LED),
    (UNTIL, None, [], Found.WAITS),
    (UNTIL + 1, None, [], Found.BROKEN),
    (UNTIL + 1, UNTIL + 1, [], Found.BROKEN),
    (UNTIL + 1, None, [(3 * S, 4 * S)], Found.BROKEN),             # one late moment in all that time
    (UNTIL + 1, UNTIL + 1, [(20 * S, 21 * S)], Found.BROKEN),
    (PATIENCE + 1, None, [(0, 140 * S)], Found.BROKEN),            # quiet at last
    (UNTIL + 1, None, LATE, Found.WAITS),
    (PATIENCE + 1, None, LATE, Found.UNJUDGED),
    (UNTIL + 1, UNTIL + 1, LATE, Found.UNJUDGED),
    (UNTIL, UNTIL, LATE, Found.LED)])
def test_judged(now, led, late, expected):
    assert judge(0, now * S, None if led is None else led * S, BOUND, late) is expected


def test_the_longest_quiet_time():
    assert longest_quiet_ns(10, 100, []) == 90
    assert longest_quiet_ns(10, 100, [(0, 30)]) == 70
    assert longest_quiet_ns(10, 100, [(60, 70), (20, 50)]) == 30
    assert longest_quiet_ns(10, 100, [(20, 99), (30, 40), (98, 120)]) == 10


class Running:
    """A process, a sidecar, a pod, a stand and a host that is late, whatever one asks it."""
    name, life, networks, spec = "pod-a", 0, False, {"attach": False}
    ttl_ms = least_ttl_ms = 1000

    def __init__(self, late=()):
        self.sidecar = self.app = self.process = self
        self._late = late

    def poll(self):
        return None

    def log(self):
        return ""

    def calm(self):
        pass

    def ways(self):
        return ("socket",)

    def late(self, *_):
        return self._late


def leads(story, at, way="socket", number=1):
    story.tell("app", "pod-a", 0, "begin", "answer", dict(
        id=number, way=way, said="leader", token=5, first_send=at, begin=at + 1,
        first_receive=at + 1, last_send=at, last_receive=at + 1, deadline=at + S, late=0, count=1))


@pytest.fixture
def rounds(monkeypatch):
    """Time passes by a second whenever it is looked at."""
    now = [100 * S]

    def clock():
        now[0] += S
        return now[0]
    monkeypatch.setattr(schedule, "boottime_ns", clock)
    monkeypatch.setattr(schedule.time, "sleep", lambda _: None)

    def make(late=()):
        running = Running(late)
        return Rounds(running, [running], Story(), "redis", "1", running)
    return make


def test_who_leads_late_is_held_against_it(rounds):
    r = rounds()
    leads(r.story, 150 * S)
    assert not r._heal() and [v.kind for v in r.story.violations()] == ["nobody leads"]
    r = rounds()
    leads(r.story, 110 * S)
    r._all_heard = lambda _: True
    assert r._heal() and r.story.violations() == [] and len(r.healed_s) == 1


def test_one_late_moment_excuses_no_one(rounds):
    r = rounds([(105 * S, 106 * S)])
    assert not r._heal() and [v.kind for v in r.story.violations()] == ["nobody leads"]
    assert r.unjudged == 0


def test_a_host_without_time_is_told(rounds):
    r = rounds([(t * S, (t + 6) * S) for t in range(100, 400, 7)])
    r._all_heard = lambda _: True
    assert r._heal() and r.story.violations() == [] and r.unjudged == 1


def test_one_that_is_not_heard_any_more_is_no_proof(rounds):
    r = rounds()
    leads(r.story, 105 * S)
    r.stand.ways = lambda: ("socket", "http")
    assert not r._heal() and "pod-a by http" in r.failures[0] and "socket" not in r.failures[0]


@pytest.mark.parametrize("status, kinds, failures", [(1, ["ended"], 0), (-11, ["ended"], 0),
                                                     (-9, [], 1)])
def test_an_end_is_held_against_a_sidecar_unless_somebody_killed_it(rounds, status, kinds, failures):
    r = rounds()
    r.stand.poll = lambda: status
    r.stand.ended_with = lambda *a: Pod.ended_with(r.stand, *a)
    assert not r._heal()
    assert [v.kind for v in r.story.violations()] == kinds and len(r.failures) == failures


class Talker:
    def __init__(self, lines):
        self.stdout = lines


def test_what_is_not_understood_ends_no_history_in_silence():
    story = Story()
    app = Application.__new__(Application)
    app.story, app.replica, app.life = story, "pod-a", 0
    app.process = Talker(['["stopped", 5]\n', '["strange", 5]\n', '["cut off'])
    thread = threading.Thread(target=app._read)
    thread.start()
    thread.join(10)
    assert len(story.failures) == 1 and "pod-a" in story.failures[0]
    app.process = Talker(['["stopped", 5]\n', '["cut off'])
    app._read()
    assert len(story.failures) == 1, "the last line of one that was killed"
    assert boottime_ns() > MS
