"""What is drawn from a seed, and what is made of a story."""

import dataclasses
import json
import xml.etree.ElementTree

import pytest

from chaos.application import Asker, AttachedAsker, Attachment, Teller
from chaos.faults import KINDS, of_store
from chaos.judge import S
from chaos.report import as_text, command, status
from chaos.schedule import plan
from chaos.story import read
from chaos.timeline import draw
from kit.history import Answer

STORES = ("redis", "sentinel", "redlock", "postgres", "local")


@pytest.mark.parametrize("store", STORES)
def test_a_round_comes_from_its_seed_alone(store):
    rounds = [plan("7", n, store, True, 6, 1, 3) for n in range(80)]
    assert rounds == [plan("7", n, store, True, 6, 1, 3) for n in range(80)]
    assert rounds != [plan("8", n, store, True, 6, 1, 3) for n in range(80)]
    drawn = {p.kind.name for _, planned in rounds for p in planned}
    assert drawn == {k.name for k in of_store(store, True)}, "each kind has its turn"
    for world, planned in rounds:
        assert len(planned) >= 2 and all(p.at + p.seconds <= 6.05 for p in planned)
        assert {p.kind.world for p in planned} <= {"", world}


def test_without_root_nothing_is_drawn_that_needs_it():
    for store in STORES:
        kinds = of_store(store, False)
        assert len(kinds) >= 8 and not any(store in k.root for k in kinds)
    assert any(k.root for k in KINDS.values())


def lines(*apps):
    said = [["run", "redis", "1", ""], ["fault", "sidecar killed", "pod-a", 3 * S, 4 * S]]
    return said + [["app", *a] for a in apps]


def begun(number, way, send, deadline, token=5, said="leader"):
    return ["begin", "answer", dict(
        id=number, way=way, said=said, token=token, first_send=send, begin=send + 1,
        first_receive=send + 1, last_send=send, last_receive=send + 1, deadline=deadline, late=0,
        count=1)]


@pytest.fixture
def told(tmp_path):
    def story(*said):
        path = tmp_path / "history.jsonl"
        path.write_text("".join(json.dumps(x) + "\n" for x in lines(*said)))
        return read(path)
    return story


def test_a_story_is_read_again_and_judged(told):
    said = [["pod-a", 0, *begun(1, "socket", S, 2 * S)],
            ["pod-a", 0, "more", 1, 4 * S, 4 * S + 1, 5 * S, 0, 300],
            ["pod-a", 0, *begun(2, "page", S, 2 * S)],
            ["pod-b", 0, *begun(1, "socket", 5 * S, 6 * S, token=6)]]
    good = told(*said)
    assert good.violations() == [] and good.judge.numbers()["leader answers"] == 302
    assert good.leader(0) == ("pod-b", 5 * S + 1)
    bad = told(*said, ["pod-c", 0, *begun(1, "http", 4 * S, 6 * S, token=7)])
    # It leads beside both of the others, and the last one's token is lower.
    assert sorted(v.kind for v in bad.violations()) == ["tokens fell", "two leaders", "two leaders"]
    around = "\n".join(bad.around(4 * S, 2 * S))
    assert "FAULT sidecar killed: pod-a" in around and "pod-c http: leader 7" in around
    stops = [["pod-a", 0, "stopped", 4 * S + 2],
             ["pod-b", 0, *begun(1, "socket", 4 * S + 3, 6 * S, token=6)]]
    assert [v.kind for v in told(*said[:3], *stops).violations()] == ["two leaders"]
    said[0] = ["pod-a", 0, *begun(1, "attached", S, 2 * S)]
    assert told(*said[:3], *stops).violations() == []
    again = told(["pod-a", 0, *begun(1, "http", 4 * S, 6 * S)])
    again.tell("app", "pod-a", 1, *begun(1, "http", 5 * S, 7 * S))
    assert again.violations() == []
    again.tell("started", "pod-a", 4 * S + 5)
    assert [v.kind for v in again.violations()] == ["shared token"]


def test_the_picture_and_the_text(told):
    story = told(["pod-a", 0, *begun(1, "socket", S, 2 * S)],
                 ["pod-b", 0, *begun(1, "socket", 70 * S, 71 * S, token=6)],
                 ["pod-c", 0, *begun(1, "socket", 70 * S, 71 * S, token=7)])
    text = draw(story, ["pod-a", "pod-b", "pod-c"], 0, 80 * S, "a <heading> & more")
    xml.etree.ElementTree.fromstring(text)
    assert "pod-b leads with 6" in text and "sidecar killed" in text and "two leaders" in text
    found = {"store": "redis", "mode": "efficiency", "seed": "s", "lasted_s": 80,
             "asked_s": 15, "settings": ["3 sidecars", "so many"],
             "skipped": ["no root"], "faults_without_effect": 2, "faults_skipped": 4,
             "faults": 1, "rounds": 1, "faults_by_kind": {"x": 1},
             "answers": 3, "answers_by_way": {"socket": 3}, "leader_answers": 3, "grants": 3,
             "writes_accepted": 0, "writes_refused": 0, "two_masters": 0, "healing_not_judged": 0,
             "healed_within_s": {"median": 1, "most": 9}, "healed_later_than_on_a_quiet_host": 3,
             "host_late_ms": 0, "harness_failures": [],
             "violations": [dataclasses.asdict(v) | {"at_s": 70} for v in story.violations()]}
    text = as_text(found, story)
    assert "3 sidecars\n  so many\n" in text
    assert "not counted: 2 that found nothing" in text
    assert "SKIPPED: no root" in text and "two leaders, 70 s after the start" in text
    assert "3 times later than it takes on a quiet host" in text
    assert "nothing is proven: no write was accepted" in text
    assert text.endswith("Again: " + command("redis", "s", 15, "efficiency"))


