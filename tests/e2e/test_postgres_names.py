"""PostgreSQL: keys, schemas, rights and passwords. What is wrong is said with what mends it."""

import os
import random
from contextlib import closing as closing_now

import pytest

from e2e.cases import settled, told
from kit.clock import S, boottime_ns, wait_until
from kit.pgbouncer import PgBouncer
from kit.postgres_server import Session
from kit.sidecar import GAVEL, run


def test_a_foreign_holder_is_named(start, postgres, folder, closing):
    key, orphaned = run(GAVEL, "key", "a", "b").stdout.split()
    session = closing(postgres.session())
    session.ask(f"SELECT pg_advisory_lock({key})")
    pid = int(session.ask("SELECT pg_backend_pid()")[0])
    # The other one was taken through a pooler, by somebody who is gone.
    pooler = closing(PgBouncer(folder + "/pb", postgres, "transaction"))
    with closing_now(Session(pooler.port, "app", "app")) as gone:
        gone.ask(f"SELECT pg_advisory_lock({orphaned})")
    left = next(p for p in postgres.locks() if p != pid)
    pod = start("pod-a", "--ttl", "1s", store=postgres.url, elections=["a", "b"])
    for election, holder in (("a", pid), ("b", left)):
        status = told(pod, election, timeout=30, reason="foreign-value")
        assert status["holder"] == f"session-{holder}" and status["holder_since"] is None
        wait_until(lambda: f"pg_terminate_backend({holder})" in pod.log(), 20)
    session.ask(f"SELECT pg_advisory_unlock({key})")
    pod.wait_leader(60, "a")
    postgres.end_backend(left)
    pod.wait_leader(60, "b")


def test_all_are_told_who_holds_it_and_since_when(pods, postgres):
    pods = pods("ab", "--drain", "none", ttl="2s")
    for _ in range(2):
        leader, follower = settled(pods)
        since = leader.status()["holder_since"]
        assert since == postgres.sql(
            "SELECT to_char(date_trunc('milliseconds', granted) AT TIME ZONE 'UTC', "
            "'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM gavel_election")
        told(follower, holder=leader.identity, holder_since=since)
        told(leader, holder=leader.identity, holder_since=since, failover_safety="none")
        leader.stop()
        leader.start()
    assert wait_until(lambda: follower.status()["holder_since"], 10) > since
    postgres.sql("UPDATE gavel_election SET granted = 'infinity'")
    pod = leader
    pod.wait_state("follower")
    told(pod, holder=follower.identity, holder_since=None)


def test_a_key_of_another_name_is_a_configuration_error(start, pods, postgres):
    first = start("pod-a", "--ttl", "1s", "--pg-key", "42", store=postgres.url, elections=["a"])
    first.wait_leader()
    second = start("pod-b", "--ttl", "1s", "--pg-key", "42", store=postgres.url, elections=["b"])
    wait_until(lambda: "another name or --pg-key" in second.log(), 30)
    first.stop()
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert not second.leads()


def test_trouble_of_one_election_is_not_the_store_s(start, pods, postgres):
    before, = pods("b")
    before.wait_leader(60)
    before.stop()  # election a
    postgres.sql("UPDATE gavel_election SET name = 'x'")
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=postgres.url, elections=["a", "b"])
    pod.wait_leader(60, "b")
    told(pod, "a", timeout=30, reason="store-refused")

    def unreachable():
        return (len(pod.event("store-connection-lost")),
                len(pod.event("store", reason="store-unreachable")))
    before = unreachable()
    asked = [pod.metrics()["gavel_store_up"] for _ in range(200)]
    if unreachable() == before:  # not a host that was too slow
        assert set(asked) == {1.0}


@pytest.mark.parametrize("key,shown", [("-5", "4294967295|4294967291|1"), ("7,42", "7|42|2"),
                                       ("-1,-2", "4294967295|4294967294|2")])
def test_explicit_keys(pods, postgres, key, shown):
    pod, = pods("a", "--pg-key", key)
    pod.wait_leader()
    assert postgres.sql("SELECT classid, objid, objsubid FROM pg_locks WHERE locktype = 'advisory'"
                        ) == shown
    assert postgres.sql("SELECT lock_classid, lock_objid, lock_objsubid FROM gavel_election"
                        ) == shown


def test_namespaces_and_schemas(pods, start, postgres):
    a, = pods("a")
    b, = pods("b", "--namespace", "other")
    a.wait_leader()
    b.wait_leader()
    assert postgres.sql("SELECT count(*) FROM gavel_election") == "2"
    postgres.sql("CREATE SCHEMA \"My Own\" AUTHORIZATION app")
    c = start("pod-c", "--ttl", "1s", "--pg-schema", "My Own", store=postgres.url, elections=["c"])
    c.wait_leader()
    assert postgres.sql("SELECT name FROM \"My Own\".gavel_election") == "c"
    assert c.status()["lock_space"].endswith("@My Own")


