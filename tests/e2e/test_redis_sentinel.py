"""The master by Sentinels: found, followed through failovers, and what is said when it is not."""

import pytest

from kit.clock import MS, S, boottime_ns, wait_until
from kit.redis_server import Redis
from kit.sentinel import MASTER, Sentinel, Watched
from kit.sidecar import TIMING

TTL = ("--ttl", "1s")
TTL_NS = 1 * S


@pytest.fixture
def watched(folder, closing):
    return closing(Watched(folder))


def run_id(server):
    return next(line.split(":")[1] for line in server.cli("INFO", "server").split("\r\n")
                if line.startswith("run_id:"))


def has_moved(pod, server):
    return pod.status()["lock_space"].startswith(run_id(server) + "/")


def two_pods(watched, start, sample, *options):
    pods = [start(f"pod-{i}", *TTL, *options, store=watched.url, env=watched.env, fixed_port=True)
            for i in "ab"]
    sampler = sample(pods)
    first = sampler.wait_for_leader(0, timeout=15)
    wait_until(lambda: any(p.state() == "follower" for p in pods), 5)
    return pods, sampler, first


def test_the_master_is_killed_while_the_replicas_lack_the_key(watched, start, sample):
    old = watched.master()
    watched.cut_off(old, "replica")
    pods, sampler, first = two_pods(watched, start, sample)
    assert all(r.lease() is None and r.record() == {} for r in watched.replicas())
    assert all(has_moved(p, old) for p in pods)
    old.kill()
    new = watched.wait_failover(old)
    since = boottime_ns()
    taken = wait_until(lambda: [c for c in sampler.changes if c.token > first.token], 15)[0]
    if TIMING:
        late_ns = sampler.stalled_ns(since, taken.receive)
        assert taken.receive - since <= TTL_NS + 1 * S + late_ns, "back too late"
    leader = next(p for p in pods if p.identity == taken.replica)
    assert leader.event("state", to="pending"), "it did not wait for the old lease"
    wait_until(lambda: all(has_moved(p, new) for p in pods), 5)
    assert new.lease() is not None
    wait_until(lambda: leader.metrics()["gavel_store_reconnects_total"] >= 1, 2)
    sampler.stop()


def test_an_old_master_that_still_answers_is_left(watched, start, sample):
    """It is cut off from its replicas and from the Sentinels, but not from the sidecars: nothing
    that it says tells them that another is the master now. Some hear of it before the others, and
    only acknowledgements of replicas make sure that nobody leads over there meanwhile."""
    old = watched.master()
    # One for which the old server works as well as ever: only a Sentinel can tell it to go.
    apart = start("pod-c", "--ttl", "6s", "--mode", "efficiency", "--namespace", "apart",
                  store=watched.url, env=watched.env)
    apart.wait_leader(30)
    pods, sampler, first = two_pods(watched, start, sample, "--redis-wait-replicas", "1")
    assert not any("overlap-possible" in p.status()["warnings"] for p in pods)
    watched.cut_off(old, "replica", "sentinel")
    new = watched.wait_failover(old)
    since = boottime_ns()
    wait_until(lambda: all(has_moved(p, new) for p in (*pods, apart)), 30, "all have moved")
    told = [e["why"] for e in apart.event("store-connection-lost")]
    assert told == [f"the Sentinels have made 127.0.0.1:{new.port} the master"]
    assert old.cli("ROLE")[0] == "master" and new.cli("ROLE")[0] == "master"
    if TIMING:
        assert boottime_ns() - since < 2 * S + sampler.stalled_ns(since, boottime_ns())
    # Whoever leads there was told so by a server that is the master.
    wait_until(lambda: any(p.leads() for p in pods), 30)
    assert max(p.check().token for p in pods) >= first.token
    assert new.lease() is not None
    # The subscribers have moved too: a release over there is heard of at once.
    leader = next(p for p in pods if p.leads())
    other = next(p for p in pods if p is not leader)
    other.wait_state("follower")
    held = leader.check().token
    leader.terminate()
    assert other.wait_leader(30).token > held
    sampler.readers("stop", leader)
    assert leader.wait() == 0
    sampler.stop()


