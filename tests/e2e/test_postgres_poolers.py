"""Behind PgBouncer: what cannot hold a lock is found out before any is taken."""

import pytest

from e2e.cases import told
from kit.clock import S, boottime_ns, wait_until
from kit.pgbouncer import PgBouncer
from kit.postgres_server import Session


@pytest.fixture
def pooler(folder, postgres, closing):
    count = iter(range(9))

    def one(mode, size=5, options=()):
        return closing(PgBouncer(f"{folder}/pb{next(count)}", postgres, mode, size, options))
    return one


def for_a_while(condition, seconds=2):
    until = boottime_ns() + seconds * S
    while boottime_ns() < until:
        assert condition()


@pytest.mark.parametrize("mode,size", [("transaction", 1), ("transaction", 5), ("session", 5)])
def test_a_pooler_is_refused_before_any_lock(start, postgres, pooler, mode, size):
    postgres.sql("CREATE TABLE spy (n int)")  # nothing of ours: the log tells what was run
    postgres.sql("ALTER SYSTEM SET log_statement = 'all'")
    postgres.sql("SELECT pg_reload_conf()")
    pod = start("pod-a", "--ttl", "1s", store=pooler(mode, size).url)
    wait_until(lambda: "pooler-detected" in pod.log(), 30)
    wait_until(lambda: pod.status()["state"] == "unknown" and len(pod.text) > 6, 5)
    assert "--pg-lock transaction" in pod.log()
    for_a_while(lambda: not pod.leads())
    assert postgres.locks() == []
    with open(postgres.folder + "/postgres.log", encoding="utf-8") as f:
        statements = [line for line in f if "app" in line or "statement:" in line]
    assert not [s for s in statements if "advisory_lock(" in s or "set_config(" in s]


def test_statement_pooling_is_refused(start, postgres, pooler):
    for option in ((), ("--pg-lock", "transaction")):
        pod = start(f"pod-{len(option)}", "--ttl", "1s", *option, store=pooler("statement").url)
        wait_until(lambda: "store-connect-failed" in pod.log(), 30)
        for_a_while(lambda: not pod.leads(), 1)
        assert postgres.locks() == []


def test_a_session_pooler_is_accepted_when_named(start, sample, postgres, pooler):
    url = pooler("session", 12).url
    pods = [start(f"pod-{i}", "--ttl", "1s", "--pg-pooler", "session", store=url) for i in "ab"]
    sampler = sample(pods)
    first = sampler.wait_for_leader(0)
    leader = next(p for p in pods if p.identity == first.replica)
    wait_until(lambda: len(postgres.locks()) == 1, 20)
    since = boottime_ns()
    leader.kill9()
    sampler.wait_for_leader(since, besides=(leader.identity,))
    sampler.stop()


def test_a_pooler_of_transactions_named_as_one_of_sessions_is_refused(start, postgres, pooler):
    pod = start("pod-a", "--ttl", "1s", "--pg-pooler", "session", store=pooler("transaction").url)
    wait_until(lambda: "pooler-detected" in pod.log(), 30)
    for_a_while(lambda: not pod.leads(), 1)
    assert postgres.locks() == []


def settled(pods):
    def look():
        leaders = [p for p in pods if p.leads()]
        rest = [p for p in pods if p not in leaders]
        return leaders if len(leaders) == 1 and all(p.state() == "follower" for p in rest) else None
    return wait_until(look, 90, "one leader and followers")[0]


def test_a_lock_in_a_transaction(start, sample, postgres, pooler):
    url = pooler("transaction").url
    pods = [start(f"pod-{i}", "--ttl", "3s", "--pg-lock", "transaction", "--drain", "none",
                  store=url, fixed_port=True) for i in "abc"]
    sampler = sample(pods)
    leader = settled(pods)
    def held_by():
        out = postgres.sql("SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l USING (pid) WHERE "
                           "l.locktype = 'advisory' AND state = 'idle in transaction' AND "
                           "backend_xmin IS NULL AND backend_xid IS NULL")
        return int(out) if out else None
    pid = wait_until(held_by, 20)
    postgres.sql("CREATE TABLE t (x int)")
    postgres.sql("CREATE INDEX CONCURRENTLY i ON t (x)", timeout=10)
    token = leader.check().token
    for_a_while(lambda: leader.check().token == token)
    # Its end by the server is its end.
    since = boottime_ns()
    postgres.end_backend(wait_until(held_by, 20))
    wait_until(lambda: not leader.leads(), 10)
    assert sampler.wait_for_leader(boottime_ns()).token > token
    for act in ("kill9", "terminate", "freeze"):
        leader = settled(pods)
        if act == "terminate":
            sampler.readers("stop", leader)
        since = boottime_ns()
        getattr(leader, act)()
        sampler.wait_for_leader(since, besides=(leader.identity,))
        if act == "freeze":
            leader.thaw()
            assert not leader.check().leader
        else:
            leader.wait()
            leader.start()
            sampler.readers("resume", leader) if act == "terminate" else None
    sampler.stop()


def test_transactions_of_several_elections_are_apart(start, postgres):
    pod = start("pod-a", "--ttl", "2s", "--pg-lock", "transaction", store=postgres.url,
                elections=["a", "b"])
    pod.wait_leader(60, "a")
    pod.wait_leader(60, "b")
    assert len(set(postgres.locks())) == 2
    token = pod.check("b").token
    assert pod.ask("resign a") == "ok"
    assert pod.check("b").token == token
    pod.wait_leader(60, "a")


def test_what_a_pooler_cannot_give_is_said(start, postgres, pooler, closing):
    full = pooler("session", 1)
    session = closing(Session(full.port, "app", "app"))
    session.ask("SELECT 1")
    waits = start("pod-a", "--ttl", "1s", "--pg-pooler", "session", store=full.url)
    free = pooler("session", 5).url + "?"
    pods = {"options": start("pod-b", "--ttl", "1s", "--pg-pooler", "session",
                             store=free + "options=-c%20idle_session_timeout%3D6s"),
            "channel binding": start("pod-c", "--ttl", "1s", "--pg-pooler", "session",
                                     store=free + "channel_binding=require")}
    for words, pod in pods.items():
        told(pod, reason="store-refused", detail=words, timeout=30)
    # It says that it is connected, and answers nothing: there is no session left.
    told(waits, reason="store-unreachable", detail="a pooler may have no session to give",
         timeout=30)
    assert postgres.locks() == [] and not waits.leads()