def test_what_is_missing_is_said_with_what_mends_it(pods, postgres):
    postgres.sql("REVOKE CREATE ON SCHEMA public FROM app")
    pod, = pods("a")
    wait_until(lambda: "deploy/sql/gavel_election.sql" in pod.log(), 30)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(root + "/deploy/sql/gavel_election.sql", encoding="utf-8") as f:
        postgres.sql(f.read())
    wait_until(lambda: "deploy/sql/grants.sql" in pod.log(), 30)
    postgres.sql("GRANT SELECT, INSERT, UPDATE ON gavel_election TO app")
    pod.wait_leader(60)
    pod.stop()
    postgres.sql("ALTER TABLE gavel_election SET UNLOGGED")
    pod.start()
    wait_until(lambda: "permanent table" in pod.log(), 30)
    assert postgres.locks() == []


def test_tokens_of_a_sequence(pods, postgres):
    postgres.sql("CREATE SEQUENCE s START 50000000000000 CACHE 10; GRANT USAGE ON SEQUENCE s TO app")
    pod, = pods("a", "--pg-token", "sequence:public.s")
    wait_until(lambda: "CACHE 1" in pod.log(), 30)
    assert not pod.leads()
    postgres.sql("ALTER SEQUENCE s CACHE 1")
    assert pod.wait_leader(60).token >= 50000000000000


def test_keys_agree_with_sql(postgres):
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    names = [rng.choice(letters) + "".join(rng.choices(letters + "._-", k=rng.randrange(0, 100)))
             for _ in range(1000)]
    ours = run(GAVEL, "key", "--namespace", "prod", *names).stdout.split()
    values = ",".join(f"({i}, '{n}')" for i, n in enumerate(names))
    theirs = postgres.sql(
        "SELECT ('x' || substr(encode(sha256(convert_to('prod/' || name, 'UTF8')), 'hex'), 1, 16))"
        f"::bit(64)::bigint FROM (VALUES {values}) AS t (i, name) ORDER BY i").split()
    assert ours == theirs
    assert any(k.startswith("-") for k in ours) and len(set(ours)) == len(set(names))


def test_keys_are_those_of_the_namespace_that_run_would_use():
    prod = run(GAVEL, "key", "--namespace", "prod", "a", "b").stdout
    assert prod and prod != run(GAVEL, "key", "a", "b").stdout
    for arguments, env in ((["a", "--namespace", "prod", "b"], {}), (["a", "b"], {"GAVEL_NAMESPACE": "prod"}),
                           (["a", "--election-namespace=prod", "b"], {"GAVEL_NAMESPACE": "x"}),
                           (["--namespace=prod", "--", "a", "b"], {"GAVEL_NAMESPACE": ""}),
                           (["a", "b"], {"GAVEL_ELECTION_NAMESPACE": "prod"})):
        done = run(GAVEL, "key", *arguments, env=env)
        assert (done.stdout, done.returncode) == (prod, 0), (arguments, env, done.stderr)
    for arguments, env, status, word in (
            (["a", "--namespace"], {}, 64, "--namespace"), (["a", "--namespace="], {}, 64, "--namespace"),
            (["--namespace", "x", "a", "--election-namespace", "x"], {}, 64, "twice"),
            (["a", "--ttl", "1s"], {}, 64, "--ttl"), (["--namespace", "x"], {}, 64, "election"),
            (["a"], {"GAVEL_NAMESPACE": ""}, 78, "GAVEL_NAMESPACE"),
            (["a"], {"GAVEL_NAMESPACE": "x", "GAVEL_ELECTION_NAMESPACE": "x"}, 78, "once")):
        done = run(GAVEL, "key", *arguments, env=env)
        assert (done.stdout, done.returncode) == ("", status), (arguments, env, done)
        assert word in done.stderr and "Sanitizer" not in done.stderr


def test_no_password_is_shown(start, postgres, folder):
    secret = "hunter2-Zq"
    postgres.sql(f"ALTER ROLE app PASSWORD 'other'")
    with open(postgres.data + "/pg_hba.conf", "w", encoding="ascii") as f:
        f.write("host all super all trust\nhost all all all scram-sha-256\n")
    postgres.sql("SELECT pg_reload_conf()")
    url = postgres.url.replace("app@", f"app:{secret}@")
    env = {"GAVEL_STORE": url}
    pod = start("pod-a", "--ttl", "1s", store=postgres.url.replace("app@", "app:wrong-Zq@"))
    wait_until(lambda: "28P01" in pod.log(), 30)
    assert "wrong-Zq" not in pod.log()
    shown = run(GAVEL, "config", "--election", "a", "--socket", folder + "/x", env=env)
    assert shown.returncode == 0 and secret not in shown.stdout + shown.stderr
    bad = run(GAVEL, "config", "--election", "a", "--socket", folder + "/x",
              env={"GAVEL_STORE": url.replace("127.0.0.1", "[::1")})
    assert bad.returncode == 78 and secret not in bad.stdout + bad.stderr
    postgres.sql(f"ALTER ROLE app PASSWORD '{secret}'")
    passfile = folder + "/pgpass"
    with open(passfile, "w", encoding="ascii") as f:
        f.write(f"*:*:*:app:{secret}\n")
    os.chmod(passfile, 0o644)
    other = start("pod-b", "--ttl", "1s", store=postgres.url + "?passfile=" + passfile)
    wait_until(lambda: "chmod 0600" in other.log(), 30)
    os.chmod(passfile, 0o600)
    other.wait_leader(60)  # read anew at each attempt
    assert secret not in other.log()
