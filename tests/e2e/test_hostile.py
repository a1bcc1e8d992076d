"""Clients that send nonsense, too much, too little or never go away: clear errors, no crash, no
leak, everyone else served."""

import contextlib
import os
import random
import re
import select
import socket
import threading

import pytest

from kit.clock import wait_until

LONG_LINE = 10 * 1024 * 1024


@pytest.fixture
def leader(start):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "5s", "--drain", "none")
    a.wait_leader()
    a.request("/v1/leader")
    a.probe("/livez")
    yield a
    assert a.stop() == 0, a.log()[-2000:]  # ends by itself: a sanitizer tells of leaks


@pytest.fixture
def unharmed(leader):
    """After the test: alive, serving everyone, and with no more open files than before."""
    before = settled_files(leader)
    yield
    assert leader.process.poll() is None, leader.log()[-2000:]
    assert leader.check().leader
    assert leader.request("/v1/leader").status == 200
    assert leader.probe("/livez").status == 200
    wait_until(lambda: leader.open_files() <= before, 30, f"open files back to {before}")


def settled_files(sidecar):
    """The least number of open files over some askings: connections of requests are closed late."""
    counts = []
    def steady():
        counts.append(sidecar.open_files())
        return len(counts) > 50 and len(set(counts[-50:])) == 1
    wait_until(steady, 20, "a steady number of open files", poll=0.01)
    return counts[-1]


def connect(sidecar, listener):
    if listener == "socket":
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        address = sidecar.socket_path
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        address = ("127.0.0.1", sidecar.port_of(listener))
    s.settimeout(5)
    s.connect(address)
    return s


def send_all(s, data):
    """Sends until all is gone or the other end has had enough."""
    with contextlib.suppress(OSError):
        s.sendall(data)


def read_all(s, limit=1 << 20):
    got = b""
    with contextlib.suppress(OSError):
        while len(got) < limit:
            data = s.recv(65536)
            if not data:
                break
            got += data
    return got


LISTENERS = ["socket", "http", "health"]


@pytest.mark.parametrize("listener", LISTENERS)
def test_random_bytes(leader, unharmed, listener):
    rng = random.Random(listener)
    for _ in range(60):
        with connect(leader, listener) as s:
            s.settimeout(0.1)  # it may well wait for more
            send_all(s, rng.randbytes(rng.choice((1, 3, 60, 700, 5000))))
            send_all(s, rng.choice((b"", b"\n", b"\r\n\r\n")))
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            read_all(s)
        assert leader.check().leader


