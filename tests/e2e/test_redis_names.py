"""Redis by name: look-ups that hang or fail, and names with several addresses."""

import socket

import pytest

from e2e.told import QUICK, alive, wait_told, within
from kit.clock import MS, S, boottime_ns, wait_until
from kit.nameshim import NameShim
from kit.ports import has_ipv6
from kit.redis_server import Redis
from kit.resp import Resp
from kit.sidecar import TIMING


def test_a_name_server_that_hangs_holds_nobody_up(redis, start, folder, sample, timely):
    """Answers come at once all the time, and one look-up is under way, not one an attempt."""
    names = NameShim(folder, "127.0.0.1")
    a = start("pod-a", *QUICK, store=names.url(redis.port), env=names.env, fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a], every_ms=20)
    names.hang()
    redis.cli("CLIENT", "KILL", "TYPE", "normal")
    redis.cli("CLIENT", "KILL", "TYPE", "pubsub")
    began = boottime_ns()
    while boottime_ns() - began < 1.2 * S:
        asked = boottime_ns()
        assert a.request("/v1/leader").status in (200, 503)
        assert a.probe("/livez").status == 200
        took = boottime_ns() - asked - timely.worst_ns(asked, boottime_ns())
        assert not TIMING or took < 100 * MS, f"two answers took {took / MS} ms"
    wait_until(lambda: a.event("state", to="unknown", reason="deadline"), 8, "its lease ran out")
    wait_told(a, "store-unreachable", "looking up redis.test: no answer in time", state="unknown")
    assert names.lookups()[1:] == (1, 1)
    names.answer("127.0.0.1")
    assert a.wait_leader().token > token
    assert names.lookups()[2] == 1
    alive(a)
    sampler.stop()


def test_a_name_server_that_hangs_does_not_hold_up_the_end(redis, start, folder):
    names = NameShim(folder, "127.0.0.1")
    names.hang()
    a = start("pod-a", *QUICK, store=names.url(redis.port), env=names.env)
    wait_until(lambda: names.lookups()[1] == 1, 5)
    assert a.stop(20) == 0
    assert a.event("stopped")


def test_an_unknown_name_is_told_and_asked_for_again(redis, start, folder, timely):
    names = NameShim(folder)
    a = start("pod-a", *QUICK, store=names.url(redis.port), env=names.env)
    wait_told(a, "store-unreachable", "redis.test", state="unknown")
    names.answer("127.0.0.1")
    since = boottime_ns()
    a.wait_leader()
    within(since, 1)


class Redis6(Redis):
    """On ::1 alone."""
    def cli(self, *args):
        with Resp(self.port, host="::1") as resp:
            return resp.call(*args)


@pytest.mark.parametrize("dead", ["refused", "black hole"])
def test_the_first_address_is_dead_and_the_second_lives(redis, start, folder, dead):
    names = NameShim(folder, "127.0.0.2", "127.0.0.1")
    with socket.socket() as hole:
        if dead == "black hole":
            hole.bind(("127.0.0.2", redis.port))
            hole.listen(0)
            fillers = [socket.socket() for _ in range(6)]
            for s in fillers:
                s.setblocking(False)
                s.connect_ex(("127.0.0.2", redis.port))
        a = start("pod-a", *QUICK, store=names.url(redis.port), env=names.env)
        a.wait_leader()
        if dead == "black hole":
            for s in fillers:
                s.close()


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this host")
def test_localhost_is_both_families_and_redis_listens_on_one(folder, closing, start):
    redis = closing(Redis6(folder + "/six", ["--bind", "::1"]))
    for order in (("127.0.0.1", "::1"), ("::1", "127.0.0.1")):
        names = NameShim(folder, *order)
        a = start("pod-" + order[0].replace(":", "")[:1], *QUICK, "--drain", "none",
                  store=names.url(redis.port), env=names.env)
        a.wait_leader()
        assert a.stop() == 0
