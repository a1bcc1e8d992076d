"""The sampler, asked about fakes that answer what they are told to."""

import http.server
import json
import os
import socketserver
import threading

import pytest

from kit.clock import MS, boottime_ns, wait_until
from kit.sampler import Sampler


class Fake:
    """Answers like a sidecar: `answer` is (token, valid_ms), or None for a follower."""

    def __init__(self, folder, identity, answer):
        self.identity = identity
        self.answer = answer
        self.gone = False
        self.socket_path = os.path.join(str(folder), identity)
        fake = self

        class Lines(socketserver.StreamRequestHandler):
            def handle(self):
                for line in self.rfile:
                    assert line == b"check\n"
                    if fake.gone:
                        return
                    self.wfile.write(fake.line().encode())

        class Http(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                body = json.dumps(fake.json()).encode()
                self.send_response(200 if fake.answer else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.servers = [socketserver.ThreadingUnixStreamServer(self.socket_path, Lines),
                        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Http)]
        self.http_port = self.servers[1].server_port
        for server in self.servers:
            server.daemon_threads = True
            server.handle_error = lambda *_: None  # clients just go away
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def line(self):
        if self.answer is None:
            return "follower -\n"
        token, valid_ms = self.answer
        return f"leader {token} {valid_ms} {boottime_ns() + valid_ms * MS}\n"

    def json(self):
        token, valid_ms = self.answer or (None, 0)
        leader = self.answer is not None
        return {"identity": self.identity, "state": "leader" if leader else "follower",
                "leader": leader, "token": token, "valid_for_ms": valid_ms,
                "holder": self.identity if leader else ""}

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


@pytest.fixture
def fakes(tmp_path):
    pair = [Fake(tmp_path, "a", (5, 30)), Fake(tmp_path, "b", None)]
    yield pair
    for fake in pair:
        fake.close()


@pytest.mark.parametrize("way", ["http", "socket"])
def test_a_handover_is_seen_and_breaks_nothing(fakes, way):
    a, b = fakes
    sampler = Sampler(fakes, ways=(way,))
    assert sampler.wait_for_leader(0).replica == "a"
    a.answer = None
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > 50 * MS)
    b.answer = (6, 30)
    change = sampler.wait_for_leader(since)
    assert (change.replica, change.token, change.state) == ("b", 6, "leader")
    summary = sampler.stop()
    assert summary["grants"] == 2 and summary["answers"] > 20


@pytest.mark.parametrize("way", ["http", "socket"])
@pytest.mark.parametrize("second,what", [((6, 500), "two leaders"), ((5, 500), "came from"),
                                         ((4, 500), "tokens fell")])
def test_what_is_planted_is_found(fakes, way, second, what):
    sampler = Sampler(fakes, ways=(way,))
    sampler.wait_for_leader(0)
    fakes[0].answer = (5, 500)
    fakes[1].answer = second
    wait_until(lambda: any(what in v for v in list(sampler.violations)), 5)
    with pytest.raises(AssertionError):
        sampler.stop()


def test_a_server_that_goes_away_and_comes_back(fakes, tmp_path):
    a, _ = fakes
    sampler = Sampler([a], ways=("socket",))
    sampler.wait_for_leader(0)
    a.gone = True
    wait_until(lambda: any(c.state == "none" for c in list(sampler.changes)), 5)
    os.unlink(a.socket_path)
    again = Fake(tmp_path, "a", (7, 30))
    wait_until(lambda: any(c.token == 7 for c in list(sampler.changes)), 5)
    sampler.stop()
    again.close()
