"""Rights and passwords that are too narrow, wrong or changed; and leases that are lost again and
again. The process stays, says what is missing, and goes on once it is there."""

import os
import re
import signal

import pytest

from e2e.told import QUICK, alive, connections, requests, wait_told
from kit.clock import S, boottime_ns, wait_until
from kit.resp import RespError

KEYS = ("~gavel:*",)
# What the scripts call, and EVALSHA itself: the least that works.
LEAST = ("+evalsha", "+eval", "+get", "+set", "+pttl", "+pexpire", "+pexpireat", "+del", "+hmget",
         "+hset", "+hdel", "+time")
SECRET = "sEcReT-1"


def give(redis, *rights, password=SECRET, user="gavel"):
    redis.cli("ACL", "SETUSER", user, "reset", "on", f">{password}", *rights)


def as_user(password=SECRET, user="gavel"):
    return {"GAVEL_STORE_USER": user, "GAVEL_STORE_PASSWORD": password}


@pytest.fixture
def begin(redis, start):
    def begin_one(*rights, env=None, identity="pod-a"):
        give(redis, *rights)
        return start(identity, *QUICK, "--drain", "none", env=env or as_user())
    return begin_one


def test_the_least_rights_are_enough(redis, begin, timely):
    """No channel, no PUBLISH, no INFO, no ROLE, no SUBSCRIBE: the lock is taken, kept and given
    back, only later noticed by others. Widened rights are used by themselves."""
    a = begin(*KEYS, *LEAST)
    token = a.wait_leader().token
    assert requests(a, "acquire", "unsure") == 0
    wait_until(lambda: requests(a, "renew", "yes") >= 1, 5)
    why = wait_until(lambda: a.event("store-not-listening"), 5)[0]["why"]
    assert "NOPERM" in why and "subscribe" in why
    assert a.status()["lock_space"] == "" and not a.status()["warnings"]
    give(redis, *KEYS, *LEAST, "+info", "+publish", "+role", "&gavel:*")
    wait_until(lambda: a.status()["lock_space"], 5, "it knows the server now")
    assert a.check().token == token
    assert a.stop() == 0
    assert redis.lease() is None, "it was not released"


def test_the_rights_that_the_readme_names(redis, start):
    """Nothing is denied with them, and nothing is missing: the server is known, and a release is
    heard of."""
    with open(os.path.join(os.path.dirname(__file__), "../../README.md")) as f:
        command = re.search(r"^    (ACL SETUSER gavel .*)$", f.read(), re.M).group(1)
    redis.cli(*command.replace(">PASSWORD", ">" + SECRET).split())
    a = start("pod-a", *QUICK, "--drain", "none", env=as_user())
    a.wait_leader()
    b = start("pod-b", *QUICK, "--drain", "none", env=as_user())
    wait_until(lambda: b.status()["lock_space"], 5)
    wait_until(lambda: redis.cli("PUBSUB", "NUMSUB", a.status()["lock_space"].split("/", 2)[2]
                                 + ":released")[1] == 2, 5, "both listen")
    assert a.stop() == 0
    b.wait_leader()
    denied = [line for line in redis.cli("ACL", "LOG")]
    assert denied == [] and not b.status()["warnings"]


def test_without_evalsha_the_whole_script_is_sent(redis, begin):
    a = begin(*KEYS, "+@all", "-evalsha", "&*")
    a.wait_leader()
    wait_until(lambda: requests(a, "renew", "yes") >= 2, 5)
    assert requests(a, "renew", "unsure") == requests(a, "acquire", "unsure") == 0


@pytest.mark.parametrize("rights,words", [
    (("+@all", "-eval", "-evalsha"), ("gavel needs EVAL", "NOPERM", "'eval' command")),
    (("+@all", "-set"), ("gavel needs EVAL", "can't run this command")),
    (("+@all", "resetkeys", "~other:*"), ("the keys gavel:*", "NOPERM", "keys")),
], ids=["no EVAL", "no SET", "no key"])
def test_rights_that_are_too_narrow_are_told(redis, begin, rights, words):
    a = begin(*KEYS, "&*", *rights)
    wait_told(a, "store-refused", *words, state="unknown")
    assert redis.lease() is None and not a.leads()
    give(redis, *KEYS, "+@all", "&*")
    a.wait_leader()
    assert SECRET not in a.log()


def test_rights_that_are_taken_away_while_it_leads(redis, begin, sample, timely):
    """It leads to its deadline, not longer, and is back with the rights."""
    a = begin(*KEYS, "+@all", "&*")
    token = a.wait_leader().token
    sampler = sample([a])
    give(redis, *KEYS, "+@all", "-pexpireat", "&*")
    wait_until(lambda: a.event("state", to="unknown", reason="deadline"), 5)
    assert requests(a, "renew", "unsure") >= 2, "it stepped down at the first one refused"
    wait_told(a, "store-refused", "gavel needs EVAL")
    give(redis, *KEYS, "+@all", "&*")
    assert a.wait_leader().token > token
    alive(a)
    sampler.stop()


