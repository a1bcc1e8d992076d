"""HTTP requests that wait for a change: many of them, and what becomes of them."""

import contextlib
import json
import resource
import socket
import statistics
import struct
import subprocess
import sys

import pytest

from e2e.footprint import status_field
from kit.clock import MS, S, boottime_ns, wait_until
from kit.sidecar import TIMING

CROWD = 1000


@pytest.fixture
def pair(start):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "10s", "--valid-for", "300ms")
    a.wait_leader()
    b = start("pod-b", "--mode", "efficiency", "--ttl", "10s", "--valid-for", "300ms")
    b.wait_state("follower")
    return a, b


@pytest.fixture
def crowd(pair):
    """crowd(count): so many connections that wait at pod-a; all wait when it returns."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], 8192), files[1]))
    with contextlib.ExitStack() as stack:
        def gather(count):
            sockets = [stack.enter_context(waiting(pair[0])) for _ in range(count)]
            watchers(pair[0], count)
            return sockets
        yield gather
    resource.setrlimit(resource.RLIMIT_NOFILE, files)


def target(sidecar, wait="30s", index=None):
    index = sidecar.status()["index"] if index is None else index
    return f"/v1/elections/a?index={index}&wait={wait}"


def waiting(sidecar, wait="30s"):
    s = socket.create_connection(("127.0.0.1", sidecar.http_port), timeout=20)
    s.sendall(f"GET {target(sidecar, wait)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return s


def watchers(sidecar, count):
    wait_until(lambda: sidecar.metrics()["gavel_watchers"] == count, 30, f"{count} wait")


def answer(s):
    """Status, headers and JSON of a reply that was waited for."""
    with s.makefile("rb") as reply:
        status = int(reply.readline().split()[1])
        headers = {}
        while (line := reply.readline().strip()):
            name, value = line.decode().split(": ", 1)
            headers[name.lower()] = value
        return status, headers, json.loads(reply.read(int(headers["content-length"])))


def test_a_change_is_heard_of(pair):
    a, b = pair
    index = b.status()["index"]
    with waiting(b) as s:
        watchers(b, 1)
        assert a.ask("resign") == "ok"
        status, headers, told = answer(s)
        assert status == 200 and told["index"] != index
        assert headers["cache-control"] == "no-store"
        if told["leader"]:
            assert headers["fencing-token"] == str(told["token"])


def test_following_by_long_poll_alone(pair):
    """From change to change, over a handover: no state is missed for longer than it lasts."""
    a, b = pair
    index = 0
    assert a.ask("resign") == "ok"
    until = boottime_ns() + 20 * S
    seen = []
    while boottime_ns() < until and "leader" not in seen:
        told = b.request(target(b, "5s", index)).json()
        assert told["index"] != index or told["state"] == seen[-1]
        index = told["index"]
        seen.append(told["state"])
    assert seen[-1] == "leader"


def test_nothing_happens(pair):
    a, _ = pair
    index = a.status()["index"]
    began = boottime_ns()
    reply = a.request(target(a, "700ms"))
    assert reply.status == 200 and reply.json()["index"] == index  # renewals are no change
    assert boottime_ns() - began > 699 * MS
    assert reply.json()["leader"] and int(reply.headers["lease-valid-ms"]) <= 300
    head = a.request(target(a, "100ms"), "HEAD")
    assert head.status == 200 and head.body == b"" and "fencing-token" in head.headers


def test_wrong_queries(pair):
    for query in ("index=x", "wait=10s", "index=1&wait=10", "index=1&index=1", "x=1"):
        reply = pair[0].request("/v1/elections/a?" + query)
        assert reply.status == 400 and reply.json()["detail"]
        assert reply.headers["content-type"] == "application/problem+json"
    assert pair[0].request("/v1/leader?index=1&wait=1s").status == 400


def test_a_thousand_wait(pair, crowd):
    a, _ = pair
    files = a.open_files()
    memory = status_field(a.pid, "RssAnon")
    alone = questions(a)
    sockets = crowd(CROWD)
    assert CROWD <= a.open_files() - files <= CROWD + 8
    grown = status_field(a.pid, "RssAnon") - memory
    among = questions(a)
    print(f"\n{CROWD} wait: {grown} KiB more, p50 of a question {among:.2f} ms ({alone:.2f} alone)")
    assert grown < CROWD * (24 if TIMING else 48)
    if TIMING:
        assert among < 3 * alone + 2
    # All are told of the change, and the others hardly notice.
    assert a.ask("resign") == "ok"
    told = [answer(s) for s in sockets]
    assert {status for status, _, _ in told} == {200}
    assert not any(body["leader"] for _, _, body in told)
    watchers(a, 0)
    for s in sockets:
        s.close()
    wait_until(lambda: a.open_files() <= files + 4, 20, "descriptors return")
    # Again, it costs nothing more.
    wait_until(lambda: a.status()["holder"] == "pod-b", 20)  # the last change for now
    memory = status_field(a.pid, "RssAnon")
    for s in crowd(CROWD):
        s.close()
    watchers(a, 0)
    if TIMING:  # AddressSanitizer keeps what is freed
        assert status_field(a.pid, "RssAnon") - memory < 4096


def questions(sidecar):
    """The median of a question's time, in milliseconds."""
    times = []
    for _ in range(101):
        began = boottime_ns()
        assert sidecar.request("/v1/leader").status in (200, 503)
        times.append((boottime_ns() - began) / MS)
    return statistics.median(times)


