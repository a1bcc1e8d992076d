"""The kit's own servers do what the tests rely on."""

import os
import subprocess
import sys
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


def test_relay_holds_one_connection_and_delivers_what_its_client_left_behind(redis):
    relay = Relay(redis.port)
    with Resp(relay.port) as other:
        with Resp(relay.port, timeout=0.2) as resp:
            resp.call("SET", "k", "1")
            relay.hold_request_when(lambda data: b"late" in data)
            with pytest.raises(OSError):
                resp.call("SET", "k", "late")
        assert relay.holding == 1
        assert other.call("GET", "k") == "1"
    relay.thaw()
    wait_until(lambda: redis.cli("GET", "k") == "late")
    relay.close()


def test_relay_refuses_as_a_kernel_does_and_keeps_its_port(redis):
    relay = Relay(redis.port)
    for _ in range(3):
        with Resp(relay.port) as resp:
            assert resp.call("PING") == "PONG"
            relay.refuse()
            with pytest.raises(ConnectionRefusedError):
                Resp(relay.port)
            with pytest.raises(OSError):
                resp.call("PING")
        relay.welcome()
    with Resp(relay.port) as resp:
        assert resp.call("PING") == "PONG"
    relay.close()
    with pytest.raises(ConnectionRefusedError):
        Resp(relay.port)


def test_relay_goes_on_in_directions_and_connections_apart(redis):
    relay = Relay(redis.port)
    assert relay.freeze_connections() == 0
    with Resp(relay.port, timeout=0.2) as resp:
        assert resp.call("PING") == "PONG"
        relay.freeze()
        assert relay.freeze_connections() == 1
        relay.freeze(())
        with pytest.raises(OSError):
            resp.call("PING")
        with Resp(relay.port) as other:
            assert other.call("PING") == "PONG"
            relay.freeze()
            relay.thaw_connections()
            other.send("SET", "k", "late")
            assert redis.cli("EXISTS", "k") == 0
            relay.freeze(())
            assert other.read() == "OK"
    relay.close()


def test_relay_delays_either_direction(redis):
    relay = Relay(redis.port)
    with Resp(relay.port) as resp:
        resp.call("SET", "k", "0")
        for number, delay in ((1, {"request_ms": 300}), (2, {"reply_ms": 300})):
            relay.delay(**delay)
            since = time.monotonic()
            resp.call("SET", "k", number)
            assert time.monotonic() - since >= 0.3
            relay.delay()
    with Resp(relay.port, timeout=0.1) as resp:
        relay.delay(request_ms=10000)
        with pytest.raises(OSError):
            resp.call("SET", "k", "never")
    with Resp(relay.port, timeout=0.3) as resp:
        relay.delay(reply_ms=10000)
        with pytest.raises(OSError):
            resp.call("SET", "k", "carried out")
        assert redis.cli("GET", "k") == "carried out"
    relay.close()


def test_each_clock_is_moved_alone(tmp_path):
    shim = ClockShim(tmp_path)
    program = "import time\nfor _ in range(3):\n input()\n print(time.time(), " \
              "time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_BOOTTIME)," \
              " flush=True)\n"
    with subprocess.Popen([sys.executable, "-c", program], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env={**os.environ, **shim.env}) as process:
        def ahead():
            process.stdin.write("\n")
            process.stdin.flush()
            shown = map(float, process.stdout.readline().split())
            true = (time.time(), time.clock_gettime(time.CLOCK_MONOTONIC),
                    time.clock_gettime(time.CLOCK_BOOTTIME))
            return [round((s - t) / 10) for s, t in zip(shown, true)]
        assert ahead() == [0, 0, 0]
        shim.step(-100, monotonic=200, boot=300)
        assert ahead() == [-10, 20, 30]
        shim.rate("real", -1000)
        time.sleep(0.1)
        shim.rate("real", 1)
        assert ahead()[0] <= -20
