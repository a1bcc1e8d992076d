"""Links that fail without a word, answers that come late, names that are not found, hosts that do
not answer: never two leaders, and the sidecar itself always answers."""

import os
import socket
import subprocess
import time

import pytest

from kit.clock import MS, S, boottime_ns, wait_until
from kit.netns import Network, can_make_networks, can_mount_privately
from kit.postgres_server import Postgres
from kit.ports import free_port
from kit.relay import Relay
from kit.sidecar import GAVEL, LONG, TIMING, run

BOUNDS = TIMING and LONG  # those of PostgreSQL need a quiet machine


def through(relay):
    return f"postgres://app@127.0.0.1:{relay.port}/app"


@pytest.fixture
def relay(postgres, closing):
    return closing(Relay(postgres.port))


def test_an_answer_that_is_withheld_extends_nothing(start, sample, postgres, relay):
    a = start("pod-a", "--ttl", "1s", store=through(relay))
    old = a.wait_leader(60)
    b = start("pod-b", "--ttl", "1s", store=postgres.url)
    sampler = sample([a, b])
    b.wait_state("follower", 60)
    relay.freeze()
    since = boottime_ns()
    pid = int(postgres.row()["backend"])
    postgres.end_backend(pid)
    wait_until(lambda: not a.leads(), 5)
    change = sampler.wait_for_leader(since, besides=("pod-a",))
    assert change.token > old.token
    assert change.receive - since >= 1 * S, "the answers of the old leader were still good"
    relay.thaw()
    a.wait_state("follower", 60)
    sampler.stop()


def test_an_answer_that_comes_late_is_worth_less(start, relay):
    pod = start("pod-a", "--ttl", "3s", "--valid-for", "3s", store=through(relay))
    pod.wait_leader(60)
    relay.delay(reply_ms=300)
    until = boottime_ns() + 1200 * MS  # what was answered before is worth less than that by now
    wait_until(lambda: boottime_ns() > until)
    until = boottime_ns() + 2 * S
    seen = []
    while boottime_ns() < until:
        seen.append(pod.check().valid_ms)
    # It counts from when the question was sent: ttl - margin - 300 ms at most.
    assert max(seen) <= 2100
    assert not BOUNDS or max(seen) > 1500, "renewals went on"


def test_a_lost_answer_leaves_no_lock_behind(start, postgres, relay):
    b = start("pod-b", "--ttl", "1s", store=postgres.url)
    old = b.wait_leader(60)
    a = start("pod-a", "--ttl", "1s", store=through(relay))
    a.wait_state("follower", 60)
    relay.freeze()
    b.stop()
    # Whatever was on its way took the lock perhaps; the server's own lease ends that.
    wait_until(lambda: postgres.locks() == [], 10)
    relay.thaw()
    assert a.wait_leader(60).token > old.token
    assert len(postgres.locks()) == 1


@pytest.mark.parametrize("reply_ms", [300, 620])
def test_a_lock_is_never_taken_twice(start, postgres, relay, reply_ms):
    """Answers take less than an attempt's time, half a second, or more: then the one that says yes
    comes while the next attempt waits already."""
    b = start("pod-b", "--ttl", "3s", "--drain", "none", store=postgres.url)
    b.wait_leader(60)
    a = start("pod-a", "--ttl", "3s", "--valid-for", "1ms", store=through(relay),
              elections=["a", "other"])
    a.wait_state("follower", 60, "a")
    token = a.wait_leader(60, "other").token
    relay.delay(reply_ms=reply_ms)
    b.stop()
    wait_until(lambda: len(postgres.locks()) == 2, 20, "it has taken the lock")
    until = boottime_ns() + (reply_ms + 100) * MS
    wait_until(lambda: boottime_ns() > until)
    relay.delay()
    a.wait_leader(60, "a")
    other = a.wait_leader(60, "other").token
    assert a.ask("resign a", 30) == "ok", a.log()[-4000:]
    assert "still there" not in a.log(), "given back once, and it was held twice"
    assert not BOUNDS or other == token
    assert a.wait_leader(60, "other").token == other or not BOUNDS


