"""The judge must find what is planted, and nothing else."""

import itertools
import random

import pytest

from kit.history import Answer, History


def leader(replica, send, receive, token, deadline):
    return Answer(replica, send, receive, True, token, deadline)


def follower(replica, send, receive):
    return Answer(replica, send, receive, False)


def judged(*answers):
    history = History()
    for answer in answers:
        history.add(answer)
    return history.violations


def test_a_clean_handover_breaks_nothing():
    assert judged(leader("a", 0, 10, 5, 100), follower("b", 1, 11),
                  leader("a", 20, 30, 5, 120), follower("b", 22, 32),
                  leader("b", 110, 130, 6, 220), follower("a", 131, 132),
                  leader("b", 140, 150, 6, 230)) == []


def test_validity_that_still_runs_when_another_leads():
    found = judged(leader("a", 0, 10, 5, 100), leader("b", 80, 99, 6, 180))
    assert len(found) == 1 and found[0].startswith("two leaders")


def test_only_what_is_certain_is_reported():
    # b may have been composed after a's deadline: it was received after it.
    assert judged(leader("a", 0, 10, 5, 100), leader("b", 80, 100, 6, 180)) == []


def test_a_late_answer_of_a_stopped_process_is_no_overlap():
    # Composed before the deadline 100, read much later; b has led since 120.
    assert judged(leader("b", 120, 130, 6, 300), leader("a", 5, 200, 5, 100)) == []


def test_an_answer_that_revives_an_old_grant():
    found = judged(leader("a", 0, 10, 5, 100), leader("b", 120, 130, 6, 300),
                   leader("a", 140, 150, 5, 250))
    assert any(f.startswith("two leaders") for f in found)
    assert any(f.startswith("tokens fell") for f in found)


def test_both_orders_of_arrival():
    found = judged(leader("b", 10, 20, 6, 200), leader("a", 15, 25, 5, 100))
    assert any(f.startswith("two leaders") for f in found)


def test_an_overlap_with_the_grant_before_the_last():
    found = judged(leader("a", 0, 10, 5, 1000), leader("b", 20, 30, 6, 40),
                   leader("c", 50, 60, 7, 200))
    assert sum("a (5)" in f and "c (7)" in f for f in found) == 1


def test_the_longest_promise_counts_not_the_last():
    found = judged(leader("a", 0, 10, 5, 500), leader("a", 20, 30, 5, 90),
                   leader("b", 100, 110, 6, 300))
    assert any(f.startswith("two leaders") for f in found)


def test_one_token_of_two_replicas():
    found = judged(leader("a", 0, 10, 5, 50), leader("b", 60, 70, 5, 160))
    assert any("came from a and b" in f for f in found)


def test_a_token_that_falls():
    found = judged(leader("a", 0, 10, 5, 50), leader("b", 60, 70, 4, 160))
    assert any(f.startswith("tokens fell") for f in found)


def test_an_answer_after_its_own_deadline():
    found = judged(leader("a", 100, 110, 5, 99))
    assert len(found) == 1 and found[0].startswith("late answer")


def test_answers_out_of_order_are_refused():
    with pytest.raises(AssertionError):
        judged(follower("a", 0, 10), follower("a", 0, 9))


def test_readers_that_have_stopped_hold_nobody_up():
    history = History()
    history.add(leader("a", 0, 10, 5, 500))
    history.stop_readers("a", 20)
    history.add(leader("a", 15, 25, 5, 500))
    history.add(leader("b", 30, 40, 6, 500))
    assert history.violations == []
    history.add(leader("a", 50, 60, 5, 700))  # but this is after another has led
    assert history.violations


def test_readers_that_are_back_count_again():
    history = History()
    history.stop_readers("a", 0)
    history.resume_readers("a")
    history.add(leader("a", 5, 10, 5, 500))
    history.add(leader("b", 30, 40, 6, 500))
    assert history.violations


def slow_judge(answers):
    """Two leaders by the definition, without any shortcut."""
    leaders = [a for a in answers if a.leader]
    return any(a.replica != b.replica and a.receive < b.deadline and b.receive < a.deadline
               for a, b in itertools.combinations(leaders, 2))


def test_agrees_with_the_definition_on_random_histories():
    rng = random.Random(7)
    outcomes = set()
    for _ in range(3000):
        answers = []
        for receive in sorted(rng.sample(range(1000), rng.randint(2, 6))):
            send = receive - rng.randint(0, 300)
            answers.append(leader(rng.choice("abc"), send, receive, rng.randint(1, 1 << 40),
                                  send + rng.randint(0, 400)))
        overlaps = slow_judge(answers)
        found = any(v.startswith("two leaders") for v in judged(*answers))
        assert found == overlaps, answers
        outcomes.add(overlaps)
    assert outcomes == {True, False}
