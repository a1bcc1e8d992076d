"""Leadership that ends with the application's own life: attach, beats, checks, and the drain that
waits for it."""

import http.server
import os
import signal
import socket
import threading

import pytest

from kit.application import Application
from kit.clock import MS, S, boottime_ns, wait_until
from kit.latency import Latency
from kit.sidecar import LONG, SLACK_MS, TIMING

KILLS = (100 if LONG else 12) if TIMING else 4


@pytest.fixture
def pair(start, closing):
    """pair(*options, beat_ms=...): two sidecars with their applications, the first one leads."""
    def make(*options, beat_ms=0, done_ms=0, ttl="1s"):
        pods = [start(f"pod-{n}", "--ttl", ttl, *options) for n in "ab"]
        apps = [closing(Application(pods[0], beat_ms, done_ms))]
        apps[0].wait_for("attached")
        apps[0].wait_leader()
        apps.append(closing(Application(pods[1], beat_ms, done_ms)))
        apps[1].wait_for("attached")
        return apps
    return make


@pytest.fixture
def latency(closing):
    return closing(Latency())


def test_a_killed_application_is_replaced_at_once(pair, latency):
    leading, other = pair("--require-app", "--valid-for", "2s")
    took = []
    for _ in range(KILLS):
        token = leading.wait_leader()[0]
        pod = leading.sidecar
        killed = boottime_ns()
        leading.kill9()
        wait_until(lambda p=pod: p.status()["reason"] in ("app-gone", "held-by-other"), 5)
        ends = wait_until(lambda p=pod: p.event("state", to="resigning"), 5, "it is in the log")
        assert ends[-1]["reason"] == "app-gone"
        taken, _, when = other.wait_leader(killed, 5)
        assert taken > token
        late = latency.worst_ns(killed, when)
        took.append((when - killed - late) / MS)
        leading.start()
        leading.wait_for("attached")
        leading, other = other, leading
    took.sort()
    print(f"taken over after {took[len(took) // 2]:.1f} ms, at most {took[-1]:.1f} ms")
    if TIMING:
        assert took[int(len(took) * 0.95) - 1] <= 50 + SLACK_MS, took


def hung(leading, other):
    """Stops the application; (when, when the other one leads, the latest end of its validity)."""
    stopped = boottime_ns()
    leading.signal(signal.SIGSTOP)
    _, _, when = other.wait_leader(stopped, 10)
    leading.signal(signal.SIGCONT)
    leading.wait_for("follower", count=len(leading.all("follower")) + 1)
    return stopped, when, leading.last_deadline()


def test_a_hung_application_loses_leadership_when_its_validity_has_ended(pair, latency):
    leading, other = pair("--app-timeout", "500ms", "--valid-for", "400ms", beat_ms=100)
    stopped, when, deadline = hung(leading, other)
    assert when >= deadline, f"{(deadline - when) / MS} ms before its validity ended"
    event = leading.sidecar.event("state", to="resigning")[-1]
    assert event["reason"] == "app-hung"
    if TIMING:
        late = latency.worst_ns(stopped, when)
        assert when - stopped <= (1000 + SLACK_MS) * MS + late, (when - stopped) / MS
    # It beats again, and stands again.
    other.kill9()
    leading.wait_leader(when, 10)


def test_a_hung_application_is_not_waited_for_in_efficiency(pair, latency, monitor):
    leading, other = pair("--app-timeout", "500ms", "--valid-for", "700ms", "--mode", "efficiency",
                          "--require-app", beat_ms=100)
    token = leading.wait_leader()[0]
    stopped, when, _ = hung(leading, other)
    event = leading.sidecar.event("state", to="resigning")[-1]
    assert event["reason"] == "app-hung"
    assert other.wait_leader(stopped)[0] > token
    # It may still be at work, so the release says nothing else.
    monitor.catch_up()
    told = [c.rest for c in monitor.commands if c.name == "PUBLISH" and f'"{token} ' in c.rest]
    assert told and all(f'"{token} unclean ' in rest for rest in told), told
    if TIMING:
        late = latency.worst_ns(stopped, when)
        assert when - stopped <= (550 + SLACK_MS) * MS + late, (when - stopped) / MS


def test_one_that_was_hung_for_a_moment_is_not_waited_for_either(pair, latency):
    """It beats again before its validity ends, and never says done."""
    leading, other = pair("--app-timeout", "300ms", "--valid-for", "1500ms", "--require-app",
                          beat_ms=100, done_ms=-1, ttl="2s")
    pod = leading.sidecar
    token = leading.wait_leader()[0]
    stopped = boottime_ns()
    leading.signal(signal.SIGSTOP)
    wait_until(lambda: pod.event("state", to="resigning", reason="app-hung"))
    leading.signal(signal.SIGCONT)
    taken, _, when = other.wait_leader(stopped, 20)
    assert taken > token and when >= leading.last_deadline()
    if TIMING:  # a lease that was renewed until the end of the drain would last for more than 10 s
        assert when - stopped <= (2000 + SLACK_MS) * MS + latency.worst_ns(stopped, when)


