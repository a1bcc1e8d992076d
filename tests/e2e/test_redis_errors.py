"""Redis answers, with an error: it is told in its own words, costs the lease only at its deadline,
and is over by itself when its cause is."""

import os

import pytest

from e2e.told import QUICK, alive, pair, pause_s, requests, wait_told
from kit.clock import boottime_ns, wait_until
from kit.fake_redis import FakeRedis, array, error
from kit.resp import Resp, RespError

# What stands in front of an error of a script: Redis 6.2, and nothing in 7.0.
WRAPPED = "ERR Error running script (call to f_4f0dd4d7fbd5a27b): @user_script:171: "
WHERE = " script: 4f0dd4d7fbd5a27b, on @user_script:171."
CODES = {
    "READONLY": "You can't write against a read only replica.",
    "OOM": "command not allowed when used memory > 'maxmemory'.",
    "MISCONF": "Redis is configured to save RDB snapshots, but it's currently unable to persist on "
               "disk.",
    "NOREPLICAS": "Not enough good replicas to write.",
    "WRONGTYPE": "Operation against a key holding the wrong kind of value",
    "NOPERM": "this user has no permissions to access one of the keys used as arguments",
}
HIDDEN = [(code, WRAPPED + f"-{code} {text}") for code, text in CODES.items()] \
    + [("OOM", f"OOM {CODES['OOM']}{WHERE}"), ("can't run this command",
        "ERR The user executing the script can't run this command or subcommand" + WHERE)]


def test_an_error_within_a_script_never_costs_a_lease(closing, start, sample, timely):
    """Whatever stands in front of it. It is told, and the next renewal makes it good."""
    fake = closing(FakeRedis())
    a = start("pod-a", *QUICK, store=fake.url, fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a])
    for code, text in HIDDEN:
        fake.say("renew", error(text))
        wait_told(a, "store-refused", state="leader")
        assert code in a.status()["detail"], (text, a.status())
        fake.say("renew", None)
        wait_until(lambda: a.status()["reason"] == "renewed", 5)
        assert a.status()["detail"] == "" and a.check().token == token
    sampler.stop()
    assert sampler.share(a) == 1


def test_an_error_within_a_script_is_never_taken_for_another_holder(closing, start):
    fake = closing(FakeRedis())
    fake.say("acquire", error(HIDDEN[0][1]))
    a = start("pod-a", "--ttl", "300ms", "--mode", "efficiency", store=fake.url)
    for code, text in HIDDEN:
        fake.say("acquire", error(text))
        wait_told(a, "store-refused", code, state="unknown")
        assert a.ask("check") == "follower -"
    assert not [e for e in a.events if e.get("event") == "state"], a.log()
    fake.say("acquire", None)
    a.wait_leader()


def test_a_script_cache_flushed_all_the_time(redis, start, sample, timely):
    """Ten times a second while it leads, and between the last renewal and the release."""
    a = start("pod-a", *QUICK, "--drain", "none", fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a])
    confirmed = requests(a, "renew", "yes")

    def renewed():
        redis.cli("SCRIPT", "FLUSH")
        return requests(a, "renew", "yes") >= confirmed + 4
    wait_until(renewed, 10, "four renewals", poll=0.1)
    assert requests(a, "renew", "no") == requests(a, "renew", "unsure") == 0
    assert a.check().token == token
    sampler.stop()
    assert sampler.share(a) == 1
    redis.cli("SCRIPT", "FLUSH")
    assert a.stop() == 0
    assert redis.lease() is None, "it was not released"


def test_the_lock_replaced_by_another_type(redis, start):
    """Its holder loses it, nobody touches it, and it is taken again as soon as it is free."""
    a = start("pod-a", *QUICK)
    token = a.wait_leader().token
    redis.cli("EVAL", "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'f', 'v')", 1,
              redis.lease_key("a"))
    status = wait_told(a, "foreign-value", redis.lease_key("a"), state="follower")
    assert status["holder"] == "?"
    tries = requests(a, "acquire", "no")
    wait_until(lambda: requests(a, "acquire", "no") >= tries + 3, 5)
    assert redis.cli("HGETALL", redis.lease_key("a")) == ["f", "v"]
    redis.cli("DEL", redis.lease_key("a"))
    assert a.wait_leader(5).token > token
    assert a.status()["detail"] == ""