@pytest.mark.skipif(not can_make_networks(), reason="needs root and iproute2")
@pytest.mark.parametrize("killed", [False, True])
def test_a_link_that_swallows_everything(start, sample, folder, closing, killed):
    network = closing(Network())
    postgres = closing(Postgres(folder + "/pg", ["listen_addresses=*"]))
    with open(postgres.data + "/pg_hba.conf", "a", encoding="ascii") as f:
        f.write("host all all 10.251.0.0/16 trust\n")
    postgres.sql("SELECT pg_reload_conf()")
    url = f"postgres://app@{network.here}:{postgres.port}/app"
    a = start("pod-a", "--ttl", "2s", store=url, http="off", health="off", prefix=network.prefix)
    old = a.wait_leader(60)
    b = start("pod-b", "--ttl", "2s", store=postgres.url, http="off", health="off")
    b.wait_state("follower", 60)
    pid = postgres.locks()[0]
    sampler = sample([a, b] if not killed else [b], ways=("socket",))
    network.swallow()
    since = boottime_ns()
    if killed:
        a.kill9()
    wait_until(lambda: pid not in postgres.locks(), 15)
    freed = boottime_ns() - since
    change = sampler.wait_for_leader(since, besides=("pod-a",))
    assert change.token > old.token
    if BOUNDS:
        assert freed <= 4.3 * S, "the server gives the lock up within two ttl"
    if not killed:
        assert not a.leads()
        asked = boottime_ns()
        a.status()
        assert not BOUNDS or boottime_ns() - asked < 50 * MS, "its loop is free"
        network.mend()
        a.wait_state("follower", 60)
    sampler.stop()


def test_hosts_that_do_not_answer_are_passed_over(start, postgres, closing):
    silent = closing(socket.create_server(("127.0.0.1", 0)))  # accepts, and never says a word
    port = silent.getsockname()[1]
    url = f"postgres://app@127.0.0.1:1,127.0.0.1:{port},127.0.0.1:{postgres.port}/app"
    pod = start("pod-a", "--ttl", "2s", store=url + "?sslmode=prefer")
    pod.wait_leader(60)
    for _ in range(5):  # and it goes first the next time
        postgres.end_backend(postgres.locks()[0])
        wait_until(lambda: not pod.leads(), 5)
        since = boottime_ns()
        pod.wait_leader(60)
        assert not BOUNDS or boottime_ns() - since < 4 * S


@pytest.mark.skipif(not can_mount_privately(), reason="needs root, and / as a mount of its own")
def test_a_name_server_that_says_nothing_stalls_nobody(start, folder):
    resolv = folder + "/resolv.conf"
    with open(resolv, "w", encoding="ascii") as f:
        f.write("nameserver 127.0.0.1\n")  # nobody listens behind the socket below
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    nsswitch = folder + "/nsswitch.conf"
    with open(nsswitch, "w", encoding="ascii") as f:
        f.write("hosts: dns\n")
    try:
        silent.bind(("127.0.0.1", 53))
    except OSError:
        pytest.skip("port 53 is taken")
    mounts = f"mount --bind {resolv} /etc/resolv.conf; mount --bind {nsswitch} /etc/nsswitch.conf"
    prefix = ["unshare", "-m", "sh", "-c", mounts + '; exec "$@"', "sh"]
    pod = start("pod-a", "--ttl", "1s", store="postgres://app@db.example/app", prefix=prefix)
    worst = 0
    until = boottime_ns() + 4 * S
    while boottime_ns() < until:
        asked = boottime_ns()
        assert not pod.leads()
        worst = max(worst, boottime_ns() - asked)
        time.sleep(0.01)
    silent.close()
    wait_until(lambda: "looking up" in pod.log(), 30)
    if BOUNDS:
        assert worst < 100 * MS
    with open(f"/proc/{pod.pid}/status", encoding="ascii") as f:
        threads = int(next(line for line in f if line.startswith("Threads:")).split()[1])
    assert threads <= 8


def test_an_idle_loss_is_seen_without_a_probe(start, postgres):
    pod = start("pod-a", "--ttl", "30s", "--mode", "efficiency", store=postgres.url)
    pod.wait_leader(60)
    until = boottime_ns() + 1 * S
    wait_until(lambda: boottime_ns() > until)
    postgres.end_backend(postgres.locks()[0])
    wait_until(lambda: pod.event("store-connection-lost"), 3)
    spent = sum(map(int, open(f"/proc/{pod.pid}/stat", encoding="ascii").read().split()[13:15]))
    until = boottime_ns() + 2 * S
    wait_until(lambda: boottime_ns() > until)
    after = sum(map(int, open(f"/proc/{pod.pid}/stat", encoding="ascii").read().split()[13:15]))
    assert (after - spent) / os.sysconf("SC_CLK_TCK") < 0.5, "nothing turns in a circle"


