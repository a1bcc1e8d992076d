"""The kit's own servers do what the tests rely on."""

import time

import pytest

from kit.clock import wait_until
from kit.clockshim import ClockShim
from kit.redis_server import Redis
from kit.relay import Relay
from kit.resp import Resp, RespError


@pytest.fixture
def redis(tmp_path):
    server = Redis(tmp_path)
    yield server
    server.close()


def test_redis_speaks_and_comes_back_on_its_port(redis):
    redis.cli("SET", "k", "v w")
    assert redis.cli("GET", "k") == "v w"
    assert redis.cli("GET", "none") is None
    assert redis.cli("EVAL", "return {1,'a',{2}}", 0) == [1, "a", [2]]
    with pytest.raises(RespError):
        redis.cli("NOSUCH")
    port = redis.port
    redis.kill()
    redis.start()
    assert redis.port == port and redis.cli("GET", "k") is None


def test_a_stepped_wall_clock(tmp_path):
    shim = ClockShim(tmp_path)
    server = Redis(tmp_path, env=shim.env)
    try:
        def ahead():
            seconds, us = map(int, server.cli("TIME"))
            return seconds + us / 1e6 - time.time()
        assert abs(ahead()) < 1
        server.cli("SET", "k", "v", "PX", 60000)
        shim.step(-30)
        assert -31 < ahead() < -29
        shim.step(61)
        assert 60 < ahead() < 62
        assert server.cli("GET", "k") is None
    finally:
        server.close()


def test_relay_drops_one_reply_and_closes(redis):
    relay = Relay(redis.port)
    relay.drop_reply_when(lambda: redis.cli("EXISTS", "k") == 1)
    with Resp(relay.port) as resp:
        assert resp.call("PING") == "PONG"
        with pytest.raises(OSError):
            resp.call("SET", "k", "v")
    assert redis.cli("GET", "k") == "v" and relay.dropped == 1
    with Resp(relay.port) as resp:
        assert resp.call("GET", "k") == "v"
    relay.close()


def test_relay_freezes_and_thaws(redis):
    relay = Relay(redis.port)
    with Resp(relay.port, timeout=0.2) as resp:
        resp.call("SET", "k", "1")
        relay.freeze()
        with pytest.raises(OSError):
            resp.call("SET", "k", "2")
        assert redis.cli("GET", "k") == "1"
        relay.thaw()
        wait_until(lambda: redis.cli("GET", "k") == "2")
    relay.close()
