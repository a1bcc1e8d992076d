"""Redlock's known counter-examples: a node that forgets, tokens of different majorities, lists of
nodes that differ, one server under two names."""

import random

import pytest

from kit.clock import MS, S, boottime_ns, wait_until
from kit.redlock import Nodes
from kit.sidecar import LONG, TIMING


# A lease of a second cannot be kept on a host that sleeps for longer.
pytestmark = pytest.mark.usefixtures("timely")


@pytest.fixture
def nodes(folder, closing):
    return lambda count: closing(Nodes(folder, count))


def rest(since, ns):
    wait_until(lambda: boottime_ns() - since > ns, 20)


def test_a_node_restarted_empty_gives_no_second_majority(nodes, start, sample):
    """A leads by nodes 1 and 2 and is cut off from 2, which restarts with nothing in it. B finds 2
    and 3 free, and 3 has a clean end on record: only 2's silence about the past holds it back."""
    three = nodes(3)
    ttl = ("--ttl", "3s")
    x = start("pod-x", *ttl, "--drain", "none", store=three.url("pod-x"))
    x.wait_leader(20)
    assert x.stop() == 0  # all three know of a clean end
    three[2].cut("pod-a")
    three[0].cut("pod-b")
    a = start("pod-a", *ttl, store=three.url("pod-a"), fixed_port=True)
    token = a.wait_leader(20).token
    b = start("pod-b", *ttl, store=three.url("pod-b"), fixed_port=True)
    b.wait_state("follower", 5)
    sampler = sample([a, b])
    rest(boottime_ns(), 500 * MS)
    three[1].restart_empty(without=["pod-a"])
    restarted = boottime_ns()
    check = b.wait_leader(15)
    assert check.token > token
    assert check.receive - restarted >= 3 * S, "it led before the wait was over"
    sampler.stop()


def test_tokens_rise_over_any_order_of_majorities(nodes, start):
    """The floor is far above the clocks, so that only what is recorded makes them rise."""
    rng = random.Random(7)
    three = nodes(3)
    last = 0
    order = [0, 2, 1, 2, 0, 1] + [rng.randrange(3) for _ in range(20 if LONG else 2)]
    for turn, out in enumerate(order):
        three[out].cut("pod-a")
        a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", "--token-floor",
                  "50000000000000", "--drain", "none", store=three.url("pod-a"))
        token = a.wait_leader(20).token
        assert token > last, f"turn {turn} without node {out}: {token} after {last}"
        assert token >= 50000000000000
        recorded = [int(n.redis.record()["tok"]) for n in three.all
                    if n is not three[out]]
        assert min(recorded) >= token, "it is not on a majority"
        last = token
        assert a.stop() == 0
        three[out].let_in("pod-a")


def test_lists_that_have_one_node_in_common_are_not_led_under(nodes, start, sample):
    five = nodes(5)
    ttl = ("--ttl", "1s")
    a = start("pod-a", *ttl, store=five.url("pod-a", five.all[:3]), fixed_port=True)
    token = a.wait_leader(20).token
    b = start("pod-b", *ttl, store=five.url("pod-b", five.all[2:]), fixed_port=True)
    sampler = sample([a, b])
    wait_until(lambda: "node-list-differs" in b.status()["warnings"], 5)
    assert "list of nodes" in b.status()["detail"], b.status()
    rest(boottime_ns(), 2 * S)
    assert a.check().token == token and not b.leads()
    assert a.status()["lock_space"] != b.status()["lock_space"]
    # The first one goes; its list goes with its last lease.
    assert a.stop() == 0
    assert b.wait_leader(20).token > token
    wait_until(lambda: "node-list-differs" not in b.status()["warnings"], 10)
    sampler.stop()


def test_another_list_that_has_run_out_on_the_common_node_is_warned_of(nodes, start):
    """Its leader may hold the other two nodes: then the common one is all that tells of it."""
    five = nodes(5)
    ttl = ("--ttl", "1s", "--drain", "none")
    a = start("pod-a", *ttl, store=five.url("pod-a", five.all[:3]))
    a.wait_leader(20)
    assert a.stop() == 0
    b = start("pod-b", *ttl, store=five.url("pod-b", five.all[2:]))
    b.wait_leader(20)
    wait_until(lambda: '"node-list-differs"' in b.log(), 5)
    wait_until(lambda: "node-list-differs" not in b.status()["warnings"], 10)


def test_a_node_that_somebody_takes_for_the_only_server(nodes, start, sample):
    """A redis: URL becomes a redlock: one while the old replica still leads by that server alone:
    its new neighbours must not make a majority without it."""
    three = nodes(3)
    ttl = ("--ttl", "1s")
    a = start("pod-a", *ttl, store=three[0].url("pod-a"), fixed_port=True)
    token = a.wait_leader(20).token
    b = start("pod-b", *ttl, store=three.url("pod-b"), fixed_port=True)
    sampler = sample([a, b])
    wait_until(lambda: "node-list-differs" in b.status()["warnings"], 5)
    rest(boottime_ns(), 2 * S)
    assert a.check().token == token and not b.leads()
    assert a.stop() == 0
    second = b.wait_leader(20).token
    assert second > token
    assert three[0].redis.record()["list"]
    sampler.stop()
    # The other way round a leader might hold the other nodes: somebody has to say that none does,
    # and then no list stays behind that is not true any more.
    assert b.stop() == 0
    a.start()
    wait_until(lambda: "node-list-differs" in a.status()["warnings"], 5)
    assert "delete the field list of gavel:{default/" in a.status()["detail"], a.status()
    assert a.status()["reason"] == "store-refused" and not a.leads()
    three[0].redis.cli("HDEL", three[0].redis.record_key("a"), "list")
    assert a.wait_leader(20).token > second
    assert "node-list-differs" not in a.status()["warnings"]
    assert not three[0].redis.record().get("list")


