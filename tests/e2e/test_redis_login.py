"""User, password and database: what the server refuses, and a password that changes."""

import os
import signal

import pytest

from e2e.told import show_nowhere
from kit.clock import S, boottime_ns, wait_until
from kit.resp import Resp, RespError


def write(path, text):
    """As secrets are replaced: in one step."""
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


@pytest.fixture
def password_file(folder, redis):
    redis.cli("ACL", "SETUSER", "gavel", "on", ">first-secret", "~*", "&*", "+@all")
    path = folder + "/password"
    write(path, "first-secret\n")
    return path


def rotate(redis, old, new):
    """The server knows only the new one, and nobody is logged in any more."""
    redis.cli("ACL", "SETUSER", "gavel", "<" + old, ">" + new)
    redis.cli("CLIENT", "KILL", "USER", "gavel")


def refusals(redis):
    flat = [dict(zip(e[::2], e[1::2])) for e in redis.cli("ACL", "LOG")]
    return sum(e["count"] for e in flat if e["reason"] == "auth")


def comes_back(sidecar):
    return sidecar.metrics()["gavel_store_reconnects_total"] >= 1


def login(password_file):
    return {"GAVEL_STORE_USER": "gavel", "GAVEL_STORE_PASSWORD_FILE": password_file}


def test_a_rotated_password_does_not_cost_the_leadership(redis, start, sample, password_file):
    a = start("pod-a", "--ttl", "30s", "--mode", "efficiency", env=login(password_file),
              fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a])
    since = boottime_ns()
    rotate(redis, "first-secret", "second-secret")
    wait_until(lambda: "WRONGPASS" in a.log(), 20, "it is refused")
    show_nowhere(a, "first-secret", "second-secret")
    write(password_file, "third-secret\n")
    a.signal(signal.SIGHUP)
    wait_until(lambda: a.event("reloaded", what="secrets"), 20)
    show_nowhere(a, "first-secret", "second-secret", "third-secret")
    write(password_file, "second-secret\n")
    wait_until(lambda: comes_back(a), 20, "it comes back by itself")
    # Both connections are tried at once, then at most once a second.
    assert refusals(redis) <= 2 * (2 + (boottime_ns() - since) / S)
    wait_until(lambda: redis.cli("CLIENT", "LIST").count("user=gavel") == 2, 20)
    assert len(a.event("reloaded", what="secrets")) >= 2
    assert a.check().token == token
    sampler.stop()
    assert [c for c in sampler.changes if not c.leader] == []
    show_nowhere(a, "first-secret", "second-secret", "third-secret")


def test_the_file_may_be_missing_for_a_while(redis, start, password_file):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", env=login(password_file))
    token = a.wait_leader().token
    os.unlink(password_file)
    rotate(redis, "first-secret", "second-secret")
    failed = wait_until(lambda: a.event("reload-failed"), 20)[0]
    assert "--store-password-file" in failed["error"] and password_file in failed["error"]
    wait_until(lambda: a.state() == "unknown", 20)
    write(password_file, "second-secret\n")
    assert a.wait_leader(20).token > token
    assert a.stop() == 0


def test_a_password_that_comes_first_is_enough(redis, start, password_file):
    """The file first, the server after: the connection that exists goes on until it is ended."""
    a = start("pod-a", "--ttl", "30s", "--mode", "efficiency", env=login(password_file))
    token = a.wait_leader().token
    write(password_file, "second-secret\n")
    rotate(redis, "first-secret", "second-secret")
    wait_until(lambda: comes_back(a), 20)
    assert a.check().token == token
    # The refused attempt goes on with the new one: no pause, and nothing to complain of.
    assert not a.event("store-connect-failed")
    assert refusals(redis) <= 2, "one for each connection"


def test_a_database_that_is_not_there(redis, start):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=redis.url + "/99")
    wait_until(lambda: "DB index is out of range" in a.log(), 20)
    assert a.status()["reason"] == "store-refused" and not a.check().leader
    assert "cmdstat_eval" not in redis.cli("INFO", "commandstats")
    with Resp(redis.port) as admin, pytest.raises(RespError):
        admin.call("SELECT", "99")


def test_a_database_of_its_own(redis, start):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=redis.url + "/7")
    a.wait_leader()
    assert redis.lease() is None
    with Resp(redis.port) as admin:
        admin.call("SELECT", "7")
        assert admin.call("GET", redis.lease_key("a")) is not None
