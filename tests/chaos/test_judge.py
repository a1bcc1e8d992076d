"""Forged histories: each kind of violation is found, and nothing is held against honest ones."""

import pytest

from chaos.judge import OF_ATTACHMENT, S, Judge, Run, Writes

MS = 1_000_000


def told(replica, token, send, receive, deadline, last=None, life=0, way="socket", late=0):
    """A run of `leader`, from its first answer until one that was asked at `last`; in ms."""
    begin = min(receive, deadline if last is None else receive)
    last_send = send if last is None else last
    return Run(replica, life, way, "leader", token, *(t * MS for t in (
        send, begin, receive, last_send, last_send + receive - send, deadline)), late=late)


def wrote(replica, token, send, receive, accepted=True, trusted=False, highest=0, last=None):
    last_send = send if last is None else last
    return Writes(replica, 0, token, accepted, trusted, *(t * MS for t in (
        send, receive, last_send, last_send + receive - send)), highest=highest)


def judged(*things):
    judge = Judge()
    for thing in things:
        (judge.runs if isinstance(thing, Run) else judge.writes).append(thing)
    return judge


def kinds(judge):
    return [v.kind for v in judge.verdict()]


GOOD = {
    "one after the other": [told("a", 5, 0, 1, 900, last=700), told("b", 6, 901, 902, 1800)],
    "asked before the old one's end, answered after it":
        [told("a", 5, 0, 1, 900), told("b", 6, 880, 901, 1800)],
    "answers of one replica by several ways":
        [told("a", 5, 0, 1, 900), told("a", 5, 2, 3, 950, way="page")],
    "an answer that came after its deadline, before the next one":
        [told("a", 5, 0, 500, 100), told("b", 6, 110, 120, 900)],
    "a restarted replica leads while its application still trusts the old one":
        [told("a", 5, 0, 1, 900), told("a", 6, 100, 101, 1000)],
    "an old answer that arrived late": [told("a", 5, 0, 1000, 90), told("b", 6, 200, 201, 900)],
    "writes in order": [wrote("a", 5, 0, 1), wrote("b", 6, 2, 3), wrote("a", 5, 4, 5, False,
                                                                        highest=6)],
    "writes under way at the same time": [wrote("a", 5, 0, 10), wrote("b", 6, 5, 8)],
    "a late write that nobody minds": [wrote("a", 5, 0, 1), wrote("a", 5, 5000, 5001)],
}

BAD = {
    "the second one too early":
        ([told("a", 5, 0, 1, 900), told("b", 6, 880, 899, 1800)], ["two leaders"]),
    "within a long run": ([told("a", 5, 0, 1, 9000, last=8000), told("b", 6, 4000, 4001, 4002)],
                          ["two leaders", "tokens fell"]),
    "the lower token later": ([told("a", 6, 0, 1, 10), told("b", 5, 20, 21, 30)], ["tokens fell"]),
    "a token that fell in one replica":
        ([told("a", 6, 0, 1, 10), told("a", 5, 20, 21, 30)], ["tokens fell"]),
    "one token, two replicas":
        ([told("a", 5, 0, 1, 10), told("b", 5, 20, 21, 30)], ["shared token"]),
    "an answer that was over before it was asked for":
        ([told("a", 5, 0, 1, 10, late=3)], ["late answer"]),
    "an answer that came after its deadline, composed while another was trusted":
        ([told("b", 6, 0, 1, 200), told("a", 5, 0, 500, 100)], ["two leaders"]),
    "a stale write accepted": ([wrote("b", 6, 0, 1), wrote("a", 5, 2, 3)], ["stale write"]),
    "a stale write late in a run":
        ([wrote("a", 5, 0, 1, last=100), wrote("b", 6, 50, 51)], ["stale write"]),
    "a leader's write refused":
        ([wrote("a", 5, 0, 1, False, trusted=True, highest=6)], ["refused leader"]),
    "refused although it was the newest":
        ([wrote("a", 6, 0, 1, False, highest=6)], ["refused without reason"]),
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name):
    assert kinds(judged(*GOOD[name])) == []


@pytest.mark.parametrize("name", BAD)
def test_bad(name):
    things, expected = BAD[name]
    judge = judged(*things)
    assert kinds(judge) == expected
    at = judge.verdict()[0].at
    assert judge.around(at), "the piece of history around it is empty"


def test_the_order_of_the_runs_does_not_matter():
    things, expected = BAD["within a long run"]
    assert kinds(judged(*reversed(things))) == expected