def test_what_an_application_repeats_does_not_fill_the_log(start):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    with pod.connection(30) as s:
        lines = s.makefile("rb")
        s.sendall(b"attach\n")
        assert lines.readline() == b"ok\n"
        token = pod.wait_leader().token
        since = boottime_ns()
        for _ in range(100):
            s.sendall(b"done 1\n" * 100)
        for _ in range(20):
            s.sendall(b"resign\n" * 50)
        while pod.leads() or not pod.event("application", what="resigns"):
            assert boottime_ns() - since < 20 * S
        assert pod.event("application", what="done") == []
        s.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: pod.event("application", what="gone"))
    most = (boottime_ns() - since) // (100 * MS) + 2
    assert len(pod.event("application")) - 2 <= most, "attached and gone are two more"
    with pod.connection(30) as s:  # what was asked for is logged
        lines = s.makefile("rb")
        s.sendall(b"attach\n")
        assert lines.readline() == b"ok\n"
        wait_until(lambda: pod.check().token > token, 20)
        token = pod.check().token
        with pod.connection(30) as other:
            other.sendall(b"resign\n")
            while not lines.readline().startswith(b"revoke "):
                pass
            s.sendall(b"done %d\n" % token)
            assert other.recv(100) == b"ok\n"
        wait_until(lambda: pod.event("application", what="done"))


class Checked:
    """The application's own HTTP endpoint; `status` 0 takes the question and never answers."""

    def __init__(self):
        self.status = 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if outer.status == 0:
                    threading.Event().wait(3)
                    return
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://localhost:{self.server.server_port}/healthz"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.parametrize("failure", [503, 0] if TIMING else [0])
def test_an_application_that_fails_its_check(start, closing, failure):
    checked = closing(Checked())
    pod = start("pod-a", "--ttl", "1s", "--app-check", checked.url)
    pod.wait_leader()
    checked.status = failure
    wait_until(lambda: pod.event("state", to="resigning", reason="app-unhealthy"), 15)
    problems = pod.event("app-check")
    assert problems and (str(failure) if failure else "in time") in problems[0]["problem"]
    wait_until(lambda: pod.state() == "follower" or None, 10)
    since = boottime_ns()
    checked.status = 200
    again = pod.wait_leader(20)
    assert again.receive - since >= 1 * S, "less than three successes"


def test_without_an_application_nobody_stands(start, closing):
    pod = start("pod-a", "--ttl", "1s", "--require-app", "--mode", "efficiency")
    wait_until(lambda: pod.state() == "follower" or None)
    assert pod.metrics()['gavel_attached_apps{election="a"}'] == 0
    app = closing(Application(pod))
    app.wait_leader()
    assert pod.metrics()['gavel_attached_apps{election="a"}'] == 1
    assert pod.ask("attach").startswith("error busy ")


def test_a_handover_waits_for_done(pair):
    leading, other = pair("--valid-for", "200ms", done_ms=600)
    pod = leading.sidecar
    pod.terminate()
    token, within, heard = map(int, leading.wait_for("revoke")[1:])
    assert token == leading.wait_leader()[0] and 0 < within <= 800
    _, done = map(int, leading.wait_for("done")[1:])
    _, _, when = other.wait_leader(heard)
    assert when >= done
    assert pod.wait() == 0 and pod.event("drained")


def test_one_that_is_never_done_keeps_the_lock_until_it_lapses(pair, redis):
    leading, other = pair("--drain", "700ms", "--valid-for", "200ms", done_ms=-1)
    pod = leading.sidecar
    asked = boottime_ns()
    pod.terminate()
    assert leading.wait_for("revoke")[2] != "0"
    assert pod.wait() == 0
    assert boottime_ns() - asked >= 700 * MS
    assert pod.event("left-to-lapse") and not pod.event("drained")
    left = redis.cli("PTTL", "gavel:{default/a}:lease")
    state = other.sidecar.state()
    assert left > 0 or state in ("leader", "pending"), "it was released"
    assert not [e for e in list(pod.events) if e.get("op") == "release"]
    _, _, when = other.wait_leader(asked)
    assert when - asked >= 700 * MS  # until then it was renewed


def test_resign_on_the_attachment_needs_no_done(start, closing):
    pod = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    with pod.connection() as s:
        lines = s.makefile("rb")
        s.sendall(b"attach\n")
        assert lines.readline() == b"ok\n"
        pod.wait_leader()
        s.sendall(b"resign\n")
        assert lines.readline() == b"ok\n"
        assert not pod.leads()


def connect_to(pod):
    """Waits where the listener's queue is full."""
    def connect():
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(10)
        try:
            s.connect(pod.socket_path)
            return s
        except BlockingIOError:
            s.close()
            return None
    return wait_until(connect, 20, "the listener takes a connection")


def test_a_thousand_watchers_and_one_that_never_reads(start):
    pod = start("pod-a", "--ttl", "1s", "--valid-for", "100ms", "--mode", "efficiency")
    pod.wait_leader()
    files = pod.open_files()
    memory = pod.metrics()["process_resident_memory_bytes"]
    watchers = []
    try:
        for _ in range(1000):
            watchers.append(connect_to(pod))
            watchers[-1].sendall(b"watch\n")
        worst = 0
        for _ in range(200):  # nobody reads what is pushed every 50 ms
            check = pod.check()
            assert check.leader, check.line
            worst = max(worst, check.receive - check.send)
        metrics = pod.metrics()
        grown = metrics["process_resident_memory_bytes"] - memory
        assert metrics["gavel_watchers"] == 1000
        if TIMING:
            assert grown < 8 << 20, grown
            assert worst < 100 * MS, worst / MS
    finally:
        for watcher in watchers:
            watcher.close()
    wait_until(lambda: pod.open_files() <= files + 2, 10, "the descriptors return")
    assert os.path.exists(pod.socket_path)
