"""What acknowledgements of replicas are good for, and what goes wrong without them."""

from kit.clock import MS, S, boottime_ns, wait_until
from kit.redis_server import Redis

TTL = ("--ttl", "1s")
TTL_NS = 1 * S


def refused(sidecar, result="unsure"):
    return sidecar.metrics()[f'gavel_store_requests_total{{op="renew",result="{result}"}}']


def test_a_leader_on_a_cut_off_master_stops_by_its_deadline(redis, replica, link, start,
                                                             sample):
    """The replica is made master elsewhere: nobody leads on both sides."""
    a = start("pod-a", *TTL, "--redis-wait-replicas", "1", store=redis.url, fixed_port=True)
    first = a.wait_leader(10)
    assert a.status()["warnings"] == []
    wait_until(lambda: replica.lease() == redis.lease(), 5)
    b = start("pod-b", *TTL, store=replica.url, fixed_port=True)
    sampler = sample([a, b])
    sampler.wait_for_leader(0)
    link.freeze()
    last = a.check()
    replica.cli("REPLICAOF", "NO", "ONE")
    wait_until(lambda: not a.check().leader, 5, "not leader any more")
    wait_until(lambda: a.state() == "unknown", 5)
    wait_until(lambda: "0 of 1 replicas acknowledged" in
               a.probe("/readyz?verbose").body.decode(), 10)
    wait_until(lambda: a.event("store", reason="store-refused",
                               problem="0 of 1 replicas acknowledged (--redis-wait-replicas)"), 5)
    second = b.wait_leader(10)
    assert second.token > first.token and second.receive > last.deadline
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 2 * TTL_NS)
    assert not a.leads() and b.leads()
    sampler.stop()


def test_a_replica_that_is_slow_for_less_than_the_lease_costs_nothing(redis, replica, link,
                                                                       start, sample):
    a = start("pod-a", "--ttl", "4s", "--mode", "efficiency", "--redis-wait-replicas", "1",
              fixed_port=True)
    token = a.wait_leader(10).token
    sampler = sample([a])
    # From one renewal on, over the next one.
    before = refused(a, "yes")
    wait_until(lambda: refused(a, "yes") > before, 5)
    replica.freeze()
    wait_until(lambda: refused(a) > 0, 5, "a renewal was not acknowledged")
    replica.thaw()
    before = refused(a, "yes")
    wait_until(lambda: refused(a, "yes") > before, 5)
    assert a.check().token == token
    sampler.stop()
    assert [c for c in sampler.changes if not c.leader] == []


def test_nobody_leads_before_the_replica_has_it(redis, replica, link, start):
    """The grant is there, and is found again under its name once the replica is back."""
    link.freeze()
    a = start("pod-a", *TTL, "--mode", "efficiency", "--redis-wait-replicas", "1")
    wait_until(lambda: a.status()["reason"] == "store-refused", 5)
    granted = wait_until(redis.lease, 5)
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 500 * MS)
    assert not a.check().leader and redis.lease() == granted
    link.thaw()
    a.wait_leader(5)
    assert replica.lease() == redis.lease() == granted
    # A follower is told no at once, and a release does not wait either.
    b = start("pod-b", *TTL, "--redis-wait-replicas", "1")
    b.wait_state("follower", 5)
    link.freeze()
    assert a.stop() == 0
    assert redis.lease() != granted


def test_many_elections_wait_together(redis, replica, start):
    """One WAIT covers all that was answered before it. Renewals are spread, but at the start all
    ask at once."""
    names = [f"e{i}" for i in range(200)]

    def calls(command):
        stats = redis.cli("INFO", "commandstats")
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in stats.split("\r\n")
                   if line.startswith(f"cmdstat_{command}:"))
    a = start("pod-a", "--ttl", "5s", "--mode", "efficiency", "--redis-wait-replicas", "1",
              elections=names)
    wait_until(lambda: all(a.leads(n) for n in names), 10)
    assert 0 < calls("wait") < calls("evalsha") * 3 / 4
    wait_until(lambda: calls("evalsha") >= 800, 20)
    assert all(a.leads(n) for n in names)


def test_without_them_the_status_warns_and_tokens_rise(redis, replica, link, start):
    a = start("pod-a", *TTL, fixed_port=True)
    first = a.wait_leader(10)
    wait_until(lambda: a.status()["warnings"] == ["store-replicated-async", "overlap-possible"], 5)
    assert a.status()["failover_safety"] == "asynchronous"
    assert a.metrics()['gavel_warning{code="overlap-possible"}'] == 1
    assert "a: overlap-possible" in a.probe("/readyz?verbose").body.decode()
    wait_until(lambda: replica.lease() == redis.lease(), 5)
    link.sever()
    replica.cli("REPLICAOF", "NO", "ONE")
    b = start("pod-b", *TTL, store=replica.url)
    assert b.wait_leader(10).token > first.token
    assert a.leads()  # which is what the warning is about; it stays when the replica is gone
    wait_until(lambda: a.status()["warnings"] == ["overlap-possible"], 5)


def test_one_of_three_is_no_majority(redis, replica, link, folder, closing, start):
    """One replica's word and the master's are two of four: two others may elect another."""
    for name in ("second", "third"):
        closing(Redis(f"{folder}/{name}", ["--replicaof", f"127.0.0.1 {link.port}"]))
    wait_until(lambda: "connected_slaves:3" in redis.cli("INFO", "replication"), 10)
    quick = ("--ttl", "1s", "--mode", "efficiency", "--redis-wait-replicas")
    a = start("pod-a", *quick, "1")
    a.wait_leader(5)
    assert a.status()["warnings"] == ["overlap-possible"]
    a.stop()
    b = start("pod-b", *quick, "2")
    b.wait_leader(5)
    assert b.status()["warnings"] == []


def test_wait_that_is_not_allowed(redis, replica, start):
    redis.cli("ACL", "SETUSER", "gavel", "on", ">secret", "~gavel:*", "&gavel:*", "+@all", "-wait")
    a = start("pod-a", *TTL, "--mode", "efficiency", "--redis-wait-replicas", "1",
              env={"GAVEL_STORE_USER": "gavel", "GAVEL_STORE_PASSWORD": "secret"})
    wait_until(lambda: a.status()["reason"] == "store-refused", 5)
    assert "WAIT is needed for --redis-wait-replicas (allow +wait)" in \
        a.probe("/readyz?verbose").body.decode()
    assert not a.check().leader
    redis.cli("ACL", "SETUSER", "gavel", "+wait")
    a.wait_leader(5)
    assert "store redis: up, redis 7" in a.probe("/readyz?verbose").body.decode()