def test_notices_are_not_a_loss(start, postgres):
    pod = start("pod-a", "--ttl", "3s", store=postgres.url)
    token = pod.wait_leader(60).token
    for _ in range(20):
        postgres.sql("SELECT pg_notify('gavel_released', 'nonsense clean clean')")
        postgres.sql("SELECT pg_notify('gavel_released', '')")
    postgres.sql("ALTER SYSTEM SET TimeZone = 'Asia/Tokyo'")  # an unsolicited ParameterStatus
    postgres.sql("SELECT pg_reload_conf()")
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert pod.check().token == token


def backends(postgres, pod):
    return postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gavel/"
                        f"{pod.identity}'")


def test_a_follower_makes_ready_for_a_handover(start, postgres):
    options = ("--ttl", "3s", "--mode", "efficiency")
    leader = start("pod-a", *options, store=postgres.url)
    leader.wait_leader(60)
    follower = start("pod-b", *options, store=postgres.url)
    follower.wait_state("follower", 60)
    wait_until(lambda: [backends(postgres, p) for p in (leader, follower)] == ["1", "1"], 20,
               "no second connection is open")
    key = run(GAVEL, "key", "a").stdout.strip()
    postgres.sql(f"SELECT pg_notify('gavel_released', '{key} leaving')")
    wait_until(lambda: backends(postgres, follower) == "2", 20)
    wait_until(lambda: backends(postgres, follower) == "1", 20, "it is not kept")
    assert backends(postgres, leader) == "1", "a leader expects no grant"
    assert leader.leads()


@pytest.mark.parametrize("others", [0, 8])
def test_few_sidecars_are_told_that_one_is_leaving(start, postgres, closing, others):
    """Of many each would open a connection at the same time."""
    pod = start("pod-a", "--ttl", "1s", "--drain", "none", store=postgres.url)
    pod.wait_leader(60)
    for i in range(others):
        closing(postgres.session("app")).ask(f"SET application_name = 'gavel/{i}'")
    listener = closing(postgres.session())
    listener.ask("LISTEN gavel_released")
    pod.terminate()
    heard = []

    def listen():
        heard.extend(listener.ask("SELECT 1"))
        return any(" clean" in line for line in heard)
    wait_until(listen, 20)
    assert any(" leaving" in line for line in heard) == (others == 0), heard


def test_slots_that_are_taken_are_waited_for(start, folder, closing):
    postgres = closing(Postgres(folder + "/pg", ["max_connections=8",
                                                 "superuser_reserved_connections=2"]))
    leader = start("pod-a", "--ttl", "3s", store=postgres.url)
    leader.wait_leader(60)
    wait_until(lambda: postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'")
               == "1", 20, "its second connection is closed")
    taken = [closing(postgres.session("app")) for _ in range(5)]
    for session in taken:
        session.ask("SELECT 1")
    wait_until(lambda: subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(postgres.port), "-U", "app", "-d", "app", "-c",
         "SELECT 1"], capture_output=True, check=False).returncode != 0, 10)
    other = start("pod-b", "--ttl", "3s", store=postgres.url)
    wait_until(lambda: "53300" in other.log(), 30)
    token = leader.check().token
    until = boottime_ns() + 2 * S
    while boottime_ns() < until:
        assert leader.check().token == token, "a leader needs no further connection"
    for session in taken:
        session.close()
    other.wait_state("follower", 60)


def test_a_lock_goes_back_without_a_second_connection(start, postgres):
    pod = start("pod-a", "--ttl", "2s", "--drain", "none", store=postgres.url)
    pod.wait_leader(60)
    wait_until(lambda: postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'")
               == "1", 20, "its second connection is closed")
    postgres.sql("ALTER ROLE app CONNECTION LIMIT 1")
    since = boottime_ns()
    pod.terminate()
    assert pod.wait() == 0
    took = boottime_ns() - since
    assert postgres.row()["clean"] == "f"
    told = pod.event("no-clean-mark")
    assert [e["election"] for e in told] == ["a"] and told[0]["why"].startswith("53300"), pod.log()
    assert not BOUNDS or (took < 1 * S and pod.event("drained"))
    assert "no answer in time" not in pod.log() or not BOUNDS
    postgres.sql("ALTER ROLE app CONNECTION LIMIT -1")


def test_the_environment_does_not_choose_another_database(start, postgres):
    postgres.sql("CREATE DATABASE other")
    pod = start("pod-a", "--ttl", "1s", store=postgres.url,
                env={"PGDATABASE": "other", "PGHOST": "nowhere.example", "PGPORT": str(free_port()),
                     "PGUSER": "nobody"})
    pod.wait_leader(60)
    assert postgres.row()
    assert "PGDATABASE" in pod.event("store-environment")[0]["variables"]
