"""The way to Redis is refused, silent, full or slow: attempts go on, nothing is lost too early,
and whoever asks the sidecar is answered all the same."""

import socket

import pytest

from e2e.footprint import status_field
from e2e.told import alive, connections, pair, pause_s, requests, wait_told, within
from kit.clock import MS, S, boottime_ns, wait_until
from kit.fake_redis import MUTE, FakeRedis
from kit.redis_server import Redis
from kit.sidecar import TIMING


@pytest.mark.parametrize("ending", ["before the start", "killed", "killed with unread requests"])
def test_connected_within_a_second_of_redis_being_up(redis, start, sample, ending, timely):
    early = ending == "before the start"
    if early:
        redis.kill()
    # The longest pauses are a tenth of the ttl, and less than a second however long that is.
    a = start("pod-a", "--ttl", "60s" if early else "2s", "--mode", "efficiency", fixed_port=True)
    if not early:
        a.wait_leader()
    sampler = sample([a])
    if ending == "killed with unread requests":
        redis.freeze()
        wait_until(lambda: requests(a, "renew", "unsure") > 0, 5)
    redis.kill()
    wait_told(a, "store-unreachable", "connection refused", timeout=5)
    pause_s(2.5 if early else 0.4)  # so that it has come to its longest pauses
    before = connections(a)
    redis.start()
    since = boottime_ns()
    wait_until(lambda: connections(a) > before, 10)
    within(since, 1, sampler)
    a.wait_leader()
    if early:
        sampler.wait_for_leader(since)  # it, too, has heard so
    alive(a)
    sampler.stop()


class FullQueue:
    """A frozen server whose queue of connections is full: nobody else's attempt is answered."""
    def __init__(self, server):
        self.server = server
        server.freeze()
        self.fillers = []
        for _ in range(12):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", server.port))
            self.fillers.append(s)

    def close(self):
        for s in self.fillers:
            s.close()
        self.server.thaw()


class Silence:
    """A server that still accepts and reads, and says nothing any more."""
    def __init__(self, fake):
        self.fake = fake
        for kind in ("ROLE", "INFO", "SUBSCRIBE", "acquire", "renew", "release"):
            fake.say(kind, MUTE)

    def close(self):
        for kind in ("ROLE", "INFO", "SUBSCRIBE", "acquire", "renew", "release"):
            self.fake.say(kind, None)


class Frozen:
    def __init__(self, server):
        self.server = server
        server.freeze()

    def close(self):
        self.server.thaw()


@pytest.mark.parametrize("silence", [Frozen, FullQueue, Silence])
def test_two_whole_attempts_are_made_before_the_deadline(folder, closing, start, sample, silence,
                                                         timely):
    server = closing(FakeRedis() if silence is Silence
                     else Redis(folder + "/redis", ["--tcp-backlog", "1"]))
    a = start("pod-a", "--ttl", "1500ms", "--mode", "efficiency", store=server.url,
              fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a])
    spent = 'gavel_store_request_duration_seconds_sum{op="renew"}'
    before, time_before = requests(a, "renew", "unsure"), a.metrics()[spent]
    silent = silence(server)
    wait_until(lambda: a.event("state", to="unknown", reason="deadline"), 8, "its lease ran out")
    assert requests(a, "renew", "unsure") - before >= 2
    assert a.metrics()[spent] - time_before >= 2 * 0.24  # ttl/6 each, and not a hurried one
    wait_told(a, "store-unreachable", "in time", state="unknown")
    silent.close()
    since = boottime_ns()
    assert a.wait_leader().token > token
    within(since, 1, sampler)
    alive(a)
    sampler.stop()


def test_files_and_memory_stay_flat_while_redis_hangs(redis, start):
    a = start("pod-a", "--ttl", "300ms", "--mode", "efficiency")
    a.wait_leader()
    redis.freeze()
    wait_told(a, "store-unreachable", "in time", state="unknown")
    pause_s(0.5)
    files, memory = a.open_files(), status_field(a.pid, "RssAnon")
    attempts = requests(a, "release", "unsure") + requests(a, "acquire", "unsure")
    most = 0

    def many():
        nonlocal most
        most = max(most, a.open_files())
        return requests(a, "release", "unsure") + requests(a, "acquire", "unsure") > attempts + 25
    wait_until(many, 20, "25 attempts more")
    assert most <= files + 4, (files, most)
    if TIMING:  # a sanitizer keeps what is freed
        assert status_field(a.pid, "RssAnon") <= memory + 128
    redis.thaw()
    a.wait_leader()
    wait_until(lambda: a.open_files() <= files + 2, 5)


def shortly_before_a_renewal(redis):
    """Of a lease of 1500 ms: the renewal is due when 1000 ms are left, and given up at 750."""
    wait_until(lambda: 1080 < redis.cli("PTTL", redis.lease_key("a")) < 1200, 5, poll=0.002)


def test_one_failed_renewal_never_loses_the_lease(redis, start, sample, timely):
    """In each grant of a process, not only in the first."""
    a = start("pod-a", "--ttl", "1500ms", "--mode", "efficiency", fixed_port=True)
    sampler = sample([a])
    token = 0
    for _ in range(3):
        wait_until(lambda: a.check().token > token, 5, "a new grant")
        token = a.check().token
        shortly_before_a_renewal(redis)
        failed = requests(a, "renew", "unsure")
        redis.freeze()
        since = boottime_ns()
        pause_s(0.5)
        redis.thaw()
        confirmed = requests(a, "renew", "yes")
        wait_until(lambda: requests(a, "renew", "yes") > confirmed, 5, "renewed again")
        assert requests(a, "renew", "unsure") > failed, "no renewal failed: nothing was tested"
        assert a.check().token == token
        assert [c for c in sampler.changes if not c.leader and c.receive > since] == []
        redis.cli("DEL", redis.lease_key("a"))
    alive(a)
    sampler.stop()