GOOD_RUN = {"violations": [], "harness_failures": [], "leader_answers": 1, "writes_accepted": 1,
            "faults": 1, "rounds": 1, "healing_not_judged": 1}


@pytest.mark.parametrize("change, expected", [
    ({}, 0), ({"rounds": 12, "healing_not_judged": 3}, 0), ({"rounds": 0}, 2), ({"faults": 0}, 2),
    ({"rounds": 12, "healing_not_judged": 4}, 2), ({"healing_not_judged": 2}, 2),
    ({"leader_answers": 0}, 2), ({"writes_accepted": 0}, 2), ({"harness_failures": ["x"]}, 2),
    ({"violations": ["x"], "harness_failures": ["x"], "rounds": 0}, 1)])
def test_the_exit_status(change, expected):
    assert status({**GOOD_RUN, **change}) == expected


class Said(Teller):
    def __init__(self):
        super().__init__()
        self.said = []

    def say(self, *words):
        self.said.append(json.loads(json.dumps(words)))


def test_equal_answers_are_one_run():
    teller = Said()
    for i in range(1, 1001):
        teller.answer("socket", "leader", 5, i, i + 1, i + 50)
    teller.answer("socket", "leader", 5, 2000, 2001, 2050)  # not trusted in between
    teller.answer("socket", "follower", 0, 2060, 2061, 0)
    teller.answer("socket", "leader", 6, 2070, 2071, 2069)  # late
    runs = [s[2] for s in teller.said if s[0] == "begin"]
    assert [(r["said"], r["token"], r["first_send"]) for r in runs] == [
        ("leader", 5, 1), ("leader", 5, 2000), ("follower", 0, 2060), ("leader", 6, 2070)]
    assert ["more", 1, 1000, 1001, 1050, 0, 1000] in teller.said
    assert runs[3]["late"] == 1


def test_what_was_asked_for_before_the_end_is_a_run_of_its_own():
    teller = Said()
    teller.answer("attached", "leader", 5, 0, 1, 10**18)
    teller.cut()
    teller.answer("attached", "leader", 5, 1, 2, 10**18)  # was under way
    assert teller.claims == {}
    after = teller.cut_at + 1
    teller.answer("attached", "leader", 5, after, after + 1, 10**18)
    assert [s[0] for s in teller.said] == ["begin", "stopped", "more", "begin"]
    assert teller.claims == {(5, True): (10**18, after)}


def test_what_others_were_told_goes_on_after_the_end():
    teller = Said()
    teller.answer("http", "leader", 5, 0, 1, 10**18)
    teller.cut()
    assert teller.claims == {(5, False): (10**18, 0)}
    after = teller.cut_at + 1
    teller.answer("http", "leader", 5, after, after + 1, 10**18)
    assert [s[0] for s in teller.said] == ["begin", "stopped"], "it is the same run"


class Connection:
    """A stand-in for what an Asker asks: each answer is the same one."""
    def __init__(self):
        self.socket, self.asked, self.buffer = None, 0, b""

    def connect(self):
        self.socket = self
        self.settimeout = self.recv = lambda _: b"x"

    def ask(self):
        self.asked += 1

    def parse(self, now):
        return "leader", Answer("a", now, now, True, 5, now + S), True

    def close(self, _):
        self.socket = None


def test_which_answers_end_with_the_attachment():
    teller = Said()
    attachment = Attachment(teller, "", None)
    spec = {"replica": "a", "way": "socket", "address": ""}
    outside, inside = Asker(teller, spec, attachment), AttachedAsker(teller, spec, attachment)
    for asker in (outside, inside):
        asker.target = Connection()

    def ways():
        outside()
        inside()
        found = [s[2]["way"] for s in teller.said if s[0] == "begin"]
        teller.said.clear()
        teller._open.clear()
        return found

    assert ways() == ["socket"], "nobody is attached"
    attachment.number = attachment.standing = 1
    assert ways() == ["socket", "attached"], "the first one's connection is older"
    outside.lost()
    assert ways() == ["socket, attached", "attached"]
    attachment.resigning = True
    asked = outside.target.asked
    assert ways() == [] and outside.target.asked == asked, "it may overtake the resignation"
    attachment.resigning, attachment.number, attachment.standing = False, 0, 0
    assert ways() == ["socket"], "the attachment has ended"
    attachment.number = 2
    assert ways() == ["socket"], "its connection is older again"
    outside.lost()
    assert ways() == ["socket, attached"], "perhaps: it is on its way"