def test_a_far_too_long_expiry_of_a_dead_holder_is_cut_to_its_own_ttl(redis, start):
    """To the ttl that the value names, not to that of the follower: nor is it waited for a day."""
    a = start("pod-a", "--ttl", "2s", "--mode", "efficiency")
    a.wait_leader()
    b = start("pod-b", "--ttl", "600ms", "--mode", "efficiency")
    b.wait_state("follower")
    a.kill9()
    redis.cli("SET", redis.lease_key("a"), redis.lease(), "PX", 86400000)
    left = wait_until(lambda: redis.cli("PTTL", redis.lease_key("a")) < 86000000 and
                      redis.cli("PTTL", redis.lease_key("a")), 5, poll=0.001)
    assert 1000 < left <= 2000
    wait_until(lambda: "key-without-expiry" in b.status()["warnings"] or b.leads(), 5)
    assert b.event("warning", code="key-without-expiry")
    b.wait_leader(6)


def test_a_far_too_long_expiry_of_a_foreign_value_is_left_alone(redis, start):
    redis.cli("SET", redis.lease_key("a"), "junk", "PX", 86400000)
    a = start("pod-a", *QUICK)
    wait_told(a, "foreign-value", redis.lease_key("a"), state="follower")
    tries = requests(a, "acquire", "no")
    wait_until(lambda: requests(a, "acquire", "no") >= tries + 2, 5)
    assert redis.lease() == "junk" and redis.cli("PTTL", redis.lease_key("a")) > 86300000
    assert a.event("store", level="warn", reason="foreign-value")


def test_a_server_that_still_loads_its_data(redis, start):
    redis.cli("EVAL", "for i = 1, 10000 do redis.call('SET', 'k' .. i, i) end", 0)
    redis.cli("SAVE")
    a = start("pod-a", *QUICK)
    token = a.wait_leader().token
    redis.kill()
    redis.options += ["--key-load-delay", "100", "--loading-process-events-interval-bytes", "1024"]
    redis.start(wait=False)
    wait_told(a, "store-refused", "LOADING", state="unknown")
    assert not a.leads()
    wait_until(lambda: redis.cli("DBSIZE") >= 10000 if a.leads() else None, 10, "loaded, leads")
    assert a.check().token > token
    alive(a)


class Busy:
    """Somebody's script that does not end by itself."""
    def __init__(self, redis):
        self.redis = redis
        self.resp = Resp(redis.port, timeout=30)
        self.resp.send("EVAL", "while true do end", 0)

    def end(self):
        assert self.redis.cli("SCRIPT", "KILL") == "OK"
        with pytest.raises(RespError, match="kill"):
            self.resp.read()
        self.resp.close()


def test_a_script_of_others_that_is_shorter_than_the_lease(redis, start, sample, timely):
    redis.cli("CONFIG", "SET", "busy-reply-threshold", "50")
    leader, follower = pair(start, "1500ms")
    token = leader.check().token
    sampler = sample([leader, follower])
    wait_until(lambda: 1000 < redis.cli("PTTL", redis.lease_key("a")) < 1200, 5, poll=0.002)
    busy = Busy(redis)
    wait_told(leader, "store-refused", state="leader", timeout=1)
    assert "BUSY" in leader.status()["detail"]
    busy.end()
    wait_told(leader, "renewed", state="leader")
    assert leader.check().token == token
    sampler.stop()
    assert sampler.share(leader) == 1


