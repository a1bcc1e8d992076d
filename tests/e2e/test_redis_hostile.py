"""Servers that break the protocol or the connection at any place: that connection is given up, the
next one comes after a pause, memory and files stay within bounds, and nothing is believed."""

import random
import socket

import pytest

from e2e.footprint import status_field
from e2e.told import QUICK, alive, requests, wait_told
from kit.clock import S, boottime_ns, wait_until
from kit.fake_redis import CLOSE, MUTE, Cut, FakeRedis, array, bulk, message
from kit.redis_server import Redis
from kit.resp import Resp

EVERY_KIND = ("ROLE", "INFO", "SUBSCRIBE", "acquire", "renew", "release")
SHORT = ("--ttl", "300ms", "--mode", "efficiency")
CHANNEL = "gavel:{default/a}:released"

_random = random.Random(20261202)
POISON = {
    "a huge array": b"*1073741824\r\n",
    "an array of less than nothing": b"*-2\r\n",
    "a huge string": b"$9999999999\r\n",
    "a string of less than nothing": b"$-7\r\n",
    "a deep nest": b"*1\r\n" * 100,
    "a wide nest": b"*1000\r\n*1000\r\n*1000\r\n",
    "64 MiB": b"$67108864\r\n" + bytes(64 << 20),
    "a line without end": b"+" + b"x" * 200000,
    "a number without end": b":" + b"9" * 200,
    "another protocol": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "a newer protocol": b"%1\r\n+role\r\n_\r\n>2\r\n+message\r\n+x\r\n",
    "empty lines": b"\r\n\r\n",
    "zeros": bytes(100),
    **{f"random bytes {i}": _random.randbytes(300) for i in range(4)},
}


@pytest.fixture
def fake(closing):
    return closing(FakeRedis())


def say_all(fake, answer):
    for kind in EVERY_KIND:
        fake.say(kind, answer)


def test_broken_protocol_from_every_side(fake, start):
    a = start("pod-a", *SHORT, store=fake.url)
    a.wait_leader()
    memory = status_field(a.pid, "VmHWM")
    for name, poison in POISON.items():
        say_all(fake, poison)
        fake.cut()
        before, since = fake.accepted, boottime_ns()
        wait_until(lambda: fake.accepted >= before + 5, 10, name)
        # Two connections, each with pauses of 25 to 50 ms at least once it has failed twice.
        assert fake.accepted - before <= 8 + (boottime_ns() - since) / S * 2 * 40
        assert a.process.poll() is None, name
    wait_told(a, "store-unreachable", state="unknown")
    assert status_field(a.pid, "VmHWM") < memory + 32 * 1024
    files = a.open_files()
    say_all(fake, None)
    a.wait_leader()
    assert a.open_files() <= files + 4
    alive(a)


@pytest.mark.parametrize("kind", ["renew", "SUBSCRIBE"])
def test_broken_protocol_in_a_proven_connection(fake, start, kind, timely):
    """Only what was asked on that connection is in doubt."""
    a = start("pod-a", *QUICK, store=fake.url)
    token = a.wait_leader().token
    for poison in (b"*1073741824\r\n", b"\0\r\n", b"$70000\r\n" + bytes(70002)):
        before = fake.count(kind)
        fake.say(kind, poison)
        if kind == "SUBSCRIBE":
            fake.push(poison)
        wait_until(lambda: fake.count(kind) > before, 5)
        fake.say(kind, None)
        renewed = fake.count("renew")
        wait_until(lambda: fake.count("renew") > renewed, 5)
        assert a.check().token == token


def test_cut_in_the_middle_of_an_answer(fake, start):
    a = start("pod-a", *SHORT, store=fake.url)
    a.wait_leader()
    at = 0

    def cut(kind):
        def answer(args):
            nonlocal at
            at += 5
            return Cut(fake.usual(kind, args)[:at])
        return answer
    for kinds, until in ((("acquire", "renew", "release"), 140), (("ROLE",), 30),
                         (("SUBSCRIBE",), 30)):
        at = 0
        for kind in kinds:
            fake.say(kind, cut(kind))
        fake.cut()
        wait_until(lambda: at >= until, 20, f"{kinds} cut all along")
        say_all(fake, None)
        a.wait_leader()
    alive(a)