def test_a_user_that_is_deleted_and_made_again(redis, begin):
    """DELUSER ends its connections; nothing is asked of the server as somebody else."""
    a = begin(*KEYS, "+@all", "&*")
    token = a.wait_leader().token
    redis.cli("ACL", "DELUSER", "gavel")
    wait_told(a, "store-refused", "WRONGPASS", state="unknown")
    give(redis, *KEYS, "+@all", "&*")
    assert a.wait_leader().token > token
    assert SECRET not in a.log()
    alive(a)


def test_a_wrong_password_is_not_hammered(redis, begin):
    redis.cli("CONFIG", "SET", "acllog-max-len", "1000")
    a = begin(*KEYS, "+@all", "&*", env=as_user("wrong-" + SECRET))
    wait_told(a, "store-refused", "refused user and password", state="unknown")
    since = boottime_ns()
    redis.cli("ACL", "LOG", "RESET")
    wait_until(lambda: boottime_ns() - since > 1.5 * S)
    tries = sum(int(e[e.index("count") + 1]) for e in redis.cli("ACL", "LOG"))
    assert tries <= 4, tries  # two connections
    assert SECRET not in a.log()
    alive(a)


def test_a_password_that_is_missing_or_not_wanted(redis, start):
    a = start("pod-a", *QUICK, env={"GAVEL_STORE_PASSWORD": "needless"})
    wait_told(a, "store-refused", "no password configured", state="unknown")
    redis.cli("CONFIG", "SET", "requirepass", "needed")
    b = start("pod-b", *QUICK)
    wait_told(b, "store-refused", "NOAUTH", state="unknown")
    assert "needless" not in a.log() and "needed" not in b.log()


def test_a_password_that_is_rotated(redis, start, folder, sample, timely):
    """In the server first, then in the file: SIGHUP makes it known, and no lease is lost while the
    connection stays."""
    path = folder + "/password"

    def write(password):
        with open(path, "w") as f:
            f.write(password + "\n")
    give(redis, *KEYS, "+@all", "&*", password="old")
    write("old")
    a = start("pod-a", *QUICK, fixed_port=True,
              env={"GAVEL_STORE_USER": "gavel", "GAVEL_STORE_PASSWORD_FILE": path})
    token = a.wait_leader().token
    sampler = sample([a])
    redis.cli("ACL", "SETUSER", "gavel", "resetpass", ">new")
    confirmed = requests(a, "renew", "yes")
    wait_until(lambda: requests(a, "renew", "yes") >= confirmed + 4, 8, "renewed all the same")
    assert a.check().token == token
    redis.cli("CLIENT", "KILL", "USER", "gavel")
    wait_told(a, "store-refused", "WRONGPASS")
    write("new")
    a.signal(signal.SIGHUP)
    since = boottime_ns()
    assert a.wait_leader().token >= token
    assert boottime_ns() - since < 5 * S
    alive(a)
    sampler.stop()


def test_a_lease_lost_again_and_again_is_no_reason_to_end(redis, start, sample):
    """Deleted by somebody as soon as it is there, then no Redis at all: it contends on, and each
    grant has a greater token."""
    a = start("pod-a", "--ttl", "300ms", "--mode", "efficiency", fixed_port=True)
    sampler = sample([a])
    tokens = []
    for _ in range(15):
        tokens.append(wait_until(lambda: (not tokens or a.check().token > tokens[-1])
                                 and a.check().token, 5, "a new grant"))
        redis.cli("DEL", redis.lease_key("a"))
    assert tokens == sorted(set(tokens))
    assert len(a.event("state", reason="renewal-refused")) >= 10
    redis.kill()
    wait_told(a, "store-unreachable", "connection refused", state="unknown")
    tries = requests(a, "acquire", "unsure")
    wait_until(lambda: requests(a, "acquire", "unsure") >= tries + 20, 10)
    alive(a)
    redis.start()
    assert a.wait_leader().token > tokens[-1]
    assert a.restarts == 0
    sampler.stop()


def test_nothing_but_what_it_needs_is_sent(redis, begin, start):
    """Never CONFIG, SCRIPT, KEYS or FLUSHALL: no right to them is needed, nor would it kill the
    script of another."""
    redis.cli("CONFIG", "RESETSTAT")
    a = begin(*KEYS, "+@all", "&*")
    a.wait_leader()
    b = start("pod-b", *QUICK, env=as_user())
    b.wait_state("follower")
    redis.cli("CLIENT", "KILL", "USER", "gavel")
    redis.cli("SCRIPT", "FLUSH")
    wait_until(lambda: connections(a) > 1, 5)
    assert a.stop() == 0
    b.wait_leader()
    lines = redis.cli("INFO", "commandstats").split()
    used = {line.split(":")[0].removeprefix("cmdstat_") for line in lines if ":" in line}
    mine = {"config|resetstat", "acl|setuser", "client|kill", "script|flush", "info", "ping"}
    sent = {"auth", "role", "info", "evalsha", "eval", "subscribe"}
    in_scripts = {c[1:] for c in LEAST} | {"publish"}
    assert used - mine <= sent | in_scripts, used
    with pytest.raises(RespError, match="NOTBUSY"):
        redis.cli("SCRIPT", "KILL")