def test_a_script_of_others_that_is_longer_than_the_lease(redis, start, sample):
    redis.cli("CONFIG", "SET", "busy-reply-threshold", "50")
    leader, follower = pair(start)
    token = leader.check().token
    sampler = sample([leader, follower])
    busy = Busy(redis)
    for pod in (leader, follower):
        wait_told(pod, "store-refused", "BUSY", state="unknown")
    pause_s(0.5)
    since = boottime_ns()
    busy.end()  # nobody else has killed it
    assert sampler.wait_for_leader(since).token > token
    alive(leader, follower)
    sampler.stop()


def refuse_writes(redis, folder, how):
    """Makes it refuse writes, and returns what ends that."""
    if how == "NOREPLICAS":
        redis.cli("CONFIG", "SET", "min-replicas-to-write", "1")
        return lambda: redis.cli("CONFIG", "SET", "min-replicas-to-write", "0")
    redis.cli("CONFIG", "SET", "save", "3600 1")
    os.mkdir(folder + "/redis/dump.rdb")  # nothing can be renamed to that, not by root either

    def saved(status):
        try:
            redis.cli("BGSAVE")
        except RespError:
            pass  # one is under way
        return f"rdb_last_bgsave_status:{status}" in redis.cli("INFO", "persistence")
    wait_until(lambda: saved("err"), 10, "a save that failed", poll=0.05)

    def end():
        os.rmdir(folder + "/redis/dump.rdb")
        wait_until(lambda: saved("ok"), 10, "a save that worked", poll=0.05)
    return end


@pytest.mark.parametrize("how", ["MISCONF", "NOREPLICAS"])
def test_writes_are_refused_and_reads_are_not(redis, start, sample, folder, how, timely):
    """It leads to its deadline and no longer, says why, and is back by itself."""
    leader, follower = pair(start)
    token = leader.check().token
    sampler = sample([leader, follower])
    end = refuse_writes(redis, folder, how)
    wait_until(lambda: leader.event("state", to="unknown", reason="deadline"), 8)
    assert requests(leader, "renew", "unsure") >= 2, "it stepped down at the first one refused"
    assert requests(leader, "renew", "no") == 0
    for pod in (leader, follower):
        wait_told(pod, "store-refused", how)
        assert not pod.leads()
    since = boottime_ns()
    end()
    assert sampler.wait_for_leader(since).token > token
    alive(leader, follower)
    sampler.stop()


def test_memory_is_full_and_nothing_is_evicted(redis, start, sample, timely):
    """Who leads goes on leading, who does not cannot begin, until there is room again."""
    leader, follower = pair(start)
    token = leader.check().token
    sampler = sample([leader, follower])
    redis.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")
    redis.cli("CONFIG", "SET", "maxmemory", "1mb")
    confirmed = requests(leader, "renew", "yes")
    wait_until(lambda: requests(leader, "renew", "yes") >= confirmed + 4, 8, "renewed all the same")
    assert leader.check().token == token
    leader.kill9()
    wait_told(follower, "store-refused", "OOM")
    redis.cli("CONFIG", "SET", "maxmemory", "0")
    assert follower.wait_leader().token > token
    alive(follower)
    sampler.stop()


def test_answers_that_our_scripts_never_give(closing, start):
    """They are nobody's word: neither yes nor no."""
    fake = closing(FakeRedis())
    a = start("pod-a", *QUICK, store=fake.url)
    a.wait_leader()
    since = boottime_ns()
    for answer in (b"+OK\r\n", b":1\r\n", b"$2\r\nOK\r\n", b"*0\r\n", b"*-1\r\n", b"$-1\r\n",
                   b"*2\r\n:1\r\n$-1\r\n", array("yes"), array("free"), array("held", "1", "2")):
        fake.say("renew", answer)
        fake.say("acquire", answer)
        asked = fake.count("renew", "acquire", "release")
        wait_until(lambda: fake.count("renew", "acquire", "release") > asked + 1, 5)
    wait_told(a, "store-unreachable", "strange shape", state="unknown")
    assert not [e for e in a.event("state") if e["reason"] in ("held-by-other", "renewal-refused")]
    assert fake.count("renew", "acquire", since=since) < 200
    fake.say("renew", None)
    fake.say("acquire", None)
    a.wait_leader()