@pytest.mark.parametrize("listener", LISTENERS)
def test_half_lines(leader, unharmed, listener):
    """Each of them is left open in the middle of a line while the others are served."""
    half = {"socket": (b"", b"c", b"check", b"check a", b"check a\r"),
            "http": (b"", b"G", b"GET /v1/lea", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHos"),
            "health": (b"", b"GET /liv", b"GET /livez HTTP/1.1\r\nHost: x\r\n")}[listener]
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            for data in half:
                s = stack.enter_context(connect(leader, listener))
                send_all(s, data)
        assert leader.check().leader and leader.request("/v1/leader").status == 200
        assert leader.probe("/livez").status == 200


def test_pieces_of_one_line_are_one_line(leader, unharmed):
    with connect(leader, "socket") as s:
        for byte in b"check a\n":
            s.sendall(bytes([byte]))
        assert s.recv(200).startswith(b"leader ")
        s.sendall(b"check a\ncheck\nstatus\n")
        got = b""
        while got.count(b"\n") < 3:
            got += s.recv(65536)
        lines = got.decode().splitlines()
        assert lines[0].startswith("leader ") and lines[2].startswith("{")


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_line_of_ten_mebibytes(leader, unharmed, listener):
    with connect(leader, listener) as s:
        send_all(s, b"GET /" if listener != "socket" else b"check ")
        for _ in range(LONG_LINE // 65536):
            if select.select([s], [], [], 0)[0]:
                break  # it has said enough
            try:
                s.sendall(b"a" * 65536)
            except OSError:
                break
        answer = read_all(s)
    if listener == "socket":
        assert answer.startswith(b"error too-long ")
    else:
        assert answer.startswith((b"HTTP/1.1 414", b"HTTP/1.1 431"))
    assert resident_kib(leader) < 512 * 1024


def resident_kib(sidecar):
    with open(f"/proc/{sidecar.pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


@pytest.mark.parametrize("sent,code", [
    ("x" * 513, "too-long"), ("frobnicate", "bad-request"), ("", "bad-request"),
    ("check nope", "unknown-election"), ("check a b", "bad-request"),
    ("check \x01", "unknown-election|bad-request"), ("CHECK", "bad-request"),
    ("check ä", "unknown-election|bad-request"), ("resign nope", "unknown-election"),
])
def test_errors_on_the_socket_are_clear(leader, unharmed, sent, code):
    line = leader.ask(sent)
    assert re.match(rf"error ({code}) \S+ \S+", line), line


def test_a_name_is_needed_with_several_elections(start):
    a = start("pod-a", "--mode", "efficiency", elections=("one", "two"))
    assert re.match("error name-needed .* one, two$", a.ask("check"))
    assert re.match("error unknown-election .* one, two$", a.ask("check three"))
    a.wait_leader(election="one")


def test_of_many_elections_some_are_named(start):
    a = start("pod-a", "--mode", "efficiency", elections=tuple(f"{i:02}" + "x" * 60 for i in range(9)))
    assert re.match(r"error name-needed .*: 00x+, 01x+ and 7 more$", a.ask("check"))


@pytest.mark.parametrize("listener", LISTENERS)
def test_five_hundred_connections_at_once(leader, unharmed, listener):
    question = b"check\n" if listener == "socket" else \
        b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (
            b"v1/leader" if listener == "http" else b"livez")
    refused = answered = 0
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(500):
            try:
                held.append(stack.enter_context(connect(leader, listener)))
            except OSError:
                refused += 1
        for other in LISTENERS:
            if other == "socket" and listener != "socket":
                assert leader.check().leader
            elif other == "http" and listener != "http":
                assert leader.request("/v1/leader").status == 200
            elif other == "health" and listener != "health":
                assert leader.probe("/livez").status == 200
        for s in held:
            send_all(s, question)
        for s in held:
            with contextlib.suppress(OSError):
                data = s.recv(4096)
                if data.startswith((b"leader ", b"HTTP/1.1 200")):
                    answered += 1
                elif data:
                    assert data.startswith((b"error too-many ", b"HTTP/1.1 503")), data
                    refused += 1
                if answered + refused > 100 and listener != "socket":
                    break
    assert answered >= 16, (answered, refused)
    print(f"\n{listener}: {answered} answered, {refused} refused")


def test_clients_that_go_away_in_the_middle_of_an_answer(leader, unharmed):
    for _ in range(100):
        with connect(leader, "http") as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            send_all(s, b"GET /v1/elections HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with connect(leader, "socket") as s:
            send_all(s, b"status\nstatus\nwatch\n")


def test_a_watcher_that_never_reads_is_dropped_and_harms_nobody(start, redis):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "300ms", "--valid-for", "2ms")
    a.wait_leader()
    before = settled_files(a)
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(connect(a, "socket"))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        s.sendall(b"watch\n")
        wait_until(lambda: a.open_files() == before + 1, 5)
        # A line each millisecond, unread: the send buffer fills, then it is dropped or coalesced.
        for _ in range(300):
            assert "leader" in a.check().line or "follower" in a.check().line
        assert resident_kib(a) < 512 * 1024
    wait_until(lambda: a.open_files() <= before, 10)


def pump(s, stop, answered):
    """Asks without a pause, and takes the answers."""
    requests = b"GET /v1/leader HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200
    s.setblocking(False)
    while not stop.is_set():
        with contextlib.suppress(BlockingIOError):
            s.send(requests)
        with contextlib.suppress(BlockingIOError):
            answered.append(len(s.recv(1 << 20)))


def test_a_client_that_never_stops_asking_has_not_the_loop_for_itself(leader, unharmed):
    stop, answered = threading.Event(), []
    with connect(leader, "http") as s:
        thread = threading.Thread(target=pump, args=(s, stop, answered))
        thread.start()
        try:
            wait_until(lambda: sum(answered) > 500_000, 30)
            for _ in range(20):
                assert leader.check().leader
            assert 0 not in answered, "cut off"
        finally:
            stop.set()
            thread.join()
    assert not leader.event("loop-stall")


def test_requests_with_a_body_and_chunks(leader, unharmed):
    for body in (b"Content-Length: 100000000\r\n\r\n" + b"x" * 100000,
                 b"Content-Length: -1\r\n\r\n",
                 b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n" + b"x" * 1000,
                 b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxxx"):
        with connect(leader, "http") as s:
            send_all(s, b"GET /v1/leader HTTP/1.1\r\nHost: localhost\r\n" + body)
            s.settimeout(0.5)
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            read_all(s)
    with connect(leader, "http") as s:
        send_all(s, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(
            b"X-%d: %s\r\n" % (n, b"y" * 100) for n in range(2000)) + b"\r\n")
        assert not read_all(s).startswith(b"HTTP/1.1 200")


def test_the_socket_file(leader, folder):
    mode = os.stat(leader.socket_path).st_mode
    assert oct(mode & 0o777) == "0o660"
    assert leader.stop() == 0
    assert not os.path.exists(leader.socket_path)


def test_a_stale_socket_is_replaced_and_one_in_use_is_not(leader, start):
    leader.kill9()
    leader.wait()
    assert os.path.exists(leader.socket_path)
    leader.start()
    leader.check()
    other = type(leader)
    with pytest.raises(AssertionError, match="ended with 1"):
        other(leader.folder, leader.store, "pod-a")
    assert leader.check()
