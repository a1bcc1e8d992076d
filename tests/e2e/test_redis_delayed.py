"""The rules of delayed leading, each with a real server: whenever the store cannot prove how the
last lease ended, a grant waits for W before it leads."""

import signal

from kit.clock import MS, S, boottime_ns, wait_until
from kit.clockshim import ClockShim
from kit.redis_server import Redis

TTL = ("--ttl", "1500ms")
TTL_NS = 1500 * MS


def pended(sidecar):
    """Whether it was pending before it led, by its log."""
    wait_until(lambda: sidecar.event("state", to="leader"), 5, "the log says that it leads")
    return any(e.get("to") == "pending" for e in sidecar.events)


def lead_and_stop_cleanly(start, store):
    """Leaves a record with the clean mark. In efficiency it would write none before W."""
    x = start("pod-x", *TTL, store=store)
    token = x.wait_leader().token
    assert x.stop() == 0
    return token


def leads_after_waiting(sidecar, since):
    check = sidecar.wait_leader(10)
    assert pended(sidecar), "it led without waiting"
    assert check.receive - since >= TTL_NS
    return check


def test_lost_reply_of_an_acquire_with_no_record(redis, relay, start):
    relay.drop_reply_when(lambda: redis.cli("EXISTS", redis.lease_key("a")) == 1)
    a = start("pod-a", *TTL, store=relay.url)
    wait_until(lambda: relay.dropped == 1, 5)
    since = boottime_ns()
    lost = redis.lease()
    a.wait_state("pending", 5)
    assert redis.lease() == lost, "the retry was not the same grant"
    leads_after_waiting(a, since)


def test_lost_reply_of_an_acquire_after_a_clean_end(redis, relay, start):
    """The answer is kept with the grant: the retry is told `clean` again."""
    old = lead_and_stop_cleanly(start, redis.url)
    relay.drop_reply_when(lambda: redis.cli("EXISTS", redis.lease_key("a")) == 1)
    a = start("pod-a", "--ttl", "20s", store=relay.url)
    wait_until(lambda: relay.dropped == 1, 5)
    lost = redis.lease()
    check = a.wait_leader(10)
    assert check.token > old and redis.lease() == lost
    assert not pended(a)


def test_lost_reply_of_an_acquire_after_a_lease_that_ran_out(redis, relay, start):
    """`end` becomes `none`: what the retry sees of the clock is not what the grant saw."""
    a = start("pod-a", *TTL, "--mode", "efficiency")
    a.wait_leader()
    b = start("pod-b", *TTL, store=relay.url)
    b.wait_state("follower")
    up = boottime_ns()
    wait_until(lambda: boottime_ns() - up > 2 * TTL_NS)
    a.kill9()
    old = redis.lease()
    relay.drop_reply_when(lambda: redis.lease() not in (None, old))
    wait_until(lambda: relay.dropped == 1, 5)
    leads_after_waiting(b, boottime_ns())


def test_a_follower_that_vouches_takes_over_at_the_expiry(redis, relay, start, timely):
    """The same without a lost reply: it leads at once. Else the test above would show nothing.
    A longer ttl, so that a busy machine does not make the round trips too long to vouch."""
    a = start("pod-a", "--ttl", "4s", "--mode", "efficiency")
    a.wait_leader()
    b = start("pod-b", "--ttl", "4s", store=relay.url)
    b.wait_state("follower")
    up = boottime_ns()
    wait_until(lambda: boottime_ns() - up > 8 * S, 20)
    a.kill9()
    b.wait_leader(10)
    assert not pended(b)


def test_a_grant_that_never_led_is_released_without_the_clean_mark(redis, start):
    a = start("pod-a", "--ttl", "4s")
    a.wait_state("pending", 5)
    assert a.stop() == 0
    assert redis.lease() is None, "it was not released"
    b = start("pod-b", *TTL)
    b.wait_state("pending", 5)
    since = boottime_ns()
    b.wait_leader(10)
    # W is the longest ttl that the record knows: the 4 s of the grant that never led.
    assert boottime_ns() - since > 3 * S


def test_a_replica_promoted_without_the_key(redis, replica, link, start):
    """Its record ends with the clean mark of the lease before; only that it was written by another
    server tells a newcomer not to believe it."""
    lead_and_stop_cleanly(start, redis.url)
    wait_until(lambda: replica.record() == redis.record() != {}, 5)
    link.sever()
    old = start("pod-old", *TTL, store=redis.url)
    old.wait_leader()
    promised = old.check()
    old.freeze()
    redis.kill()
    since = boottime_ns()
    replica.cli("REPLICAOF", "NO", "ONE")
    assert replica.lease() is None and replica.record()["clean"] == "1"
    new = start("pod-new", *TTL, store=replica.url)
    check = leads_after_waiting(new, since)
    assert check.receive > promised.deadline and check.token > promised.token


def test_those_who_have_seen_a_greater_token_do_not_believe_it_either(
        redis, replica, link, relay, start, sample):
    lead_and_stop_cleanly(start, relay.url)
    wait_until(lambda: replica.record() == redis.record() != {}, 5)
    link.sever()
    pods = [start(f"pod-{i}", *TTL, store=relay.url, fixed_port=True) for i in "ab"]
    sampler = sample(pods)
    first = sampler.wait_for_leader(0)
    wait_until(lambda: any(p.state() == "follower" for p in pods))
    redis.kill()
    since = boottime_ns()
    replica.cli("REPLICAOF", "NO", "ONE")
    relay.switch(replica.port)
    taken = wait_until(lambda: [c for c in sampler.changes if c.token > first.token], 10)[0]
    assert taken.receive - since >= TTL_NS, "the promoted replica's clean mark was believed"
    sampler.stop()


