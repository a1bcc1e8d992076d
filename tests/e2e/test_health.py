"""What the kubelet, load balancers and Prometheus ask."""

import contextlib
import os
import re
import shutil
import socket
import subprocess

import pytest

from kit.clock import S, boottime_ns, wait_until
from kit.ports import has_ipv6

BUILT_TOOLS = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../build/tools"))


@pytest.fixture
def leader(start):
    a = start("pod-a", "--mode", "efficiency")
    a.wait_leader()
    return a


def test_probes(leader):
    assert leader.probe("/livez").status == 200
    assert leader.probe("/readyz").status == 200
    verbose = leader.probe("/readyz?verbose")
    assert verbose.status == 200 and verbose.body.strip()
    assert leader.probe("/livez", method="HEAD").status == 200
    assert leader.probe("/nope").status == 404
    assert leader.probe("/livez", method="POST").status == 405


def test_on_loopback_only_names_of_this_host_are_answered(start):
    """Anywhere else the kubelet probes by the pod's address, and others by a service's name."""
    def answers(sidecar, host):
        return sidecar.probe("/metrics", headers={"Host": host}).status
    here, everywhere = start("pod-a", health="localhost:0"), start("pod-b")
    for host in ("localhost", "127.0.0.1:4041", "[::1]:4041"):
        assert answers(here, host) == answers(everywhere, host) == 200
    for host in ("evil.example", "127.0.0.1.evil.example:4041", "10.0.0.7:4041"):
        assert answers(here, host) == 421 and answers(everywhere, host) == 200


def test_readiness_is_not_the_role(leader, start):
    b = start("pod-b")
    b.wait_state("follower")
    assert b.probe("/readyz").status == 200
    assert leader.probe("/leader").status == 200 and b.probe("/leader").status == 503
    assert leader.probe("/leader/a").status == 200 and b.probe("/leader/a").status == 503
    assert leader.probe("/leader").body == b.probe("/leader").body == b""
    assert b.probe("/leader/nope").status == 404


def test_several_elections_need_a_name(start):
    a = start("pod-a", "--mode", "efficiency", elections=("one", "two"))
    a.wait_leader(election="one")
    assert a.probe("/leader/one").status == 200
    assert a.probe("/leader").status == 400


def test_the_store_down_is_not_unhealthy(redis, start):
    redis.kill()
    a = start("pod-a", "--ttl", "600ms")
    wait_until(lambda: a.status()["reason"] == "store-unreachable", 5)
    assert a.probe("/livez").status == 200 and a.probe("/readyz").status == 200
    assert a.probe("/leader").status == 503
    assert a.metrics()["gavel_store_up"] == 0


def test_both_families_and_any_host(leader):
    assert leader.probe("/livez", headers={"Host": "10.1.2.3:4041"}).status == 200
    if has_ipv6():
        assert leader.probe("/livez", host="::1").status == 200


def test_a_draining_process_is_not_ready(start):
    a = start("pod-a", "--mode", "efficiency", "--valid-for", "2s")
    a.wait_leader()
    assert a.request("/v1/leader").status == 200
    a.terminate()
    wait_until(lambda: a.probe("/readyz").status == 503, 1.5)
    assert a.probe("/livez").status == 200
    assert a.wait() == 0


def promtool():
    built = os.path.join(BUILT_TOOLS, "promtool")
    found = shutil.which("promtool") or (built if os.path.exists(built) else None)
    assert found, "promtool is missing: sh tests/run.sh fetches it"
    return found


def metrics_of_all(start, redis):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "600ms", elections=("one", "two"))
    a.wait_leader(election="one")
    a.wait_leader(election="two")
    a.request("/v1/elections/one")
    a.request("/nope")
    redis.kill()
    wait_until(lambda: not a.leads("one"), 5)
    redis.start()
    a.wait_leader(election="one")
    return a


def test_metrics_please_promtool(start, redis):
    text = metrics_of_all(start, redis).probe("/metrics")
    assert text.status == 200
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    checked = subprocess.run([promtool(), "check", "metrics"], input=text.body,
                             capture_output=True, timeout=30)
    assert checked.returncode == 0 and not checked.stderr.strip(), checked.stderr.decode()


