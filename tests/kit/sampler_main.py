"""The process that asks: every target has one question under way at any moment.

Reads its targets as JSON from argv, and how many ms each of them is left alone after an answer
(0: none). Prints one JSON line for each change, stall and violation,
and a summary when its input ends. On its input come orders, one at a time.
"""

import json
import re
import selectors
import socket
import sys

from kit.clock import MS, boottime_ns
from kit.history import Answer, History

RETRY_NS = 2 * MS
STALL_NS = 20 * MS
HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Target:
    """One replica asked in one way."""

    def __init__(self, spec):
        self.replica = spec["replica"]
        self.way = spec["way"]
        self.address = tuple(spec["address"]) if self.way == "http" else spec["address"]
        name = spec.get("election", "")
        if self.way == "http":
            path = f"/v1/elections/{name}/leader" if name else "/v1/leader"
            self.question = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        else:
            self.question = f"check {name}".strip().encode() + b"\n"
        self.socket = None
        self.buffer = b""
        self.send_ns = 0
        self.retry_ns = 0
        self.due_ns = 0  # of the next question; 0: one is under way
        self.last = None

    def connect(self):
        family = socket.AF_INET if self.way == "http" else socket.AF_UNIX
        s = socket.socket(family, socket.SOCK_STREAM)
        try:
            s.settimeout(0.2)
            s.connect(self.address)
            s.setblocking(False)
            if self.way == "http":
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            s.close()
            raise
        self.socket = s
        self.buffer = b""

    def ask(self):
        self.due_ns = 0
        self.send_ns = boottime_ns()
        self.socket.send(self.question)

    def close(self, now):
        if self.socket is not None:
            self.socket.close()
        self.socket = None
        self.retry_ns = now + RETRY_NS

    def parse(self, now):
        """None while the answer is not complete, else (state, Answer, goes on)."""
        return self._parse_http(now) if self.way == "http" else self._parse_socket(now)

    def _parse_http(self, now):
        end = self.buffer.find(HEAD_END)
        if end < 0:
            return None
        length = LENGTH.search(self.buffer, 0, end)
        body_end = end + 4 + (int(length.group(1)) if length else 0)
        if len(self.buffer) < body_end:
            return None
        head = self.buffer[:end].lower()
        body = json.loads(self.buffer[end + 4:body_end])
        self.buffer = self.buffer[body_end:]
        leader = body.get("leader") is True
        if leader and not (b" 200 " in head.split(b"\r\n", 1)[0] + b" "
                           and body["holder"] == body["identity"] and body["valid_for_ms"] > 0):
            raise ValueError(f"contradicts itself: {head!r} {body!r}")
        answer = Answer(self.replica, self.send_ns, now, leader, body.get("token") or 0,
                        self.send_ns + body.get("valid_for_ms", 0) * MS if leader else 0)
        return body.get("state", "error"), answer, b"connection: close" not in head

    def _parse_socket(self, now):
        line, newline, rest = self.buffer.partition(b"\n")
        if not newline:
            return None
        self.buffer = rest
        words = line.decode().split(" ")
        if words[0] != "leader":
            return words[0], Answer(self.replica, self.send_ns, now, False), words[0] != "error"
        token, valid_ms, deadline = map(int, words[1:4])
        if deadline > now + valid_ms * MS:
            raise ValueError(f"deadline further away than {valid_ms} ms: {line!r}")
        return "leader", Answer(self.replica, self.send_ns, now, True, token, deadline), True


class Asker:
    def __init__(self, specs, every_ns):
        self.targets = [Target(s) for s in specs]
        self.every_ns = every_ns
        self.replicas = {s["replica"]: [0, 0] for s in specs}  # answers, of them leader
        self.history = History()
        self.selector = selectors.DefaultSelector()
        self.told = 0
        self.last_turn = boottime_ns()

    def note(self, target, state, answer):
        self.history.add(answer)
        self.replicas[target.replica][0] += 1
        self.replicas[target.replica][1] += answer.leader
        what = (state, answer.token)
        if what != target.last:
            target.last = what
            say(what="change", replica=target.replica, way=target.way, state=state,
                token=answer.token, leader=answer.leader, send=answer.send,
                receive=answer.receive, deadline=answer.deadline)
        while self.told < len(self.history.violations):
            say(what="violation", text=self.history.violations[self.told])
            self.told += 1

    def lost(self, target):
        now = boottime_ns()
        if target.socket is not None:
            self.selector.unregister(target.socket)
        target.close(now)
        self.note(target, "none", Answer(target.replica, now, now, False))

    def start(self, target):
        try:
            target.connect()
            self.selector.register(target.socket, selectors.EVENT_READ, target)
            target.ask()
        except OSError:
            self.lost(target)

    def ask(self, target):
        try:
            target.ask()
        except OSError:
            self.lost(target)

    def read(self, target):
        try:
            data = target.socket.recv(65536)
            now = boottime_ns()
            if not data:
                self.lost(target)
                return
            target.buffer += data
            parsed = target.parse(now)
            if parsed is None:
                return
            state, answer, goes_on = parsed
            self.note(target, state, answer)
            if goes_on and self.every_ns:
                target.due_ns = now + self.every_ns
            elif goes_on:
                target.ask()
            else:
                self.selector.unregister(target.socket)
                target.close(now - RETRY_NS)
        except BlockingIOError:
            return
        except OSError:
            self.lost(target)

    def turn(self):
        now = boottime_ns()
        if now - self.last_turn > STALL_NS:
            say(what="stall", start=self.last_turn, end=now)
        idle = True
        for target in self.targets:
            if target.socket is None and now >= target.retry_ns:
                self.start(target)
            elif target.socket is not None and 0 < target.due_ns <= now:
                self.ask(target)
            idle = idle and target.socket is None
        self.last_turn = boottime_ns()
        ready = self.selector.select(0.002)
        if ready:
            # Time spent waiting for an answer is nobody's stall.
            self.last_turn = boottime_ns()
        for key, _ in ready:
            if key.fd != 0:
                self.read(key.data)
            elif not self.obey(sys.stdin.readline()):
                return False
        return True

    def obey(self, line):
        """An order: that the readers of a replica have stopped, or are back."""
        if not line:
            return False
        order, replica = line.split()
        if order == "stop":
            self.history.stop_readers(replica, boottime_ns())
        else:
            self.history.resume_readers(replica)
        say(what="obeyed", line=line)
        return True

    def run(self):
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)
        say(what="started")
        while self.turn():
            pass
        say(what="summary", answers=self.history.answers, leaders=self.history.leader_answers,
            replicas=self.replicas, grants=len(self.history.grants),
            violations=self.history.violations)


if __name__ == "__main__":
    Asker(json.loads(sys.argv[1]), int(sys.argv[2]) * MS).run()