def test_an_old_snapshot_restored(redis, start, sample):
    lead_and_stop_cleanly(start, redis.url)
    redis.cli("SAVE")  # with the clean mark
    pods = [start(f"pod-{i}", *TTL, fixed_port=True) for i in "ab"]
    sampler = sample(pods)
    first = sampler.wait_for_leader(0)
    # Both have learnt the token before the server forgets it.
    wait_until(lambda: any(p.state() == "follower" for p in pods))
    redis.kill()
    since = boottime_ns()
    redis.start()
    assert redis.lease() is None
    taken = wait_until(lambda: [c for c in sampler.changes if c.token > first.token], 10)[0]
    assert taken.receive - since >= TTL_NS, "the old clean mark was believed"
    sampler.stop()


def test_the_record_lost_while_the_leader_is_stopped(redis, start, sample):
    pods = [start(f"pod-{i}", *TTL, fixed_port=True) for i in "ab"]
    sampler = sample(pods)
    first = sampler.wait_for_leader(0, timeout=15)
    leader = next(p for p in pods if p.identity == first.replica)
    wait_until(lambda: any(p.state() == "follower" for p in pods if p is not leader))
    leader.freeze()
    since = boottime_ns()
    redis.cli("FLUSHALL")
    taken = sampler.wait_for_leader(since, besides=(first.replica,))
    assert taken.receive - since >= TTL_NS and taken.token > first.token
    leader.thaw()
    sampler.stop()


def test_a_wall_clock_that_steps_forward(folder, closing, start, sample):
    """The key expires early and the recorded end seems to have passed: nobody may believe it."""
    shim = ClockShim(folder)
    redis = closing(Redis(folder + "/stepped", env=shim.env))
    pods = [start(f"pod-{i}", "--ttl", "2s", store=redis.url, fixed_port=True) for i in "ab"]
    sampler = sample(pods)
    first = sampler.wait_for_leader(0, timeout=15)
    leader = next(p for p in pods if p.identity == first.replica)
    follower = next(p for p in pods if p is not leader)
    # Long enough to vouch for the clock, were it steady.
    wait_until(lambda: boottime_ns() - follower.started_ns > 5 * S)
    leader.freeze()
    since = boottime_ns()
    shim.step(3)
    taken = sampler.wait_for_leader(since, besides=(first.replica,), timeout=15)
    assert pended(follower)
    assert taken.receive - since >= 2 * S and taken.token > first.token
    leader.thaw()
    sampler.stop()


def test_a_wall_clock_that_steps_back_does_not_lower_the_token(folder, closing, start):
    shim = ClockShim(folder)
    redis = closing(Redis(folder + "/stepped", env=shim.env))
    a = start("pod-a", *TTL, "--mode", "efficiency", store=redis.url)
    first = a.wait_leader()
    a.stop()
    shim.step(-3600)
    b = start("pod-b", *TTL, "--mode", "efficiency", store=redis.url)
    assert b.wait_leader().token > first.token


def test_replicas_with_different_ttl_wait_for_the_longest(redis, start, sample):
    slow = start("pod-slow", "--ttl", "4s", "--mode", "efficiency", fixed_port=True)
    first = slow.wait_leader()
    quick = start("pod-quick", "--ttl", "1s", fixed_port=True)
    quick.wait_state("follower")
    sampler = sample([slow, quick])
    sampler.wait_for_leader(first.receive)
    slow.freeze()
    since = boottime_ns()
    redis.cli("FLUSHALL")  # only what the follower has seen tells of the 4 s
    taken = sampler.wait_for_leader(since, besides=("pod-slow",))
    assert taken.receive - since >= 4 * S, "it waited for its own ttl only"
    slow.thaw()
    sampler.stop()


def test_the_nonce_of_an_ended_grant_is_released_and_never_used_again(redis, start):
    a = start("pod-a", "--ttl", "3s", "--mode", "efficiency")
    first = a.wait_leader()
    ended = redis.lease()
    redis.cli("DEL", redis.lease_key("a"))
    wait_until(lambda: redis.lease() not in (None, ended), 6)
    a.wait_leader()
    # As if a request of the first grant were carried out only now.
    redis.cli("SET", redis.lease_key("a"), ended, "PX", 3000)
    put = boottime_ns()
    wait_until(lambda: redis.lease() != ended, 5, poll=0.001)
    assert boottime_ns() - put < 2500 * MS, "it was left to expire"
    assert redis.record()["clean"] == "0"
    wait_until(lambda: redis.lease() not in (None, ended), 5)
    assert a.wait_leader(5).token > first.token


def test_without_the_right_to_info_every_grant_waits(folder, closing, start):
    """Who cannot tell the server apart can prove nothing, and works all the same."""
    redis = closing(Redis(folder + "/limited"))
    redis.cli("ACL", "SETUSER", "gavel", "on", ">secret", "~gavel:*", "&gavel:*", "+@all", "-info")
    env = {"GAVEL_STORE_USER": "gavel", "GAVEL_STORE_PASSWORD": "secret"}
    a = start("pod-a", *TTL, store=redis.url, env=env)
    a.wait_leader(10)
    assert a.stop() == 0
    since = boottime_ns()
    b = start("pod-b", *TTL, store=redis.url, env=env)
    leads_after_waiting(b, since)


def test_a_stopped_redis_client_keeps_no_lease(redis, start):
    """SIGSTOP of the leader past its ttl: its first answer afterwards is not `leader`."""
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    a.wait_leader()
    a.freeze()
    wait_until(lambda: redis.lease() is None, 5)
    redis.cli("SET", redis.lease_key("a"), "foreign")
    with a.connection() as waiting:
        waiting.sendall(b"check\n")
        a.signal(signal.SIGCONT)
        assert waiting.recv(200).startswith(b"follower ")