NAMES = """gavel_leader gavel_state gavel_fencing_token gavel_lease_remaining_seconds
gavel_transitions_total gavel_store_requests_total gavel_store_request_duration_seconds_bucket
gavel_store_request_duration_seconds_sum gavel_store_request_duration_seconds_count
gavel_last_renewal_timestamp_seconds gavel_store_up gavel_store_reconnects_total
gavel_loop_lag_seconds gavel_loop_stalls_total gavel_clock_steps_total gavel_api_requests_total
gavel_watchers gavel_build_info process_cpu_seconds_total process_resident_memory_bytes
process_open_fds process_max_fds process_start_time_seconds leader_election_master_status""".split()


def test_metrics_have_the_names_of_the_list(start, redis):
    a = metrics_of_all(start, redis)
    # Its lease is short: another grant may come between two questions on a slow machine.
    def unchanged():
        token, found = a.check("one").token, a.metrics()
        return found if token and a.check("one").token == token else None
    found = wait_until(unchanged)
    names = {re.sub(r"\{.*", "", n) for n in found}
    assert set(NAMES) <= names, set(NAMES) - names
    warnings = start("pod-x", http="0.0.0.0:0").metrics()
    assert warnings['gavel_warning{code="listener-exposed"}'] == 1
    assert found['gavel_leader{election="one"}'] == 1
    assert found['leader_election_master_status{name="one"}'] == 1
    states = {s: found['gavel_state{election="one",state="%s"}' % s]
              for s in ("unknown", "follower", "pending", "leader", "resigning")}
    assert states == {"unknown": 0, "follower": 0, "pending": 0, "leader": 1, "resigning": 0}
    assert found['gavel_fencing_token{election="one"}'] == a.check("one").token
    assert 0 < found['gavel_lease_remaining_seconds{election="one"}'] <= 0.6
    assert found['gavel_api_requests_total{listener="http",code="404"}'] == 1
    assert found['gavel_api_requests_total{listener="http",code="200"}'] >= 1
    assert found["gavel_store_reconnects_total"] >= 1
    assert any(n.startswith("gavel_transitions_total") and 'to="leader"' in n for n in found)
    assert any(n.startswith("gavel_store_requests_total") and 'result="yes"' in n for n in found)
    version = [n for n in found if n.startswith("gavel_build_info")]
    assert len(version) == 1 and 'version="' in version[0] and 'revision="' in version[0]


def test_a_follower_shows_no_token(leader, start):
    b = start("pod-b")
    b.wait_state("follower")
    found = b.metrics()
    assert found['gavel_leader{election="a"}'] == 0
    assert found.get('gavel_fencing_token{election="a"}', 0) == 0
    assert found['gavel_lease_remaining_seconds{election="a"}'] == 0


@pytest.mark.parametrize("kind", ["idle", "slow"])
def test_clients_that_wait_starve_neither_the_probe_nor_the_socket(leader, kind):
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(200):
            s = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            s.settimeout(0.5)
            try:
                s.connect(("127.0.0.1", leader.http_port))
                if kind == "slow":
                    s.sendall(b"GET /v1/leader HTTP/1.1\r\nHost: local")
            except OSError:
                break
            held.append(s)
        assert len(held) == 200
        for _ in range(20):
            began = boottime_ns()
            assert leader.probe("/livez").status == 200
            assert leader.check().leader
            assert boottime_ns() - began < 1 * S
        assert leader.probe("/metrics").status == 200
    wait_until(lambda: leader.request("/v1/leader").status == 200, 10)


def test_probes_of_many_clients_at_once(leader):
    """Idle connections to the health port itself: the next probe is still answered."""
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            s = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            s.settimeout(0.5)
            try:
                s.connect(("127.0.0.1", leader.health_port))
            except OSError:
                break
        wait_until(lambda: leader.probe("/livez", timeout=15).status == 200, 20)
        assert leader.check().leader and leader.request("/v1/leader").status == 200
