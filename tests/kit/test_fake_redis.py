"""The scripted server does what the tests rely on."""

import pytest

from kit.clock import wait_until
from kit.fake_redis import CLOSE, MUTE, FakeRedis, error, message
from kit.resp import Resp, RespError


@pytest.fixture
def fake():
    server = FakeRedis()
    yield server
    server.close()


def script(resp, count, *args):
    return resp.call("EVALSHA", "0" * 40, 2, "k", "r", *args, *["0"] * (count - 5 - len(args)))


def test_it_grants_renews_and_releases(fake):
    with Resp(fake.port) as one, Resp(fake.port) as two:
        assert one.call("ROLE")[0] == "master"
        taken = script(one, 12, "nonce-1", "pod-a", "5000", "0", "0", "1", "0")
        assert taken[0] == "yes" and len(taken) == 9
        held = script(two, 12, "nonce-2", "pod-b", "5000", "0", "0", "1", "0")
        assert held[0] == "held" and held[6:8] == ["nonce-1", "pod-a"]
        assert script(one, 11, "nonce-1")[:2] == ["yes", taken[1]]
        assert script(two, 11, "nonce-2")[0] == "held"
        assert script(one, 10, "nonce-1")[0] == "yes"
        assert script(one, 11, "nonce-1")[0] == "free"
        again = script(two, 12, "nonce-2", "pod-b", "5000", "0", "0", "1", "0")
        assert again[0] == "yes" and int(again[1]) > int(taken[1])
    assert fake.kinds() == {"ROLE", "acquire", "renew", "release"}


def test_it_says_what_it_is_told(fake):
    with Resp(fake.port, timeout=0.2) as resp:
        fake.say("renew", error("OOM no room"))
        with pytest.raises(RespError, match="OOM"):
            script(resp, 11, "n")
        fake.say("renew", None)
        assert script(resp, 11, "n")[0] == "free"
        fake.say("PING", lambda args: b"+%s\r\n" % args[0].encode())
        assert resp.call("PING") == "PING"
        fake.say("PING", CLOSE)
        with pytest.raises(OSError):
            resp.call("PING")
    fake.say("PING", MUTE)
    with Resp(fake.port, timeout=0.2) as resp, pytest.raises(OSError):
        resp.call("PING")
    assert fake.count("PING") == 3 and fake.accepted == 2


def test_it_pushes_to_those_who_subscribed(fake):
    assert fake.push(message("c", "x")) == 0
    with Resp(fake.port) as resp:
        assert resp.call("SUBSCRIBE", "c") == ["subscribe", "c", 1]
        assert wait_until(lambda: fake.push(message("c", "x"))) == 1
        assert resp.read() == ["message", "c", "x"]
