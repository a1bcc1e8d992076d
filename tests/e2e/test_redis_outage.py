"""The store goes away, hangs, or comes back: a state, never an error."""

from kit.clock import MS, S, boottime_ns, wait_until
from kit.sidecar import TIMING


def outage_longer_than_the_lease(redis, start, sample, stop, resume):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a])
    stop()
    since = boottime_ns()
    wait_until(lambda: not a.check().leader, 5, "not leader any more")
    ended = boottime_ns()
    assert ended - since <= 1 * S + sampler.stalled_ns(since, ended) + (0 if TIMING else S)
    wait_until(lambda: a.state() == "unknown", 5)
    assert a.status()["reason"] in ("store-unreachable", "deadline")
    assert a.probe("/livez").status == 200
    assert a.metrics()["gavel_store_up"] == 0
    resume()
    again = a.wait_leader(10)
    assert again.token > token
    assert a.process.poll() is None
    assert a.metrics()["gavel_store_up"] == 1
    sampler.stop()


def test_stopped_and_started(redis, start, sample):
    outage_longer_than_the_lease(redis, start, sample, redis.stop, redis.start)


def test_killed_and_started(redis, start, sample):
    outage_longer_than_the_lease(redis, start, sample, redis.kill, redis.start)


def test_hanging_and_going_on(redis, start, sample):
    outage_longer_than_the_lease(redis, start, sample, redis.freeze, redis.thaw)


def test_leadership_is_kept_while_the_lease_lasts_hanging(redis, start, sample):
    a = start("pod-a", "--ttl", "4s", "--mode", "efficiency", fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a])
    redis.freeze()
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 1200 * MS)
    redis.thaw()
    wait_until(lambda: boottime_ns() - since > 5 * S)
    assert a.check().token == token
    sampler.stop()
    assert [c for c in sampler.changes if not c.leader] == []


def test_leadership_is_kept_while_the_lease_lasts_restarted(redis, start, sample):
    a = start("pod-a", "--ttl", "4s", fixed_port=True)
    token = a.wait_leader(10).token
    sampler = sample([a])
    redis.cli("SAVE")
    redis.kill()
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 300 * MS)
    redis.start()
    wait_until(lambda: boottime_ns() - since > 5 * S)
    assert a.check().token == token
    sampler.stop()
    assert [c for c in sampler.changes if not c.leader] == []


def test_started_before_the_store(redis, start):
    redis.kill()
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    assert a.state() == "unknown"
    assert a.ask("check") == "follower -"
    assert a.request("/v1/leader").status == 503
    wait_until(lambda: a.status()["reason"] == "store-unreachable", 5)
    redis.start()
    a.wait_leader(5)


def test_step_down_on_the_first_renewal_that_fails(redis, start):
    a = start("pod-a", "--ttl", "6s", "--mode", "efficiency", "--on-renew-failure", "step-down")
    a.wait_leader()
    redis.freeze()
    since = boottime_ns()
    wait_until(lambda: not a.check().leader, 8)
    # A renewal is due within 2 s, its timeout is 1 s; the lease would have lasted for 4.8 s.
    assert boottime_ns() - since < 3.8 * S + (0 if TIMING else S)
    redis.thaw()


def test_the_lease_deleted_by_hand_ends_the_leadership_at_the_next_renewal(redis, start):
    a = start("pod-a", "--ttl", "3s")
    token = a.wait_leader(6).token
    redis.cli("DEL", redis.lease_key("a"))
    wait_until(lambda: not a.check().leader, 2)
    wait_until(lambda: a.event("state", reason="renewal-refused"), 5, "the log says why")
    assert a.wait_leader(10).token > token


def test_a_foreign_value_is_reported_and_left_alone(redis, start):
    redis.cli("SET", redis.lease_key("a"), "somebody else's")
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    wait_until(lambda: a.status()["reason"] == "foreign-value", 5)
    assert not a.check().leader
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 1500 * MS)
    assert redis.lease() == "somebody else's"
    assert redis.cli("PTTL", redis.lease_key("a")) == -1
    redis.cli("DEL", redis.lease_key("a"))
    redis.cli("LPUSH", redis.lease_key("a"), "x")
    wait_until(lambda: a.status()["reason"] == "foreign-value", 5)
    assert redis.cli("TYPE", redis.lease_key("a")) == "list"
    redis.cli("DEL", redis.lease_key("a"))
    a.wait_leader(5)


def test_a_lease_without_expiry_is_given_one(redis, start):
    a = start("pod-a", "--ttl", "2s", "--mode", "efficiency", "--drain", "none")
    a.wait_leader()
    a.freeze()
    value = redis.lease()
    redis.cli("PERSIST", redis.lease_key("a"))
    b = start("pod-b", "--ttl", "2s", "--mode", "efficiency")
    wait_until(lambda: 0 < redis.cli("PTTL", redis.lease_key("a")) <= 2000
               or redis.lease() != value, 5)
    b.wait_leader(6)


def test_a_read_only_replica_is_never_led_on(redis, folder, closing, start):
    from kit.redis_server import Redis
    replica = closing(Redis(folder + "/replica",
                            ["--replicaof", f"127.0.0.1 {redis.port}",
                             "--replica-read-only", "no"]))
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=replica.url)
    wait_until(lambda: a.status()["reason"] == "store-refused", 5)
    assert not a.check().leader and replica.lease() is None
    replica.cli("REPLICAOF", "NO", "ONE")
    a.wait_leader(5)