def test_clients_killed_under_load(redis, start):
    names = [f"job-{n}" for n in range(30)]
    a = start("pod-a", *SHORT, elections=names)
    wait_until(lambda: all(a.leads(n) for n in names), 10)
    files = a.open_files()
    with Resp(redis.port) as killer:
        began, killed = boottime_ns(), 0
        while boottime_ns() - began < 1.5 * S:
            killed += killer.call("CLIENT", "KILL", "TYPE", "normal")
            killed += killer.call("CLIENT", "KILL", "TYPE", "pubsub")
    assert killed >= 50
    wait_until(lambda: all(a.leads(n) for n in names), 10, "leads all of them again")
    wait_until(lambda: a.open_files() <= files + 2, 5)
    alive(a)


@pytest.mark.parametrize("stage", ["full queue", "no greeting", "no answer", "refused", "pause"])
def test_ended_while_it_connects(folder, closing, fake, start, stage):
    store = fake.url
    if stage == "full queue":
        server = closing(Redis(folder + "/full", ["--tcp-backlog", "1"]))
        server.freeze()
        for _ in range(8):
            s = closing(socket.socket())
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", server.port))
        store = server.url
    elif stage == "no greeting":
        say_all(fake, MUTE)
    elif stage == "no answer":
        fake.say("acquire", MUTE)
    elif stage == "refused":
        fake.close()
    else:
        fake.say("ROLE", CLOSE)
    a = start("pod-a", "--ttl", "1s", store=store)
    if stage in ("no greeting", "no answer", "pause"):
        kind = "acquire" if stage == "no answer" else "ROLE"
        wait_until(lambda: fake.count(kind) > 0, 5)
    assert a.stop() == 0


def test_messages_that_were_never_asked_for(fake, start, sample, timely):
    """On the connection that listens: strange ones end it, others are nobody's; neither costs the
    lease, nor is anything believed of them."""
    a = start("pod-a", *QUICK, store=fake.url, fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a])
    for data in (message("gavel:{default/b}:released", "7 clean"), message(CHANNEL, "7 clean"),
                 message(CHANNEL, "clean"), message(CHANNEL, "x" * 5000),
                 array("message"), array("message", CHANNEL), array("pmessage", "*", CHANNEL, "7"),
                 array("unsubscribe", CHANNEL, "0"), b"*0\r\n", b"*-1\r\n", b"+PONG\r\n",
                 bulk("pong"), b"-ERR nothing\r\n", array("pong", "")):
        wait_until(lambda: fake.push(data), 5, "it listens")
    renewed = requests(a, "renew", "yes")
    wait_until(lambda: requests(a, "renew", "yes") >= renewed + 2, 5)
    assert a.check().token == token and requests(a, "acquire", "yes") == 1
    alive(a)
    sampler.stop()
    assert sampler.share(a) == 1


def test_without_a_subscriber_only_time_is_lost(fake, start):
    """A follower that cannot listen takes the lock at its next look, within a third of the ttl."""
    a = start("pod-a", "--ttl", "1500ms", "--mode", "efficiency", store=fake.url)
    a.wait_leader()
    fake.say("SUBSCRIBE", CLOSE)
    b = start("pod-b", "--ttl", "1500ms", "--mode", "efficiency", store=fake.url)
    b.wait_state("follower")
    assert a.stop() == 0
    b.wait_leader(3)
    wait_told(b, "acquired")


def test_a_subscriber_that_is_closed_each_time_is_no_storm(fake, start):
    """However many requests go out meanwhile: its pauses are its own."""
    names = [f"job-{n}" for n in range(20)]
    fake.say("SUBSCRIBE", CLOSE)
    a = start("pod-a", *SHORT, elections=names, store=fake.url)
    wait_until(lambda: all(a.leads(n) for n in names), 10)
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 1.5 * S)
    assert fake.count("renew", since=since) > 100
    # The pauses are 25 ms at least, and each is at least half of twice the one before.
    assert fake.count("SUBSCRIBE", since=since) <= 7
