"""Servers that are not what they seem: those whose locks exclude nobody, another cluster behind
the same address, statements that are spread over several servers."""

import json

import pytest

from e2e.cases import logged, told
from kit.clock import S, boottime_ns, wait_until
from kit.odd_postgres import COPY_IN, COPY_OUT, READY, OddPostgres, error
from kit.postgres_server import Postgres
from kit.relay import Relay

# A function of the server takes the name's place: like this the real one is out of reach.
REPLACE = ("ALTER FUNCTION pg_catalog.{0}(bigint) RENAME TO {0}_real; CREATE FUNCTION "
           "pg_catalog.{0}(bigint) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT {1}'")
FAKES = {
    # CockroachDB: the functions are there, do nothing, and say yes.
    "yes": (("pg_try_advisory_lock", "true"), ("pg_try_advisory_xact_lock", "true"),
            ("pg_advisory_unlock", "true")),
    # Those that find out whether locks exclude are answered right, and nothing is locked.
    "sly": (("pg_try_advisory_lock", "true"), ("pg_try_advisory_xact_lock", "false"),
            ("pg_advisory_unlock", "true")),
    # Neither yes nor no, at once, or where an election's key comes (those here are negative).
    "null": (("pg_try_advisory_lock", "NULL::bool"), ("pg_try_advisory_xact_lock", "NULL::bool")),
    "later": tuple((name, f"CASE WHEN $1 >= 0 THEN pg_catalog.{name}_real($1) END")
                   for name in ("pg_try_advisory_lock", "pg_try_advisory_xact_lock")),
    # What is locked stays locked.
    "sticky": (("pg_advisory_unlock", "true"),),
}


def test_locks_that_exclude_nobody_are_not_led_on(start, postgres):
    words = {"yes": "do not exclude", "sly": "pg_locks does not have it",
             "sticky": "still there", "null": "random key was not given",
             "later": "pg_locks does not have it", "other": "42883: function pg_catalog.pg_control_system()"}
    for name in words:
        postgres.sql(f"CREATE DATABASE \"{name}\"")
        postgres.sql("GRANT CREATE ON SCHEMA public TO app", database=name)
        for function, answer in FAKES.get(name, ()):
            postgres.sql(REPLACE.format(function, answer), database=name)
    postgres.sql("ALTER FUNCTION pg_catalog.pg_control_system() RENAME TO gone", database="other")

    def begin(name, lock, ttl="1s"):
        return start(f"pod-{name}-{lock}", "--ttl", ttl, "--mode", "efficiency", "--pg-lock", lock,
                     store=postgres.url_of("app", name), http="off", health="off")

    pods = {(name, lock): begin(name, lock) for name in words for lock in ("session", "transaction")
            if name != "sticky" and (name, lock) != ("sly", "transaction")}
    for (name, lock), pod in pods.items():
        logged(pod, "do not exclude" if lock == "transaction" and name == "yes" else words[name],
               timeout=30)
    assert not any(p.leads() for p in pods.values())
    for pod in pods.values():
        pod.terminate()
    for pod in pods.values():
        assert pod.wait() == 0
        assert not pod.event("state", to="leader")
    # It can be won here, and not be given back: the session goes, and the lock with it.
    pod = begin("sticky", "session", ttl="3s")
    pod.wait_leader(60)
    pod.ask("resign")
    logged(pod, words["sticky"], timeout=30)


@pytest.fixture
def two(folder, closing):
    """Two clusters that never had to do with each other, and a relay to the first."""
    here = closing(Postgres(folder + "/here"))
    there = closing(Postgres(folder + "/there", cluster=1))
    return here, there, closing(Relay(here.port))


def through(relay):
    return f"postgres://app@127.0.0.1:{relay.port}/app"


def test_another_cluster_behind_the_address_is_another_server(start, sample, two):
    here, there, relay = two
    # There somebody led, and said that he had stopped: whoever knows only that could lead at once.
    before = start("pod-b", "--ttl", "1s", store=there.url, fixed_port=True)
    before.wait_leader(60)
    assert before.stop() == 0
    there.sql("UPDATE gavel_election SET clean = true")  # a slow host may have let it lapse
    # Here tokens are far ahead.
    pod = start("pod-a", "--ttl", "1s", "--token-floor", "50000000000000", store=through(relay))
    first = pod.wait_leader(60)
    space = pod.status()["lock_space"]
    sampler = sample([pod])
    relay.switch(there.port)
    wait_until(lambda: not pod.leads(), 5)
    since = boottime_ns()
    second = sampler.wait_for_leader(since)
    assert second.token > first.token
    assert second.receive - since >= 1 * S, "leases of the first server may still be trusted"
    assert pod.event("state", to="pending")[-1]["detail"]
    assert there.row()["prior"] == "token-behind"
    assert pod.status()["lock_space"] != space
    # ... and back again.
    relay.switch(here.port)
    wait_until(lambda: not pod.leads(), 5)
    since = boottime_ns()
    third = sampler.wait_for_leader(since)
    assert third.token > second.token and third.receive - since >= 1 * S
    sampler.stop()


def test_rows_of_another_cluster_confirm_and_mark_nothing(start, two):
    here, there, relay = two
    other = start("pod-b", "--ttl", "1s", "--drain", "none", store=there.url)
    other.wait_leader(60)
    other.kill9()
    pod = start("pod-a", "--ttl", "1s", "--drain", "none", store=through(relay))
    pod.wait_leader(60)
    wait_until(lambda: here.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'")
               == "1", 20, "the second connection is closed")
    row = there.row()
    relay.backend_port = there.port  # for connections to come; the lock's own lives on
    token = pod.check().token
    until = boottime_ns() + 1 * S
    wait_until(lambda: boottime_ns() > until)
    assert pod.check().token in (0, token)
    pod.stop()
    assert there.row() == row, "no mark, nor anything else, is written there"
    assert here.row()["clean"] == "f"


def test_a_probe_of_two_halves_needs_one_server(start, two):
    here, there, relay = two
    pod = start("pod-a", "--ttl", "1s", "--pg-lock", "transaction", store=through(relay))
    pod.wait_leader(60)
    relay.backend_port = there.port
    here.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND "
             "pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')")
    wait_until(lambda: not pod.leads(), 10)
    told(pod, reason="store-refused")
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert not pod.leads()
    relay.backend_port = here.port
    relay.cut()
    pod.wait_leader(60)


@pytest.mark.parametrize("reply", [COPY_IN, COPY_OUT, COPY_IN + READY, error(b"x") + COPY_OUT],
                         ids=["in", "out", "in-ready", "error-out"])
def test_an_answer_that_nobody_asked_for_does_not_hold_the_process(start, closing, reply):
    server = closing(OddPostgres(reply))
    pod = start("pod-a", "--ttl", "1s", store=f"postgres://app@127.0.0.1:{server.port}/app")
    wait_until(lambda: server.queries >= 2, 30, "it connects again")
    assert not pod.check().leader
    assert pod.stop() == 0


def test_a_password_that_the_server_quotes_is_not_shown(start, closing):
    server = closing(OddPostgres(error(b"no user app with password sEkret-9, go away") + READY))
    pod = start("pod-a", "--ttl", "1s",
                store=f"postgres://app:sEkret-9@127.0.0.1:{server.port}/app")
    wait_until(lambda: "go away" in pod.log(), 30)
    assert "sEkret" not in pod.log() and "sEkret" not in json.dumps(pod.status())