def test_the_only_server_of_one_is_a_node_of_others(nodes, start, sample):
    """A leads by two nodes and is cut off from the third, which knows of a clean end alone. A replica
    that takes the third for the only server cannot know better, so its record's list has to do."""
    three = nodes(3)
    ttl = ("--ttl", "1s")
    x = start("pod-x", *ttl, "--drain", "none", store=three.url("pod-x"))
    x.wait_leader(20)
    assert x.stop() == 0
    assert three[0].redis.record()["clean"] == "1"
    three[0].cut("pod-a")
    a = start("pod-a", *ttl, store=three.url("pod-a"), fixed_port=True)
    token = a.wait_leader(20).token
    b = start("pod-b", *ttl, store=three[0].url("pod-b"), fixed_port=True)
    sampler = sample([a, b])
    wait_until(lambda: "node-list-differs" in b.status()["warnings"], 5)
    rest(boottime_ns(), 1500 * MS)
    assert a.check().token == token and not b.leads()
    # It does not stand in the way either: the leader gets its node back.
    three[0].let_in("pod-a")
    wait_until(lambda: three[0].redis.record()["tok"] == str(token), 10)
    assert a.check().token == token and not b.leads()
    sampler.stop()


def test_three_nodes_become_five_one_at_a_time(nodes, start, sample):
    """Both replicas go from one list to the next while they are asked; nobody ever leads beside
    another, and those in between are warned."""
    five = nodes(5)
    ttl = ("--ttl", "1s")
    pods = [start(i, *ttl, store=five.url(i, five.all[:3]), fixed_port=True)
            for i in ("pod-a", "pod-b")]
    wait_until(lambda: any(p.leads() for p in pods), 20)
    sampler = sample(pods)
    tokens = [max(p.check().token for p in pods)]
    for count in (4, 5):
        for pod in pods:
            assert pod.stop() == 0
            pod.store = five.url(pod.identity, five.all[:count])
            pod.start()
            led = wait_until(lambda: [p for p in pods if p.leads()], 20, "somebody leads")
            tokens.append(led[0].check().token or tokens[-1])
            other = pods[1] if pod is pods[0] else pods[0]
            if pod is pods[0] and not pod.leads():
                assert other.leads()
                wait_until(lambda p=pod: "node-list-differs" in p.status()["warnings"], 5)
        rest(boottime_ns(), 1200 * MS)
        if count == 4:
            assert all("even-nodes" in p.status()["warnings"] for p in pods), \
                [p.status() for p in pods]
    assert all("even-nodes" not in p.status()["warnings"] for p in pods)
    assert tokens == sorted(tokens)
    sampler.stop()


def test_two_names_of_one_server_are_one_vote(nodes, start):
    two = nodes(2)
    one, other = two
    port = one.relay.port
    store = (f"redlock:{one.url('pod-a')},redis://pod-a:one4all@localhost:{port},"
             f"{other.url('pod-a')}")
    a = start("pod-a", "--ttl", "1s", store=store)
    a.wait_leader(20)  # two servers of three names
    assert f"node localhost:{port}/0: up" in a.probe("/readyz?verbose").body.decode()
    assert "one server with another node" in a.probe("/readyz?verbose").body.decode()
    other.redis.kill()
    wait_until(lambda: not a.leads(), 5)
    since = boottime_ns()
    rest(since, 2 * S)
    assert not a.leads() and a.state() in ("unknown", "follower", "pending")


def test_three_names_of_one_server_are_called_so(nodes, start):
    one = nodes(1)[0].redis
    a = start("pod-a", "--ttl", "1s",
              store=f"redlock:{one.url}/0,{one.url}/1,redis+unix:{one.unix_path}")
    wait_until(lambda: "one server under several names" in a.status()["detail"], 10)
    assert a.status()["reason"] == "store-refused" and not a.leads()
    assert any(e["event"] == "store" and e["level"] == "warn" and "one server" in e["problem"]
               for e in list(a.events)), a.log()


def test_readiness_and_status_name_the_nodes_in_trouble(nodes, start):
    three = nodes(3)
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=three.url("pod-a"))
    a.wait_leader(20)
    three[1].redis.kill()
    wait_until(lambda: "1 of 3 nodes" in a.probe("/readyz?verbose").body.decode(), 5)
    verbose = a.probe("/readyz?verbose").body.decode()
    assert "store redlock: up" in verbose, verbose
    assert f"node {three[0].name}: up, redis" in verbose, verbose
    assert f"node {three[1].name}: down" in verbose, verbose
    assert "one4all" not in verbose + a.log()
    assert a.leads() and a.metrics()["gavel_store_up"] == 1
    three[1].redis.start()
    wait_until(lambda: "1 of 3 nodes" not in a.probe("/readyz?verbose").body.decode(), 5)
    if TIMING:
        assert a.leads()
