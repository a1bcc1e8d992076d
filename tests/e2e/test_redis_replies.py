"""Servers that answer wrongly: only the exact answer of a script starts a grant or extends one, and
only the script's own no ends one early."""

import concurrent.futures

import pytest

from e2e.cases import logged, told
from kit.clock import MS, S, boottime_ns, wait_until
from kit.resp import Resp
from kit.scripted import SERVER, Scripted, bulk

# 2026-12-01, in the server's microseconds and our tokens' milliseconds.
CLOCK = 1796157414879123
TOKEN = CLOCK // 1000


def common(status="yes", token=TOKEN, ttl=1000, clock=CLOCK, server=SERVER, replicated=0):
    return status, token, ttl, clock, server, replicated


GRANT = ("clean", "none", 0)
HELD = ("00" * 16, "pod-x", 500, 0)

# Wrong for every script.
SHAPES = {
    "status": b"+OK\r\n",
    "status yes": b"+yes\r\n",
    "integer": b":1\r\n",
    "text": b"$2\r\nOK\r\n",
    "null text": b"$-1\r\n",
    "null array": b"*-1\r\n",
    "empty array": b"*0\r\n",
    "integer and null": b"*2\r\n:1\r\n$-1\r\n",
    "one member": bulk("yes"),
    "old shape": b"*2\r\n:1\r\n" + b"$13\r\n%d\r\n" % TOKEN,
    "integers": b"*6\r\n$3\r\nyes\r\n:%d\r\n:1000\r\n:%d\r\n$3\r\na:b\r\n:0\r\n" % (TOKEN, CLOCK),
    "nested": b"*1\r\n" + bulk(*common(), *GRANT),
    "null member": bulk(*common(), *GRANT).replace(b"$1\r\n0\r\n", b"$-1\r\n"),
    "error inside": b"*2\r\n$3\r\nyes\r\n-ERR no\r\n",
    "too long": bulk(*common(), *GRANT, 0),
    "too short": bulk(*common()[:5]),
    "another status": bulk(*common("YES")),
    "empty status": bulk(*common("")),
    "no token": bulk(*common(token=0)),
    "signed token": bulk(*common(token=f"+{TOKEN}")),
    "token with a fraction": bulk(*common(token=f"{TOKEN}.0")),
    "token with an exponent": bulk(*common(token="1.7961574148791e+12")),
    "token above the limit": bulk(*common(token=10**14 + 1)),
    "long ttl": bulk(*common(ttl=3600001)),
    "no clock": bulk(*common(clock=0)),
    "server with a space": bulk(*common(server="a b")),
    "long server": bulk(*common(server="s" * 1000)),
    "no number of replicas": bulk(*common(replicated="some")),
    "negative number of replicas": bulk(*common(replicated=-1)),
    "held by nobody": bulk(*common("held")),
    "held without a nonce": bulk(*common("held"), "", *HELD[1:]),
    "held for no time": bulk(*common("held"), *HELD[:2], "soon", 0),
    "free and held": bulk(*common("free"), *HELD),
}
FOR_ACQUIRE = {
    "answer of a renewal": bulk(*common()),
    "another way to end": bulk(*common(), "fine", "none", 0),
    "clean and doubtful": bulk(*common(), "clean", "no-record", 0),
    "none without a doubt": bulk(*common(), "none", "none", 0),
    "clean with an end": bulk(*common(), "clean", "none", CLOCK),
}
FOR_RENEW = {
    "answer of an acquire": bulk(*common(), *GRANT),
}


@pytest.fixture
def scripted(closing):
    return closing(Scripted())


def comes_again(fake, script, times=2):
    """So often that what it was answered in between has been read."""
    count = len(fake.seen[script])
    wait_until(lambda: len(fake.seen[script]) >= count + times, 20, f"another {script}")


def test_no_strange_answer_starts_a_grant(scripted, start):
    shapes = {**SHAPES, **FOR_ACQUIRE}
    scripted.answers["acquire"] = next(iter(shapes.values()))
    a = start("pod-a", "--ttl", "300ms", "--mode", "efficiency", store=scripted.url)
    for name, shape in shapes.items():
        scripted.answers["acquire"] = shape
        comes_again(scripted, "acquire")
        status = a.status()
        assert status["leader"] is False and status["token"] is None, name
        assert status["state"] == "unknown" and status["reason"] == "store-unreachable", name
    told(a, state="unknown", reason="store-unreachable", detail="the store does not answer")
    logged(a, "an answer of a strange shape: this is not what gavel talks to")
    assert not a.event("state", to="leader") and not a.event("state", to="pending")
    assert a.process.poll() is None
    seconds = (boottime_ns() - a.started_ns) / S
    assert len(a.event("store-connected")) <= seconds + 1 < scripted.accepted
    scripted.answers.clear()
    assert a.wait_leader().token > TOKEN