def test_more_than_fit_are_answered_at_once(pair, crowd):
    a, _ = pair
    crowd(1024)
    began = boottime_ns()
    reply = a.request(target(a))
    assert reply.status == 200 and reply.headers["retry-after"] == "1" and reply.json()["leader"]
    assert boottime_ns() - began < 20 * S  # not after the 30 s that were asked for
    assert a.request("/v1/leader").status == 200
    assert a.probe("/livez").status == 200
    assert a.check().leader


def test_a_client_that_is_killed(pair):
    a, _ = pair
    files = a.open_files()
    client = subprocess.Popen([sys.executable, "-c", "import sys, urllib.request as u; "
                               "u.urlopen(sys.argv[1])",
                               f"http://localhost:{a.http_port}{target(a)}"])
    watchers(a, 1)
    client.kill()
    client.wait()
    began = boottime_ns()
    watchers(a, 0)
    wait_until(lambda: a.open_files() <= files, 20, "its descriptor returns")
    assert boottime_ns() - began < 20 * S


def test_a_client_that_closes_its_side_is_answered(pair):
    a, _ = pair
    files = a.open_files()
    with waiting(a) as s:
        watchers(a, 1)
        s.shutdown(socket.SHUT_WR)
        began = boottime_ns()
        status, _, body = answer(s)
        assert status == 200 and body["leader"]
        assert s.recv(1) == b""
        assert boottime_ns() - began < 20 * S  # not the 30 s that it would wait
    with waiting(a) as s:  # both at once
        s.shutdown(socket.SHUT_WR)
        assert answer(s)[0] == 200
    watchers(a, 0)
    wait_until(lambda: a.open_files() <= files, 20, "their descriptors return")


def test_a_client_that_resets_is_gone(pair):
    a, _ = pair
    files = a.open_files()
    with waiting(a) as s:
        watchers(a, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    began = boottime_ns()
    watchers(a, 0)
    wait_until(lambda: a.open_files() <= files, 20, "its descriptor returns")
    assert boottime_ns() - began < 20 * S


def test_a_drain_answers_all(pair, crowd):
    a, _ = pair
    sockets = crowd(60)
    a.terminate()
    for s in sockets:
        status, _, body = answer(s)
        assert status == 200 and not body["leader"] and body["reason"] == "draining"
    assert a.wait() == 0


def test_a_follower_that_ends_answers_all(pair):
    _, b = pair
    with waiting(b) as s:
        watchers(b, 1)
        b.terminate()
        status, headers, body = answer(s)
        assert status == 200 and not body["leader"] and headers["connection"] == "close"
        assert s.recv(1) == b""
    assert b.wait() == 0
