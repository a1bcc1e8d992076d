"""PostgreSQL: keys, schemas, rights and passwords. What is wrong is said with what mends it."""

import os
import random
import subprocess
from contextlib import closing as closing_now

import pytest

from e2e.cases import settled, told
from kit.clock import S, boottime_ns, wait_until
from kit.pgbouncer import PgBouncer
from kit.postgres_server import Session
from kit.readme import ROOT, commands, sql
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
    wait_until(lambda: (follower.status()["holder_since"] or "") > since, 30)
    postgres.sql("UPDATE gavel_election SET granted = 'infinity'")
    pod = leader
    pod.wait_state("follower")
    told(pod, holder=follower.identity, holder_since=None)


def test_a_key_of_another_name_is_a_configuration_error(start, pods, postgres):
    first = start("pod-a", "--ttl", "1s", "--pg-key", "42", store=postgres.url, elections=["a"])
    first.wait_leader(60)
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
    pod.wait_leader(60)
    assert postgres.sql("SELECT classid, objid, objsubid FROM pg_locks WHERE locktype = 'advisory'"
                        ) == shown
    assert postgres.sql("SELECT lock_classid, lock_objid, lock_objsubid FROM gavel_election"
                        ) == shown


def test_namespaces_and_schemas(pods, start, postgres):
    a, = pods("a")
    b, = pods("b", "--namespace", "other")
    a.wait_leader(60)
    b.wait_leader(60)
    assert postgres.sql("SELECT count(*) FROM gavel_election") == "2"
    postgres.sql("CREATE SCHEMA \"My Own\" AUTHORIZATION app")
    c = start("pod-c", "--ttl", "1s", "--pg-schema", "My Own", store=postgres.url, elections=["c"])
    c.wait_leader(60)
    assert postgres.sql("SELECT name FROM \"My Own\".gavel_election") == "c"
    assert c.status()["lock_space"].endswith("@My Own")


def as_operator(postgres, command):
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "super"}
    subprocess.run(["sh", "-c", command + " -X -q -v ON_ERROR_STOP=1"], cwd=ROOT, env=env,
                   check=True, timeout=30)


def test_the_operators_query_shows_who_leads_and_since_when(pods, postgres):
    before = postgres.sql("SELECT now()")
    pod, = pods("a")
    token = pod.wait_leader().token
    shown = postgres.sql(sql("holders")).split("|")
    assert shown[:4] == ["default", "a", "pod-a", str(token)]
    assert postgres.sql(f"SELECT '{shown[4]}'::timestamptz BETWEEN '{before}' AND now()") == "t"
    assert postgres.locks() == [int(shown[5])]
    pod.stop()
    assert postgres.sql(sql("holders")) == ""


def test_what_is_missing_is_said_with_what_mends_it(pods, postgres):
    postgres.sql("REVOKE CREATE ON SCHEMA public FROM app")
    pod, = pods("a")
    wait_until(lambda: "deploy/sql/gavel_election.sql" in pod.log(), 30)
    create, grant = [line for mark, text in commands() if mark == "operator"
                     for line in text.strip().splitlines()]
    as_operator(postgres, create)
    wait_until(lambda: "deploy/sql/grants.sql" in pod.log(), 30)
    as_operator(postgres, grant)
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
    statement = sql("key").strip().rstrip(";")
    assert run(GAVEL, "key", "billing").stdout.strip() == postgres.sql(statement)
    ours = run(GAVEL, "key", "--namespace", "prod", *names).stdout.split()
    values = ",".join(f"({i}, '{n}')" for i, n in enumerate(names))
    theirs = postgres.sql(
        statement.replace("'default/billing'", "'prod/' || name")
        + f" FROM (VALUES {values}) AS t (i, name) ORDER BY i").split()
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


def test_a_password_with_an_at_sign_is_not_taken_for_a_host(folder):
    done = run(GAVEL, "config", "--election", "a", "--socket", folder + "/x",
               env={"GAVEL_STORE": "postgres://app:s3@cr3t@127.0.0.1/app"})
    assert done.returncode == 78 and "%40" in done.stderr
    assert "cr3t" not in done.stdout + done.stderr


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
    assert "wrong-Zq" not in pod.log() and "PGPASSWORD" in pod.log()
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


def most_memory_kb(pod):
    with open(f"/proc/{pod.pid}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmHWM:")).split()[1])


def test_a_huge_text_in_the_table_is_not_taken_whole(start, postgres):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=postgres.url)
    pod.wait_leader(60)
    follower = start("pod-b", "--ttl", "1s", "--mode", "efficiency", store=postgres.url)
    wait_until(lambda: follower.status()["holder"].startswith("pod-a"), 30)
    before = most_memory_kb(follower)
    postgres.sql("UPDATE gavel_election SET holder = repeat('x', 50000000)")
    wait_until(lambda: follower.status()["holder"].startswith("xxx"), 30)
    assert most_memory_kb(follower) - before < 20000
