"""How leadership starts and is handed over on Redis when nothing fails."""

import re

from kit.clock import MS, S, boottime_ns, wait_until
from kit.sidecar import GAVEL, TIMING, run


def test_a_handover_waits_for_the_validity_that_was_handed_out(start, sample):
    options = ("--ttl", "3s", "--valid-for", "1s")
    a = start("pod-a", *options)
    a.wait_leader(10)
    b = start("pod-b", *options)  # both wait for what has no clean mark
    b.wait_state("follower")
    sampler = sample([b])
    asked = boottime_ns()
    http = a.request("/v1/leader").json()
    answered = a.check()
    assert answered.leader and 900 <= answered.valid_ms <= 1000
    assert http["leader"] and answered.deadline >= asked + http["valid_for_ms"] * MS
    a.terminate()
    wait_until(lambda: not a.check().leader or None)
    assert a.state() == "resigning"
    reply = a.request("/v1/leader")
    assert reply.status == 503 and reply.json()["holder"] == ""
    first = sampler.wait_for_leader(answered.receive)
    late = first.receive - answered.deadline
    assert late >= 0, f"handed over {-late / MS} ms before a validity ended"
    assert a.wait() == 0
    sampler.stop()
    if TIMING:
        assert late <= 200 * MS + sampler.stalled_ns(answered.deadline, first.receive), late / MS


def test_without_readers_a_handover_is_at_once(start):
    """Without a shared page too: nobody can know who has read that."""
    a = start("pod-a", "--ttl", "10s", "--mode", "efficiency", "--page-dir", "off")
    wait_until(lambda: a.metrics().get('gavel_leader{election="a"}') == 1)
    b = start("pod-b", "--ttl", "10s", "--mode", "efficiency")
    b.wait_state("follower")
    since = boottime_ns()
    assert a.stop() == 0
    check = b.wait_leader(3)
    if TIMING:
        assert check.receive - since < 500 * MS


def test_resign_drains_and_the_process_stays_and_stands_back(start):
    options = ("--ttl", "2s", "--valid-for", "500ms")
    a = start("pod-a", *options, "--mode", "efficiency")
    a.wait_leader()
    b = start("pod-b", *options)
    b.wait_state("follower")
    answered = a.check()
    done = run(GAVEL, "resign", "--socket", a.socket_path)
    resigned = boottime_ns()
    assert done.returncode == 0, done.stderr
    assert resigned >= answered.deadline, "given back while a validity still ran"
    assert not a.check().leader
    taken = b.wait_leader()
    assert taken.token > answered.token
    status = a.status()
    assert status["state"] in ("follower", "unknown") and status["leader"] is False
    # It stands back for W: with the other one gone, nobody takes the lock before that.
    assert b.stop() == 0
    again = a.wait_leader(10)
    # Counted from the earliest release: the command's own end may be late.
    assert again.receive - answered.deadline >= 2 * S and again.token > taken.token


def test_a_first_start_waits_and_says_why(start):
    began = boottime_ns()
    a = start("pod-a", "--ttl", "3s")
    a.wait_state("pending", 2)
    status = a.status()
    assert status["reason"] == "waiting-for-old-lease" and status["holder"] == ""
    assert status["leader"] is False and status["token"] is None and status["valid_for_ms"] == 0
    words = run(GAVEL, "status", "--socket", a.socket_path)
    assert words.returncode == 0
    seconds = re.search(r"(\d+(?:\.\d+)?) ?s", words.stdout)
    assert seconds and 0 < float(seconds.group(1)) <= 3, words.stdout
    assert re.search(r"record|earlier|older|last lease", words.stdout), words.stdout
    check = a.wait_leader(5)
    assert check.receive - began >= 3 * S
    if TIMING:
        assert check.receive - began < 4 * S


def test_a_first_start_in_efficiency_leads_at_once(start):
    a = start("pod-a", "--ttl", "10s", "--mode", "efficiency")
    assert a.wait_leader(3).token > 10 ** 12


def test_after_a_clean_stop_of_all_the_next_start_leads_at_once(start):
    first = start("pod-a", "--ttl", "2s")
    second = start("pod-b", "--ttl", "2s")
    wait_until(lambda: first.leads() or second.leads())
    token = max(first.check().token, second.check().token)
    first.terminate()
    second.terminate()
    assert first.wait() == 0 and second.wait() == 0
    began = boottime_ns()
    third = start("pod-c", "--ttl", "30s")
    check = third.wait_leader(5)
    assert check.token > token
    wait_until(lambda: third.event("state", to="leader"))
    assert not third.event("state", to="pending")
    assert check.receive - began < 5 * S


def test_a_unix_socket_of_redis(redis, start):
    a = start("pod-a", "--mode", "efficiency", store=f"redis+unix:{redis.unix_path}")
    a.wait_leader()
    assert a.status()["store"] == "redis" and redis.lease()


def test_database_in_the_url_is_used(redis, start):
    a = start("pod-a", "--mode", "efficiency", store=redis.url + "/3")
    a.wait_leader()
    assert redis.lease() is None
    assert "db3" in redis.cli("INFO", "keyspace")
    assert "/3/" in a.status()["lock_space"]


def test_tokens_are_above_the_floor(redis, start):
    a = start("pod-a", "--mode", "efficiency", "--token-floor", "50000000000000")
    assert a.wait_leader().token >= 50000000000000


def test_what_lies_in_the_store(redis, start):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "7s")
    token = a.wait_leader().token
    value = redis.lease()
    assert "pod-a" in value and str(token) in value
    assert 0 < redis.cli("PTTL", redis.lease_key("a")) <= 7000
    assert redis.cli("TTL", redis.record_key("a")) == -1
    assert str(token) in redis.record().values()
    assert sorted(redis.cli("KEYS", "*")) == [redis.lease_key("a"), redis.record_key("a")]


def test_a_resignation_is_not_forgotten_among_messages(start, redis):
    """Both reach the loop in one turn: the message must not put the resignation off."""
    a = start("pod-a", "--ttl", "60s", "--valid-for", "300ms", "--mode", "efficiency")
    a.wait_leader()
    with a.connection() as s:
        s.sendall(b"check\n")
        assert s.recv(100).startswith(b"leader ")
        a.freeze()
        s.sendall(b"resign\n")
        for _ in range(20):
            redis.cli("PUBLISH", "gavel:{default/a}:released", "7 clean")
        a.thaw()
        assert s.recv(100) == b"ok\n"  # within the timeout of the connection, 10 s