def end_of_a_lease_that_nobody_renews(fake, sidecar, name, answer):
    """Leads, hears nothing but that answer to its renewals, and ends at its deadline: not later,
    and by the clock, not by the answer."""
    ended = len(sidecar.event("state", **{"from": "leader"}))
    token = sidecar.wait_leader().token
    fake.answers["renew"] = answer

    def over():
        check = sidecar.check()
        assert check.token != token or check.deadline <= fake.confirmed_ns + 480 * MS, name
        return len(sidecar.event("state", **{"from": "leader"})) > ended
    wait_until(over, 10, f"{name}: not leader any more")
    event = sidecar.event("state", **{"from": "leader"})[ended]
    assert (event["to"], event["reason"]) in (("unknown", "deadline"), ("unknown", "paused")), \
        (name, event)
    del fake.answers["renew"]


def test_no_strange_answer_extends_or_ends_a_grant(closing, start):
    """Four sidecars at a time, each with a server of its own."""
    shapes = list({**SHAPES, **FOR_RENEW}.items())

    def run(pod):
        fake, sidecar, own = pod
        for name, answer in own:
            end_of_a_lease_that_nobody_renews(fake, sidecar, name, answer)
    pods = []
    for i in range(4):
        fake = closing(Scripted())
        # Two renewals at least are answered strangely before the deadline.
        sidecar = start(f"pod-{i}", "--ttl", "600ms", "--margin", "120ms", "--valid-for", "600ms",
                        "--mode", "efficiency", store=fake.url)
        pods.append((fake, sidecar, shapes[i::4]))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(run, pods))
    for _, sidecar, _ in pods:
        sidecar.wait_leader()
        assert sidecar.process.poll() is None


def test_no_strange_answer_gives_the_lock_back(scripted, start):
    """Who resigns is told `ok` when the lock is given back, or its lease has run out."""
    a = start("pod-a", "--ttl", "1s", "--valid-for", "1s", "--mode", "efficiency",
              store=scripted.url)
    a.wait_leader()
    comes_again(scripted, "renew", 1)
    scripted.answers["release"] = b"+OK\r\n"
    good_until = a.check().deadline
    assert a.ask("resign") == "ok"
    assert boottime_ns() > good_until and len(scripted.seen["release"]) > 2
    status = a.status()
    assert status["state"] in ("unknown", "follower") and status["token"] is None
    del scripted.answers["release"]
    a.wait_leader()


def test_a_yes_with_an_older_token_ends_the_grant(scripted, start):
    """What such a server holds is older than the grant: it cannot know who leads."""
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=scripted.url)
    first = a.wait_leader()
    scripted.answers["renew"] = bulk(*common(token=7))
    logged(a, '"from":"leader","to":"unknown","reason":"renewal-refused"')
    wait_until(lambda: scripted.seen["release"], 5, "it gives the lock back")
    del scripted.answers["renew"]
    assert a.wait_leader().token > first.token


def test_what_a_server_says_unasked_is_no_answer(scripted, start):
    """Errors that it greets with, and what would be the right answer to a later question."""
    scripted.greeting = b"-ERR max number of clients reached\r\n"
    a = start("pod-a", "--ttl", "300ms", "--mode", "efficiency", store=scripted.url)
    told(a, state="unknown", reason="store-refused", detail="max number of clients reached")
    for greeting in (b"+OK\r\n", bulk(*common(), *GRANT), b"-NOAUTH Authentication required.\r\n",
                     b"-LOADING Redis is loading the dataset in memory\r\n", b"\x00\xff"):
        scripted.greeting = greeting
        accepted = scripted.accepted
        wait_until(lambda: scripted.accepted >= accepted + 4, 20, "other connections")
        assert not a.leads() and a.state() == "unknown"
    assert not scripted.seen, "it was asked for the lock all the same"
    scripted.greeting = b""
    a.wait_leader()


def test_a_server_with_too_many_clients(redis, start):
    """The refusal is told, is no reply to a renewal, and the lease ends at its deadline."""
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    first = a.wait_leader()
    with Resp(redis.port) as admin:
        admin.call("CONFIG", "SET", "maxclients", "1")
        for kind in ("normal", "pubsub"):
            admin.call("CLIENT", "KILL", "TYPE", kind)
        told(a, state="unknown", reason="store-refused", detail="max number of clients reached")
        logged(a, '"from":"leader","to":"unknown"')
        wait_until(lambda: "max number of clients" in a.probe("/readyz?verbose").body.decode(), 5)
        admin.call("CONFIG", "SET", "maxclients", "100")
    assert a.wait_leader().token > first.token