def test_a_long_claim_is_not_hidden_by_a_short_later_one_of_its_replica():
    assert kinds(judged(told("a", 5, 0, 1, 900), told("a", 5, 10, 11, 20, way="page"),
                        told("b", 6, 500, 501, 600))) == ["two leaders"]


@pytest.mark.parametrize("way", OF_ATTACHMENT)
def test_what_the_attached_one_trusted_ends_with_it(way):
    things = told("a", 5, 0, 1, 900, last=400, way=way), told("b", 6, 500, 501, 1800)
    assert kinds(judged(*things)) == ["two leaders"]
    for life, at, expected in ((0, 500, []), (0, 502, ["two leaders"]), (1, 500, ["two leaders"])):
        judge = judged(*things)
        judge.stopped("a", life, at * MS)
        assert kinds(judge) == expected


def test_what_is_asked_for_after_the_end_counts():
    judge = judged(told("a", 5, 550, 551, 900, way="attached"), told("b", 6, 500, 501, 1800))
    judge.stopped("a", 0, 500 * MS)
    assert "two leaders" in kinds(judge)


@pytest.mark.parametrize("way", ("http", "page", "socket"))
def test_what_others_were_told_outlasts_the_attached_one(way):
    judge = judged(told("a", 5, 0, 1, 900, way=way), told("b", 6, 500, 501, 1800))
    judge.stopped("a", 0, 400 * MS)
    assert kinds(judge) == ["two leaders"]


def test_a_token_of_two_lives_of_one_sidecar():
    before, after = told("a", 5, 0, 1, 900, last=400), told("a", 5, 700, 701, 1600)
    assert kinds(judged(before, after)) == []
    for things, at, expected in (
            ((before, after), 500, ["shared token"]),
            ((told("a", 5, 0, 1, 900, last=800),), 500, ["shared token"]),
            ((before, told("a", 6, 700, 701, 1600)), 500, []),
            ((before, after), 800, []),
            # The page of the dead one is still good; read before, it is the earlier one all the same.
            ((before, told("a", 5, 700, 701, 900, way="page")), 500, []),
            ((told("a", 5, 0, 1, 900, way="page"), after), 500, ["shared token"])):
        judge = judged(*things)
        judge.started("b", 500 * MS)
        judge.started("a", at * MS)
        assert kinds(judge) == expected
        assert not expected or any("starts anew" in text
                                   for _, text in judge.around(at * MS))


def test_the_order_of_the_resource():
    judge = Judge()
    for replica, token in (("a", 5), ("a", 5), ("b", 6)):
        judge.accepted_next(replica, token, 0)
    assert kinds(judge) == []
    judge.accepted_next("a", 5, 1)
    judge.accepted_next("c", 6, 2)
    assert kinds(judge) == ["stale write", "shared token"] and judge.accepted == 5


def test_contradictions_and_healing():
    judge = Judge()
    judge.healed(0, 2 * S, 10 * S)
    assert kinds(judge) == []
    judge.contradiction("a", 5, "a deadline further away than the validity")
    judge.healed(20 * S, None, 30 * S)
    judge.healed(40 * S, 51 * S, 50 * S)
    assert kinds(judge) == ["contradiction", "nobody leads", "nobody leads"]


def test_two_masters_excuse_two_leaders_but_no_shared_token():
    things = (told("a", 5, 0, 1, 900), told("b", 6, 500, 501, 800), told("c", 6, 850, 851, 860),
              told("a", 5, 600, 601, 900))
    judge = judged(*things)
    before = kinds(judge)
    assert "two leaders" in before and "tokens fell" in before and "shared token" in before
    judge.excuse(400 * MS, 700 * MS)
    assert "two leaders" in kinds(judge), "it does not cover what lasts longer"
    judge.excuse(400 * MS, 1000 * MS)
    assert kinds(judge) == ["shared token"]
    assert judge.excused() == len(before) - 1


def test_violations_without_number_are_told_a_few_times():
    judge = judged(*(told("ab"[i % 2], 5 + i, 0, 1, 900) for i in range(200)))
    for i in range(200):
        judge.accepted_next("a", 200 - i, i)
    assert 10 < len(kinds(judge)) < 100


def test_numbers():
    judge = judged(told("a", 5, 0, 1, 900), told("a", 5, 0, 1, 900, way="page"),
                   wrote("a", 5, 0, 1), wrote("a", 5, 2, 3, False, highest=6))
    judge.runs[0].update(500 * MS, 501 * MS, 1200 * MS, 0, 100)
    numbers = judge.numbers()
    assert numbers["answers"] == numbers["leader answers"] == 101 and numbers["grants"] == 1
    assert numbers["writes accepted"] == numbers["writes refused"] == 1
