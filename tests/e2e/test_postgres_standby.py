"""PostgreSQL with a streaming standby: failover, and what is said of it."""

import pytest

from e2e.cases import told
from kit.clock import S, boottime_ns, wait_until
from kit.postgres_server import Postgres, standby_of


@pytest.fixture
def pair(folder, closing):
    primary = closing(Postgres(folder + "/pg", ["wal_keep_size=64MB"]))
    standby = closing(standby_of(primary, folder + "/sb"))
    return primary, standby


def test_a_standby_is_never_led_on(start, pair):
    primary, standby = pair
    pod = start("pod-a", "--ttl", "1s", store=primary.url)
    pod.wait_leader(60)
    told(pod, warning="store-replicated-async", failover_safety="asynchronous")
    assert "overlap-possible" in pod.status()["warnings"]
    other = start("pod-b", "--ttl", "1s", store=standby.url)
    wait_until(lambda: "not-primary" in other.log(), 30)
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert not other.leads()
    assert standby.locks() == []
    # Both named: the standby is passed over.
    both = f"postgres://app@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/app"
    third = start("pod-c", "--ttl", "1s", store=both)
    third.wait_state("follower", 60)
    assert third.status()["lock_space"] == pod.status()["lock_space"]
    # The primary comes back as a standby: whoever led on it does not any more.
    primary.stop()
    with open(primary.data + "/standby.signal", "w", encoding="ascii"):
        pass
    primary.start()
    wait_until(lambda: "not-primary" in pod.status()["detail"], 30)
    assert not pod.leads() and primary.locks() == []


def test_tokens_grow_over_a_failover_that_lost_the_last_grant(start, pair):
    primary, standby = pair
    pod = start("pod-a", "--ttl", "1s", "--drain", "none", store=primary.url, fixed_port=True)
    pod.wait_leader(60)
    assert pod.stop() == 0
    wait_until(lambda: standby.sql("SELECT count(*) FROM gavel_election WHERE clean") == "1", 10)
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
    standby.sql("SELECT pg_reload_conf()")
    wait_until(lambda: primary.sql("SELECT count(*) FROM pg_stat_replication") == "0", 10)
    pod.start()
    last = pod.wait_leader(60)
    primary.stop("immediate")
    standby.promote()
    other = start("pod-b", "--ttl", "1s", store=standby.url)
    since = boottime_ns()
    check = other.wait_leader(60)
    assert check.token > last.token
    assert boottime_ns() - since > 0.8 * S, "the mark is another server's: it had to wait"
    assert standby.row()["prior"] in ("other-server", "unclean")  # unclean: a second attempt
    assert not pod.leads()


def test_a_read_only_server_elects_nobody(start, pair):
    primary, _ = pair
    pod = start("pod-a", "--ttl", "1s", store=primary.url)
    pod.wait_leader(60)
    primary.sql("ALTER DATABASE app SET default_transaction_read_only = on")
    primary.end_backend(primary.locks()[0])
    wait_until(lambda: "read-only" in pod.log(), 30)
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert not pod.leads()
    primary.psql("ALTER DATABASE app RESET default_transaction_read_only",
                 database="postgres")
    pod.wait_leader(60)
    # It becomes read-only under sessions that are there: a lock without a token goes back.
    other = start("pod-b", "--ttl", "1s", store=primary.url)
    other.wait_state("follower", 60)
    primary.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    primary.sql("SELECT pg_reload_conf()")
    pod.kill9()  # on a host that is too slow the other one has to connect anew, and hears it then
    wait_until(lambda: "25006" in other.log() or "read-only" in other.log(), 30)
    wait_until(lambda: primary.locks() == [], 10)
    assert not other.event("state", to="pending") and not other.leads()
    primary.sql("ALTER SYSTEM RESET default_transaction_read_only")
    primary.sql("SELECT pg_reload_conf()")
    other.wait_leader(60)


def test_probes_that_write_stop_a_primary_that_is_cut_off(start, sample, pair):
    primary, standby = pair
    pod = start("pod-a", "--ttl", "2s", "--pg-synchronous", store=primary.url)
    wait_until(lambda: "synchronous_standby_names is empty" in pod.log(), 30)
    assert not pod.leads()
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = 's1'")
    primary.sql("SELECT pg_reload_conf()")
    pod.wait_leader(30)
    assert pod.status()["warnings"] == []
    told(pod, failover_safety="synchronous")
    standby.freeze()  # nothing that the primary writes is confirmed any more
    wait_until(lambda: not pod.leads(), 10)
    until = boottime_ns() + 3 * S
    while boottime_ns() < until:
        assert not pod.leads()
    count = int(primary.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'"))
    assert count <= 5, "what waits for the standby does not pile up"
    standby.thaw()
    old = pod.wait_leader(30)
    # The standby goes its own way, the primary lives on: one leader all the same.
    other = start("pod-b", "--ttl", "2s", store=standby.url)
    sampler = sample([pod, other])
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
    standby.sql("SELECT pg_reload_conf()")
    wait_until(lambda: primary.sql("SELECT count(*) FROM pg_stat_replication") == "0", 10)
    standby.promote()
    new = sampler.wait_for_leader(boottime_ns(), besides=("pod-a",), timeout=30)
    assert new.token > old.token and not pod.leads()
    sampler.stop()


def test_a_cancelled_wait_for_a_standby_is_no_commit(start, pair):
    primary, _ = pair
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    primary.sql("SELECT pg_reload_conf()")
    pod = start("pod-a", "--ttl", "10s", store=primary.url)

    def cancel():
        return primary.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = "
                           "'app' AND wait_event = 'SyncRep'")
    def told():
        cancel()
        assert pod.state() not in ("leader", "pending")
        return "perhaps not on a synchronous standby" in pod.log()
    wait_until(told, 30)


def standbys(primary, names):
    primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    primary.sql("SELECT pg_reload_conf()")


def never_leads(pod, seconds):
    until = boottime_ns() + seconds * S
    while boottime_ns() < until:
        assert not pod.leads(), pod.log()[-3000:]


@pytest.mark.parametrize("mode", ["correctness", "efficiency"])
def test_no_answer_counts_without_a_standby_that_confirms_it(start, pair, mode):
    primary, _ = pair
    before = start("pod-b", "--ttl", "1s", "--drain", "none", store=primary.url)
    before.wait_leader(60)
    assert before.stop() == 0
    primary.sql("UPDATE gavel_election SET clean = true")  # a slow host may have let it lapse
    row = primary.row()
    # Whoever reads the mark alone could lead at once: the grant itself has to be confirmed.
    pod = start("pod-a", "--ttl", "1s", "--pg-synchronous", "--mode", mode, store=primary.url)
    wait_until(lambda: "synchronous_standby_names is empty" in pod.log(), 30)
    never_leads(pod, 2)
    assert primary.row() == row, "no token is minted, and the mark stays true"
    standbys(primary, "s1")
    token = pod.wait_leader(60).token
    assert pod.status()["warnings"] == []
    standbys(primary, "")
    wait_until(lambda: pod.event("state", **{"from": "leader"}), 10)
    known = len(pod.event("state", to="leader"))
    never_leads(pod, 2)
    assert len(pod.event("state", to="leader")) == known
    # One that cannot verify anything says what it sees.
    other = start("pod-c", "--ttl", "1s", store=primary.url)
    other.wait_leader(60)
    pod.wait_state("follower", 30)
    told(pod, warning="store-replicated-async", failover_safety=None)
    assert other.check().token > token
