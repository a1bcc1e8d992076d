"""One election idle."""

import os

import pytest

from e2e.footprint import empty_program_kib, status_field, wake_ups_per_second
from kit.certificates import Authority
from kit.sidecar import GAVEL
from kit.tls_redis import TlsRedis


@pytest.mark.parametrize("kind", ["redis", "local"])
def test_an_idle_follower_wakes_seldom(start, folder, kind):
    store = None if kind == "redis" else f"local:{folder}/locks"
    a = start("pod-a", "--mode", "efficiency", store=store)
    a.wait_leader()
    b = start("pod-b", "--mode", "efficiency", store=store)
    b.wait_state("follower")
    awake = wake_ups_per_second(b.pid, 12)
    print(f"\n{kind}: a follower, {awake:.1f} wake-ups a second")
    assert awake < 5
    assert status_field(b.pid, "RssAnon") < 3 * 1024


@pytest.mark.parametrize("kind", ["redis", "local"])
def test_an_idle_election_costs_little(start, folder, kind):
    store = None if kind == "redis" else f"local:{folder}/locks"
    a = start("pod-a", "--mode", "efficiency", store=store)
    a.wait_leader()
    a.probe("/metrics")
    a.request("/v1/leader")
    awake = wake_ups_per_second(a.pid, 12)
    anonymous = status_field(a.pid, "RssAnon")
    total = status_field(a.pid, "VmRSS")
    empty = empty_program_kib(GAVEL, folder)
    print(f"\n{kind}: RssAnon {anonymous} KiB, {awake:.1f} wake-ups a second, resident "
          f"{total} KiB (an empty program with the same libraries: {empty} KiB)")
    assert anonymous < 3 * 1024
    assert awake < 5


def test_tls_costs_little(start, folder, closing):
    authority = Authority(folder + "/ca")
    redis = closing(TlsRedis(folder + "/redis", authority, authority.issue("server")))
    system = "/etc/ssl/certs/ca-certificates.crt"
    with open(folder + "/many.pem", "w") as many:
        for path in (system, authority.file):
            if os.path.exists(path):
                with open(path) as f:
                    many.write(f.read())
    for kind, file in (("one", authority.file), ("all", folder + "/many.pem")):
        a = start(kind, "--mode", "efficiency", "--tls-ca", file, store=redis.url)
        a.wait_leader()
        anonymous = status_field(a.pid, "RssAnon")
        print(f"\nrediss: RssAnon {anonymous} KiB with {kind} CA" + "s" * (kind == "all"))
        assert anonymous < 4 * 1024
        assert a.stop() == 0
