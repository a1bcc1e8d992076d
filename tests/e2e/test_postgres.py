"""Sidecars on a real PostgreSQL, as an ordinary role: handovers, and every way to lose a session."""

import contextlib
import os
import signal

import pytest

from kit.clock import MS, S, boottime_ns, wait_until
from kit.latency import Latency
from kit.sidecar import GAVEL, LONG, SLACK_MS, TIMING, run

BOUNDS = TIMING and LONG  # those of PostgreSQL need a quiet machine


def settled(pods):
    """The one leader, when all others follow."""
    def look():
        leaders = [p for p in pods if p.leads()]
        rest = [p for p in pods if p not in leaders]
        return leaders if len(leaders) == 1 and all(p.state() == "follower" for p in rest) else None
    return wait_until(look, 30, "one leader and followers")[0]


# A takeover wakes up some ten processes in turn, each as late as the host makes it.
WAKE_UPS = 10


class Takeovers:
    """Measured takeovers, and by how much each was above its bound on this host at that time."""

    def __init__(self, sampler, latency, bound_ms):
        self.sampler, self.latency, self.bound_ms = sampler, latency, bound_ms
        self.raw, self.took, self.late = [], [], []

    def note(self, since, change):
        raw = change.receive - since
        took = raw - self.sampler.stalled_ns(since, change.receive)
        allowed = (self.bound_ms + SLACK_MS) * MS + WAKE_UPS * self.latency.worst_ns(since, change.receive)
        self.raw.append(raw // MS)
        self.took.append(took // MS)
        if took > allowed:
            self.late.append((took // MS, allowed // MS))


def backend_of(postgres, election="a"):
    return int(postgres.row(election)["backend"])


@pytest.mark.parametrize("mode,bound_ms", [("correctness", 1000 + 400), ("efficiency", 400)])
def test_a_kill_hands_over(pods, sample, closing, mode, bound_ms):
    pods = pods("abc", "--mode", mode, "--drain", "none")
    sampler = sample(pods)
    takeovers = Takeovers(sampler, closing(Latency()), bound_ms)
    for _ in range(3):
        leader = settled(pods)
        since = boottime_ns()
        leader.kill9()
        change = sampler.wait_for_leader(since, besides=(leader.identity,))
        takeovers.note(since, change)
        leader.wait()
        leader.start()
    print(f"\nPostgreSQL, {mode}: kill -9 taken over after {takeovers.took} ms")
    # In efficiency an answer of the killed leader may still be good.
    sampler.stop(allowed=("two leaders",) if mode == "efficiency" else ())
    if mode == "correctness":
        assert min(takeovers.raw) >= 1000, "an answer of the killed leader was still good"
    if TIMING:
        assert len(takeovers.late) <= 1, f"one may meet a busy moment: {takeovers.late}"


@pytest.mark.parametrize("mode", ["correctness", "efficiency"])
def test_a_drain_hands_over_at_once(pods, sample, postgres, closing, mode):
    pods = pods("abc", "--mode", mode, "--drain", "none")
    sampler = sample(pods)
    takeovers = Takeovers(sampler, closing(Latency()), 100)
    for _ in range(3):
        leader = settled(pods)
        sampler.readers("stop", leader)
        since = boottime_ns()
        leader.terminate()
        try:
            change = sampler.wait_for_leader(since, besides=(leader.identity,))
        except AssertionError:
            raise AssertionError("\n".join(p.log()[-4000:] for p in pods))
        takeovers.note(since, change)
        assert leader.wait() == 0
        if mode == "correctness" and not leader.event("left-to-lapse"):  # on a host that is too slow for one attempt
            assert postgres.row()["prior"] == "clean", "\n".join(p.log()[-3000:] for p in pods)
        leader.start()
        sampler.readers("resume", leader)
    sampler.stop()
    print(f"\nPostgreSQL, {mode}: SIGTERM taken over after {takeovers.took} ms")
    if TIMING:
        assert len(takeovers.late) <= 1, f"one may meet a busy moment: {takeovers.late}"


def test_an_ended_session_is_seen_at_once_and_never_entered_again(pods, sample, postgres, closing):
    pods = pods("ab")
    latency = closing(Latency())
    sampler = sample(pods)
    for _ in range(3):
        leader = settled(pods)
        token = leader.check().token
        known = len(leader.event("store-connection-lost"))
        since = boottime_ns()
        postgres.end_backend(backend_of(postgres))
        ended = boottime_ns()
        wait_until(lambda: not leader.leads(), 5)
        took = boottime_ns() - ended
        late = latency.worst_ns(since, boottime_ns())
        wait_until(lambda: len(leader.event("store-connection-lost")) > known, 5)
        assert leader.event("store-connection-lost")[-1]["why"].startswith("57P01")
        change = sampler.wait_for_leader(ended + took)
        assert change.token > token
        if BOUNDS:
            assert took < 100 * MS + WAKE_UPS * late
    sampler.stop()


@pytest.mark.parametrize("mode", ["fast", "immediate", "crash"])
def test_a_restart_of_the_server_costs_a_term(pods, sample, postgres, closing, mode):
    pods = pods("ab")
    sampler = sample(pods)
    leader = settled(pods)
    token = leader.check().token
    since = boottime_ns()
    if mode == "crash":  # of another session: the server throws all of them out
        session = closing(postgres.session())
        os.kill(int(session.ask("SELECT pg_backend_pid()")[0]), signal.SIGKILL)
        wait_until(lambda: not leader.leads(), 5)
    else:
        postgres.stop(mode)
        wait_until(lambda: not leader.leads(), 5)
        postgres.start()
    change = sampler.wait_for_leader(boottime_ns())
    assert change.token > token
    assert change.receive - since > 1 * S, "an older lease may still have been trusted"
    assert postgres.row()["prior"] in ("other-server", "unclean")
    sampler.stop()


def test_a_smart_shutdown_waits_for_the_leader(pods, postgres):
    pod, = pods("a", "--drain", "none")
    pod.wait_leader(60)
    postgres.process.send_signal(signal.SIGTERM)
    until = boottime_ns() + 2 * S
    wait_until(lambda: boottime_ns() > until)
    token = pod.check().token
    assert token, "its session lives on, so does its lease"
    pod.terminate()
    assert pod.wait() == 0
    postgres.process.wait(20)


def test_a_frozen_sidecar_gives_the_lock_up(pods, sample, postgres):
    a, = pods("a")
    old = a.wait_leader(60)
    b, = pods("b")
    sampler = sample([a, b])
    since = boottime_ns()
    a.freeze()
    change = sampler.wait_for_leader(since, besides=("pod-a",))
    assert change.token > old.token
    if BOUNDS:  # the server ends its session after ttl + margin, then W is waited for
        assert change.receive - since - sampler.stalled_ns(since, change.receive) < 3.5 * S
    with contextlib.ExitStack() as stack:  # asked while it is stopped, answered when it goes on
        asked = [stack.enter_context(a.connection()) for _ in range(20)]
        for connection in asked:
            connection.sendall(b"check\n")
        a.thaw()
        answers = [c.makefile("rb").readline() for c in asked]
    assert all(answer.startswith(b"follower ") for answer in answers), answers
    wait_until(lambda: a.state() == "follower" and a.status()["holder"] == "pod-b")
    sampler.stop()


def test_a_frozen_server_is_ridden_out_or_lost_but_never_doubled(pods, sample, postgres):
    pods = pods("ab")
    sampler = sample(pods)
    leader = settled(pods)
    postgres.freeze()
    wait_until(lambda: not leader.leads(), 5)
    until = boottime_ns() + 2 * S
    wait_until(lambda: boottime_ns() > until)
    for pod in pods:
        assert pod.state() != "leader"
        assert pod.probe("/livez").status == 200
    postgres.thaw()
    sampler.wait_for_leader(boottime_ns())
    sampler.stop()


def test_a_frozen_backend_stops_its_leader_and_nobody_else_leads(pods, sample, postgres):
    pods = pods("ab")
    sampler = sample(pods)
    leader = settled(pods)
    pid = backend_of(postgres)
    since = leader.status()["holder_since"]
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: not leader.leads(), 5)
    other = next(p for p in pods if p is not leader)  # it cannot know better
    status = other.status()
    assert (status["holder"], status["holder_since"]) == (leader.identity, since), status
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert not any(p.leads() for p in pods)
    os.kill(pid, signal.SIGCONT)
    sampler.wait_for_leader(boottime_ns())
    sampler.stop()


def test_a_drain_ends_while_the_server_is_silent(pods, sample, postgres):
    pods = pods("ab", "--drain", "2s")
    leader = settled(pods)
    sampler = sample(pods)
    token = leader.check().token
    postgres.freeze()
    since = boottime_ns()
    leader.terminate()
    assert leader.wait(30) == 0
    assert not BOUNDS or boottime_ns() - since < 4 * S
    postgres.thaw()
    assert sampler.wait_for_leader(since, besides=(leader.identity,), timeout=30).token > token
    assert postgres.row()["prior"] != "clean", "nobody could write a mark"
    sampler.stop()


def test_settings_of_the_role_do_not_matter(pods, sample, postgres, timely):
    for setting in ("statement_timeout = '200ms'", "lock_timeout = '1ms'",
                    "idle_session_timeout = '1s'", "synchronous_commit = off",
                    "default_transaction_isolation = serializable",
                    "idle_in_transaction_session_timeout = '200ms'",
                    "standard_conforming_strings = off", "search_path = nowhere"):
        postgres.sql(f"ALTER ROLE app SET {setting}")
    pods = pods("ab", ttl="3s")
    sampler = sample(pods)
    leader = settled(pods)
    token = leader.check().token
    until = boottime_ns() + 3 * S
    while boottime_ns() < until:
        assert leader.check().token == token, leader.log()[-3000:]
    leader.kill9()
    sampler.wait_for_leader(boottime_ns(), besides=(leader.identity,))
    sampler.stop()


def test_no_token_and_no_mark_is_forged_by_a_crash(pods, sample, postgres):
    postgres.sql("ALTER ROLE app SET synchronous_commit = off")
    postgres.sql("ALTER SYSTEM SET wal_writer_delay = '10s'")
    postgres.sql("SELECT pg_reload_conf()")
    last = 0
    pod, = pods("a", "--mode", "efficiency", "--drain", "none")
    for _ in range(3):
        check = pod.wait_leader(60)
        assert check.token > last
        last = check.token
        postgres.stop("immediate")
        postgres.start()
        assert int(postgres.row()["token"]) >= last, "a published token was forgotten"
        wait_until(lambda: not pod.leads() or pod.check().token > last, 10)


def test_a_mark_that_is_not_there_proves_nothing(pods, sample, postgres):
    """The row is gone, or somebody made the table by hand and NULLs are in it."""
    pods = pods("ab", "--drain", "none")
    sampler = sample(pods)
    for change, prior in (("UPDATE gavel_election SET clean = NULL", "unclean"),
                          ("UPDATE gavel_election SET clean = true, server = NULL", "other-server"),
                          ("DELETE FROM gavel_election", "no-record")):
        leader = settled(pods)
        token = leader.check().token
        if prior == "unclean":
            for column in ("clean", "server"):
                postgres.sql(f"ALTER TABLE gavel_election ALTER {column} DROP NOT NULL")
        since = boottime_ns()
        leader.freeze()
        postgres.sql(change)
        leader.kill9()
        sampler.wait_for_leader(since, besides=(leader.identity,))
        assert boottime_ns() - since >= 1 * S, "an older lease may still have been trusted"
        row = postgres.row()
        first = int(row["token"]) == token + 1  # else a grant came too late to be published
        assert row["prior"] == prior if first else int(row["token"]) > token
        leader.wait()
        leader.start()
    # The same where the leader wants to write it.
    leader = settled(pods)
    postgres.sql("DELETE FROM gavel_election")
    leader.terminate()
    assert leader.wait() == 0
    assert not postgres.row() or postgres.row()["prior"] == "no-record"
    sampler.wait_for_leader(boottime_ns(), besides=(leader.identity,))
    sampler.stop()


def test_what_stands_between_lock_and_token_keeps_nothing(pods, postgres, closing):
    pod, = pods("a", ttl="3s")
    pod.wait_leader(60)
    pod.stop()
    session = closing(postgres.session())
    session.ask("BEGIN")
    session.ask("SELECT 1 FROM gavel_election FOR UPDATE")
    pod.start()
    wait_until(lambda: "55P03" in pod.log() or "57014" in pod.log(), 30)
    assert not pod.leads()
    session.ask("ROLLBACK")
    pod.wait_leader(60)
    postgres.sql("REVOKE UPDATE ON gavel_election FROM app")
    pod.stop()
    postgres.sql("ALTER TABLE gavel_election OWNER TO super")
    pod.start()
    wait_until(lambda: "deploy/sql/grants.sql" in pod.log(), 30)
    assert postgres.locks() == []
    postgres.sql("GRANT SELECT, INSERT, UPDATE ON gavel_election TO app")
    pod.wait_leader(60)


@pytest.mark.parametrize("lock", ["session", "transaction"])
def test_probes_that_fail_do_not_renew(pods, postgres, lock):
    pod, = pods("a", "--pg-lock", lock)
    pod.wait_leader(60)
    postgres.sql("REVOKE EXECUTE ON FUNCTION pg_catalog.pg_backend_pid() FROM PUBLIC")
    wait_until(lambda: not pod.leads(), 5)
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert not pod.leads()
    postgres.sql("GRANT EXECUTE ON FUNCTION pg_catalog.pg_backend_pid() TO PUBLIC")
    pod.wait_leader(60)


def test_shadowed_functions_are_not_called(pods, postgres):
    postgres.sql("CREATE SCHEMA shim; GRANT USAGE ON SCHEMA shim TO app; CREATE FUNCTION "
                 "shim.pg_try_advisory_lock(bigint) RETURNS bool LANGUAGE sql AS 'SELECT true'; "
                 "ALTER ROLE app SET search_path = shim, pg_catalog, public")
    a, b = pods("ab")
    leader = settled([a, b])
    assert len(postgres.locks()) == 1
    assert leader.leads()


def test_followers_do_not_stand_in_the_way_of_others(pods, postgres):
    pods = pods("ab")
    settled(pods)
    postgres.sql("CREATE TABLE t (x int); INSERT INTO t SELECT generate_series(1, 1000)")
    postgres.sql("CREATE INDEX CONCURRENTLY i ON t (x)", timeout=10)
    out = postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND "
                       "backend_xmin IS NOT NULL AND state <> 'active'")
    assert out == "0"


def test_elections_share_one_connection_and_its_fate(start, postgres, sample):
    names = [f"e{i}" for i in range(20)]
    pod = start("pod-a", "--ttl", "2s", store=postgres.url, elections=names, fixed_port=True)
    for name in names:
        pod.wait_leader(60, name)
    assert len(set(postgres.locks())) == 1 and len(postgres.locks()) == 20
    tokens = {n: pod.check(n).token for n in names}
    done = run(GAVEL, "resign", "e3", "--socket", pod.socket_path)
    assert done.returncode == 0, done.stderr
    assert len(postgres.locks()) == 19, pod.log()[-6000:]
    assert all(pod.check(n).token == tokens[n] for n in names if n != "e3")
    wait_until(lambda: postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'")
               == "1", 10, "the second connection is gone again")
    postgres.end_backend(backend_of(postgres, "e0"))
    wait_until(lambda: not any(pod.leads(n) for n in names), 5)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmRSS:")).split()[1])


def test_nothing_is_left_over_after_many_elections(pods, postgres):
    rounds = 1000 if LONG else 50
    pod, = pods("a", "--mode", "efficiency", "--valid-for", "1ms", ttl="300ms")

    def win_and_lose(times):
        for _ in range(times):
            pod.wait_leader(60)
            assert pod.ask("resign") == "ok"
            assert len(postgres.locks()) <= 1
        pod.wait_leader(60)
        wait_until(lambda: postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = "
                                        "'app'") == "1", 10)

    def measured():
        backend = wait_until(postgres.locks, 60)[0]
        return pod.open_files(), resident_kib(pod.pid), resident_kib(backend)

    win_and_lose(rounds // 10)  # what is made once is made by now
    since, before = boottime_ns(), measured()
    win_and_lose(rounds)
    after = measured()
    print(f"\n{rounds} elections in {(boottime_ns() - since) // S} s: (files, KiB, KiB of the "
          f"server's process) {before}, then {after}; "
          f"{pod.metrics()['gavel_store_reconnects_total']:.0f} connections more")
    assert len(postgres.locks()) == 1
    assert after[0] <= before[0] + 1
    # A sanitizer keeps what is freed.
    assert not BOUNDS or after[1] <= before[1] + 2048, "memory is left over"