def test_a_failover_in_good_order_costs_no_leader_its_lead(watched, start, sample):
    """What was replicated in time goes on over there: the same grant, on another server."""
    a = start("pod-a", "--ttl", "8s", "--mode", "efficiency", store=watched.url, env=watched.env,
              fixed_port=True)
    first = a.wait_leader(30)
    sampler = sample([a])
    old = watched.master()
    wait_until(lambda: all(r.lease() == old.lease() for r in watched.replicas()), 5)
    assert "store-replicated-async" in a.status()["warnings"]
    watched.sentinels[1].cli("SENTINEL", "FAILOVER", MASTER)
    new = watched.wait_failover(old)
    wait_until(lambda: has_moved(a, new), 30, "the sidecar has moved")
    assert a.wait_leader(1).token == first.token
    sampler.stop()
    assert [c for c in sampler.changes if not c.leader] == []


@pytest.fixture
def sentinel(redis, folder, closing):
    return closing(Sentinel(folder + "/sentinel", redis.port))


def wait_problem(sidecar, *texts):
    """Readiness tells of the store's last problem."""
    def told():
        verbose = sidecar.probe("/readyz?verbose").body.decode()
        return all(t in verbose for t in texts)
    try:
        wait_until(told, 5)
    except AssertionError:
        raise AssertionError(f"not told: {texts}\n{sidecar.log()[-2000:]}") from None


def test_the_ports_of_a_sentinel_and_of_a_server_are_not_mixed_up(redis, sentinel, start):
    to_sentinel = start("pod-a", *TTL, store=sentinel.url)
    wait_problem(to_sentinel, f"use redis+sentinel://127.0.0.1:{sentinel.port}/{MASTER}")
    to_server = start("pod-b", *TTL, store=f"redis+sentinel://127.0.0.1:{redis.port}/{MASTER}")
    wait_problem(to_server, "this is no Sentinel", "redis://")
    for sidecar in (to_sentinel, to_server):
        assert sidecar.status()["reason"] == "store-refused" and sidecar.state() == "unknown"
    assert redis.lease() is None


def test_a_master_that_no_sentinel_knows(redis, sentinel, start):
    a = start("pod-a", *TTL, store=f"redis+sentinel://127.0.0.1:{sentinel.port}/other")
    wait_problem(a, "no master is called other")
    assert a.status()["reason"] == "store-refused"


def test_sentinels_that_are_gone_do_not_disturb_a_leader(redis, sentinel, start):
    """They are asked when a connection has to be made, not while there is one."""
    a = start("pod-a", *TTL, "--mode", "efficiency",
              store=f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/{MASTER}")
    token = a.wait_leader(30).token
    sentinel.kill()
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 2 * TTL_NS)
    assert a.check().token == token
    redis.cli("CLIENT", "KILL", "TYPE", "normal")
    wait_problem(a, "none of 2 Sentinels tells the master", "connection refused")
    wait_until(lambda: a.status()["reason"] == "store-unreachable", 5)
    sentinel.start()
    assert a.wait_leader(30).token >= token


def test_a_password_is_for_the_server_and_no_matter_to_a_sentinel_without(folder, closing, start):
    redis = closing(Redis(folder + "/locked"))
    sentinel = closing(Sentinel(folder + "/sentinel", redis.port,
                                lines=[f"sentinel auth-pass {MASTER} secret"]))
    redis.cli("CONFIG", "SET", "requirepass", "secret")
    a = start("pod-a", *TTL, "--mode", "efficiency",
              store=f"redis+sentinel://127.0.0.1:{sentinel.port}/{MASTER}/3",
              env={"GAVEL_STORE_PASSWORD": "secret"})
    a.wait_leader(30)
    assert "/3/" in a.status()["lock_space"]
    locked = closing(Sentinel(folder + "/other", redis.port, lines=["requirepass other"]))
    b = start("pod-b", *TTL, store=f"redis+sentinel://127.0.0.1:{locked.port}/{MASTER}",
              env={"GAVEL_STORE_PASSWORD": "secret"})
    wait_problem(b, "Sentinel", "refused user and password")
    assert "secret" not in b.log()
