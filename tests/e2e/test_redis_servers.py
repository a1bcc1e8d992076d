"""Servers that are not the one Redis master that gavel wants: it says what they are and what would
be right, does not lead there, and does not hammer them."""

import pytest

from e2e.told import QUICK, alive, wait_told
from kit.clock import boottime_ns, wait_until
from kit.fake_redis import FakeRedis, error
from kit.ports import free_port
from kit.redis_server import Redis
from kit.resp import Resp, RespError


def asked_in_a_second(fake):
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 10 ** 9)
    return fake.count("acquire", since=since)


def test_a_cluster_that_serves_no_slot(folder, closing, start):
    # The bus wants a port 10000 above, which has to be a port.
    node = closing(Redis(folder + "/node", ["--cluster-enabled", "yes",
                                            "--cluster-port", str(free_port())]))
    a = start("pod-a", *QUICK, store=node.url)
    wait_told(a, "store-refused", "Redis Cluster", "not supported",
              "a Redis outside of cluster mode", state="unknown")
    before = int(node.cli("INFO", "stats").split("total_commands_processed:")[1].split()[0])
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 10 ** 9)
    after = int(node.cli("INFO", "stats").split("total_commands_processed:")[1].split()[0])
    assert after - before < 50, "a storm"
    alive(a)


@pytest.fixture
def cluster(folder, closing):
    """Two nodes; the second one has all slots."""
    nodes = []
    for name in ("one", "two"):
        # The bus wants a port 10000 above, which has to be a port.
        nodes.append(closing(Redis(f"{folder}/{name}", ["--cluster-enabled", "yes",
                                                         "--cluster-port", str(free_port())])))
    one, two = nodes
    two.cli("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    bus = two.options[two.options.index("--cluster-port") + 1]
    one.cli("CLUSTER", "MEET", "127.0.0.1", two.port, bus)
    wait_until(lambda: "cluster_state:ok" in one.cli("CLUSTER", "INFO"), 20, "they have met")
    return nodes


def test_a_cluster_node_that_has_the_slot(cluster, start):
    """It would serve the lock, for as long as the slot stays there."""
    a = start("pod-a", *QUICK, store=cluster[1].url)
    wait_told(a, "store-refused", "Redis Cluster", "not supported", state="unknown")
    assert not a.leads() and cluster[1].lease("a") is None


def test_a_cluster_node_that_points_elsewhere(cluster, start):
    one, two = cluster
    for node in cluster:
        node.cli("ACL", "SETUSER", "default", "-info")  # it does not tell that it is one
    a = start("pod-a", *QUICK, store=one.url)
    wait_told(a, "store-refused", "MOVED", "Redis Cluster", "not supported", state="unknown")
    # A slot that is being moved away answers ASK; that node had it.
    slot = two.cli("CLUSTER", "KEYSLOT", two.lease_key("a"))
    assert slot == two.cli("CLUSTER", "KEYSLOT", two.record_key("a")), "keys of two slots"
    two.cli("CLUSTER", "SETSLOT", slot, "MIGRATING", one.cli("CLUSTER", "MYID"))
    b = start("pod-b", *QUICK, store=two.url)
    wait_told(b, "store-refused", "ASK", "Redis Cluster", "not supported", state="unknown")
    assert not a.leads() and not b.leads()


def test_keys_of_two_slots_would_be_told(closing, start):
    fake = closing(FakeRedis())
    fake.say("acquire", error("CROSSSLOT Keys in request don't hash to the same slot"))
    a = start("pod-a", "--ttl", "10s", store=fake.url)
    wait_told(a, "store-refused", "CROSSSLOT", "Redis Cluster", state="unknown")
    assert asked_in_a_second(fake) <= 6


def test_a_replica(redis, folder, closing, start):
    replica = closing(Redis(folder + "/replica", ["--replicaof", f"127.0.0.1 {redis.port}"]))
    a = start("pod-a", *QUICK, store=replica.url)
    wait_told(a, "store-refused", "not a master", state="unknown")
    assert redis.lease() is None and not a.leads()
    replica.cli("REPLICAOF", "NO", "ONE")
    a.wait_leader()


def test_a_server_without_script_evalsha_and_info(folder, closing, start):
    """Only EVAL is needed. Without INFO nothing can be proved, so that it waits."""
    redis = closing(Redis(folder + "/renamed", [
        "--rename-command", "SCRIPT", "", "--rename-command", "EVALSHA", "",
        "--rename-command", "INFO", ""]))
    a = start("pod-a", "--ttl", "1s", "--drain", "none", store=redis.url)
    a.wait_state("pending")
    assert a.wait_leader().token
    assert a.stop() == 0
    assert redis.lease() is None, "it was not released"


def test_a_server_without_eval(folder, closing, start):
    redis = closing(Redis(folder + "/renamed", [
        "--rename-command", "EVALSHA", "", "--rename-command", "EVAL", ""]))
    a = start("pod-a", *QUICK, store=redis.url)
    wait_told(a, "store-refused", "unknown command 'EVAL'", "gavel needs EVAL", state="unknown")
    assert redis.cli("KEYS", "*") == []
    alive(a)


def test_a_server_that_is_too_old(closing, start):
    """What Redis before 3.2 says to a script that reads the clock and then writes."""
    fake = closing(FakeRedis())
    fake.say("acquire", error("ERR Error running script (call to f_4f): @user_script:171: "
                              "@user_script: 171: Write commands not allowed after non "
                              "deterministic commands"))
    a = start("pod-a", *QUICK, store=fake.url)
    wait_told(a, "store-refused", "too old", "Redis 4 or later", state="unknown")
    assert asked_in_a_second(fake) <= 25
    alive(a)


def test_a_server_with_no_connection_left(redis, start):
    with Resp(redis.port) as one:
        one.call("CONFIG", "SET", "maxclients", "1")
        a = start("pod-a", *QUICK)
        wait_told(a, "store-refused", "max number of clients", state="unknown")
        one.call("CONFIG", "SET", "maxclients", "100")
    a.wait_leader()


def test_a_database_that_is_not_there(redis, start):
    a = start("pod-a", *QUICK, store=redis.url + "/99")
    wait_told(a, "store-refused", "DB index is out of range", state="unknown")
    with pytest.raises(RespError):
        redis.cli("SELECT", "99")
    assert redis.cli("KEYS", "*") == []