def test_faults_shorter_than_half_the_ttl_cost_nothing(redis, relay, start, sample, timely):
    leader, follower = pair(start, "1500ms", store=relay.url)
    token = leader.check().token
    sampler = sample([leader, follower], every_ms=2)

    def frozen(freeze, thaw, seconds):
        shortly_before_a_renewal(redis)
        freeze()
        pause_s(seconds)
        thaw()

    def refused():
        relay.switch(1)
        pause_s(0.4)
        relay.switch(redis.port)
    faults = [lambda: frozen(redis.freeze, redis.thaw, 0.5),
              lambda: frozen(relay.freeze, relay.thaw, 0.5),
              relay.cut, refused,
              lambda: redis.cli("CLIENT", "KILL", "TYPE", "normal"),
              lambda: redis.cli("CLIENT", "KILL", "TYPE", "pubsub")]
    for fault in faults:  # one at a time
        fault()
        confirmed = requests(leader, "renew", "yes")
        wait_until(lambda: requests(leader, "renew", "yes") > confirmed, 5, "renewed again")
    assert leader.check().token == token
    summary = sampler.stop()
    assert summary["grants"] == 1
    assert sampler.share(leader) >= 0.99 and sampler.share(follower) == 0


def test_a_master_demoted_on_a_live_connection(redis, relay, folder, closing, start, sample,
                                               timely):
    """The way leads to the new master already: it is taken at once, with the lease as it was."""
    redis.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    new = closing(Redis(folder + "/new", ["--replicaof", f"127.0.0.1 {redis.port}"]))
    wait_until(lambda: "master_link_status:up" in new.cli("INFO", "replication"), 10)
    leader, follower = pair(start, "2s", store=relay.url)
    token = leader.check().token
    wait_until(lambda: "store-replicated-async" in leader.status()["warnings"], 5)
    sampler = sample([leader, follower], every_ms=2)
    relay.backend_port = new.port  # connections that exist stay
    confirmed, value = requests(leader, "renew", "yes"), redis.lease()
    new.cli("REPLICAOF", "NO", "ONE")
    redis.cli("REPLICAOF", "127.0.0.1", new.port)
    wait_until(lambda: leader.event("store-connection-lost"), 5, "the demotion is noticed")
    since = boottime_ns()
    wait_until(lambda: connections(leader) >= 2, 5)
    within(since, 1, sampler)
    wait_until(lambda: requests(leader, "renew", "yes") > confirmed + 1, 5, "renewed there")
    assert leader.check().token == token and new.lease() == value
    summary = sampler.stop()
    assert summary["grants"] == 1 and sampler.share(leader) >= 0.99


def test_the_reply_to_an_acquire_is_lost_twenty_times(redis, relay, start, sample, timely):
    """The server has granted it: the same grant is found at once, not waited out for a ttl."""
    a = start("pod-a", "--ttl", "600ms", "--mode", "efficiency", store=relay.url, fixed_port=True)
    token = a.wait_leader().token
    sampler = sample([a], every_ms=0)  # no grant is missed
    for times in range(1, 21):
        old = redis.lease()
        relay.drop_reply_when(lambda: redis.lease() not in (None, old))
        redis.cli("DEL", redis.lease_key("a"))
        wait_until(lambda: relay.dropped == times, 5, "the reply is lost", poll=0.001)
        since, lost = boottime_ns(), redis.record()["tok"]
        token_now = wait_until(lambda: a.check().token > token and a.check().token, 5)
        within(since, 1, sampler)
        assert token_now == int(lost) == int(redis.record()["tok"]), "two tokens for one grant"
        token = token_now
    summary = sampler.stop()
    assert summary["grants"] == 21


def test_takeover_does_not_need_notifications_of_keys(redis, start, sample, timely):
    """Nor is it slower for a twenty thousand other keys that expire in the same second."""
    redis.cli("CONFIG", "SET", "notify-keyspace-events", "")
    leader, follower = pair(start)
    wait_until(lambda: boottime_ns() - follower.started_ns > 2.3 * S, 10)  # it can vouch by now
    sampler = sample([leader, follower], every_ms=2)
    redis.cli("EVAL", "for i = 1, 20000 do redis.call('SET', i, i, 'PX', 500 + i % 500) end", 0)
    wait_until(lambda: redis.cli("PTTL", redis.lease_key("a")) > 900, 5, poll=0.002)
    since = boottime_ns()
    leader.kill9()
    taken = sampler.wait_for_leader(since, besides=(leader.identity,))
    took = taken.receive - since - sampler.stalled_ns(since, taken.receive)
    assert not TIMING or took <= 1100 * MS, took / MS
    assert not follower.event("state", to="pending"), "it could not lead at once"
    sampler.stop()


def test_a_reset_while_requests_of_many_are_under_way(closing, start, timely):
    """Each of them is in doubt, none is lost: the next renewals make them good."""
    fake = closing(FakeRedis())
    names = [f"job-{n}" for n in range(20)]
    a = start("pod-a", "--ttl", "2s", "--mode", "efficiency", elections=names, store=fake.url)
    wait_until(lambda: all(a.leads(n) for n in names), 10)
    tokens = {n: a.check(n).token for n in names}
    fake.say("renew", MUTE)
    asked = fake.count("renew")
    wait_until(lambda: fake.count("renew") >= asked + len(names), 5, "all are under way")
    fake.say("renew", None)
    fake.cut()
    confirmed = requests(a, "renew", "yes")
    wait_until(lambda: requests(a, "renew", "yes") >= confirmed + len(names), 5)
    assert {n: a.check(n).token for n in names} == tokens
