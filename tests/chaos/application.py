"""An application beside one sidecar, in a process of its own: python -m chaos.application JSON

It asks in every way there is, without end, writes at the fenced resource while it leads, keeps some
validities and writes late under their tokens, and attaches if it is told to. Says on stdout what
it was told, as lists in JSON, answers in a row in one line (see Teller); on stdin come orders.
"""

import heapq
import json
import os
import random
import socket
import sys
import threading
import time

from kit.clock import MS, S, boottime_ns
from kit.page import PageReader
from kit.resp import Resp, RespError
from kit.sampler_main import Target

PAUSE_S = 0.005    # after each answer
AGAIN_S = 0.02     # after a failed attempt
TELL_NS = 200 * MS
TICK_S = 0.02      # of the writer
OLD_KEPT = 4       # tokens of earlier grants that it writes late under


class Teller:
    """Says what was answered: one line when something new is said, and one each TELL_NS for what
    has been added to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self._open = {}
        self._serial = 0
        self._dirty = set()
        self._flush_at = 0
        self.cut_at = 0  # what was asked for before is trusted no more
        self.claims = {}  # token -> (deadline, send): the latest

    def say(self, *words):
        os.write(1, (json.dumps(words) + "\n").encode())

    def contradiction(self, text):
        with self.lock:
            self.say("contradiction", boottime_ns(), text)

    def answer(self, way, said, token, send, receive, deadline):
        with self.lock:
            run = self._open.get(way)
            leader = said == "leader"
            late = max(0, send - deadline) if leader else 0
            if leader and send > self.cut_at and deadline > self.claims.get(token, (0,))[0]:
                self.claims[token] = deadline, send
            if run and (run["said"], run["token"]) == (said, token) \
                    and not (leader and receive > run["deadline"]) \
                    and not run["last_send"] <= self.cut_at < send:
                run.update(last_send=send, last_receive=receive, count=run["count"] + 1,
                           deadline=max(run["deadline"], deadline), late=max(run["late"], late))
                self._dirty.add(way)
                return
            self._close(way)
            begin = min(receive, deadline) if leader else receive
            self._begin(way, dict(way=way, said=said, token=token, first_send=send, begin=begin,
                                  first_receive=receive, last_send=send, last_receive=receive,
                                  deadline=deadline, late=late, count=1))

    def write(self, token, accepted, trusted, send, receive, highest):
        with self.lock:
            run = self._open.get("write")
            if run and (run["token"], run["accepted"], run["trusted"]) == (token, accepted, trusted):
                run.update(last_send=send, last_receive=receive, count=run["count"] + 1,
                           highest=min(run["highest"], highest))
                self._dirty.add("write")
                return
            self._close("write")
            self._begin("write", dict(token=token, accepted=accepted, trusted=trusted,
                                      first_send=send, first_receive=receive, last_send=send,
                                      last_receive=receive, highest=highest, count=1))

    def _begin(self, way, run):
        self._serial += 1
        run["id"] = self._serial
        self._open[way] = run
        self.say("begin", "write" if way == "write" else "answer", run)

    def _close(self, way):
        if way in self._dirty:
            self._update(way)

    def _update(self, way):
        run = self._open[way]
        self._dirty.discard(way)
        middle = run["highest"] if way == "write" else [run["deadline"], run["late"]]
        self.say("more", run["id"], run["last_send"], run["last_receive"],
                 *(middle if isinstance(middle, list) else [middle]), run["count"])

    def flush(self):
        if boottime_ns() < self._flush_at:
            return
        with self.lock:
            self._flush_at = boottime_ns() + TELL_NS
            for way in list(self._dirty):
                self._update(way)

    def cut(self):
        """From here on nothing counts that was asked for before."""
        with self.lock:
            self.cut_at = boottime_ns()
            self.claims.clear()
            self.say("stopped", self.cut_at)


def forever(work):
    """Each way has a thread; a fault in it must not pass unnoticed."""
    def run():
        try:
            while True:
                work()
        except BaseException as e:
            sys.stderr.write(f"the application ends: {e!r}\n")
            os._exit(3)
    threading.Thread(target=run, daemon=True).start()


class Asker:
    """One question at a time by the socket or by HTTP. The patience is long: an answer that was
    held up is the most interesting one."""

    def __init__(self, teller, spec):
        self.teller = teller
        self.target = Target(spec)
        self.way = spec["way"]

    def __call__(self):
        t = self.target
        try:
            if t.socket is None:
                t.connect()
                t.socket.settimeout(30)
            t.ask()
            parsed = None
            while parsed is None:
                data = t.socket.recv(65536)
                now = boottime_ns()
                if not data:
                    raise ConnectionError
                t.buffer += data
                parsed = t.parse(now)
        except ValueError as e:
            self.teller.contradiction(str(e))
            t.close(0)
            return
        except OSError:
            t.close(0)
            now = boottime_ns()
            self.teller.answer(self.way, "none", 0, now, now, 0)
            time.sleep(AGAIN_S)
            return
        said, a, goes_on = parsed
        if not goes_on:
            t.close(0)
        said = "leader" if a.leader else said if said != "leader" else "none"
        self.teller.answer(self.way, said, a.token, a.send, a.receive, a.deadline)
        time.sleep(PAUSE_S)


class Reader:
    def __init__(self, teller, path):
        self.teller = teller
        self.page = PageReader(path)

    def __call__(self):
        r = self.page.check()
        self.teller.answer("page", r.state, r.token, r.send, r.receive, r.deadline)
        time.sleep(PAUSE_S)


class Attachment:
    """Stops when it is told to, most times in time; then what it was told counts no more."""

    def __init__(self, teller, path, rng):
        self.teller, self.path, self.rng = teller, path, rng
        self.socket = None
        self.lock = threading.Lock()

    def __call__(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.connect(self.path)
            s.sendall(b"attach\n")
            lines = s.makefile("rb")
            if lines.readline() == b"ok\n":
                self.socket = s
                for line in lines:
                    self._heard(line.split())
        except OSError:
            pass
        self.socket = None
        s.close()
        time.sleep(0.05)

    def _heard(self, words):
        if words[:1] == [b"revoke"]:
            time.sleep(int(words[2]) / 1e3 * self.rng.choice((0, 0, 0.1, 0.5, 0.9, 1.2)))
            self.teller.cut()
            self.socket.sendall(b"done %s\n" % words[1])

    def resign(self):
        s = self.socket
        if s is not None:
            self.teller.cut()
            s.sendall(b"resign\n")


class Writer:
    def __init__(self, teller, replica, resource, guard, rng):
        self.teller, self.replica, self.rng = teller, replica, rng
        self.resource, self.guard = resource, guard
        self.client = None
        self.due = []       # (when, token, deadline, asked at)
        self.old = []       # tokens

    def __call__(self):
        time.sleep(TICK_S)
        now = boottime_ns()
        with self.teller.lock:
            claims = dict(self.teller.claims)
            for token in [t for t, c in claims.items() if c[0] < now]:
                del self.teller.claims[token]
                self.old = [t for t in self.old if t != token][-OLD_KEPT:] + [token]
        for token, (deadline, send) in claims.items():
            if deadline > now and self.rng.random() < 0.5:
                self._plan(now, token, deadline, send)
        if self.old and self.rng.random() < 0.02:
            self._write(self.rng.choice(self.old), 0, 0)
        while self.due and self.due[0][0] <= boottime_ns():
            self._write(*heapq.heappop(self.due)[1:])
        self.teller.flush()

    def _plan(self, now, token, deadline, send):
        left = deadline - now
        when = now + self.rng.choices((0, self.rng.random() * left,
                                       left + self.rng.random() * 3 * S), (6, 2, 2))[0]
        heapq.heappush(self.due, (int(when), token, deadline, send))

    def _write(self, token, deadline, asked):
        if self.client is None:
            self.client = Resp(path=self.resource, timeout=60)
        send = boottime_ns()
        highest = 0
        try:
            self.client.call("EVAL", self.guard, 2, "fence", "taken", token, self.replica)
        except RespError as e:
            if not str(e).startswith("STALE "):
                raise
            highest = int(str(e).split()[1])
        receive = boottime_ns()
        trusted = receive <= deadline and self.teller.cut_at < asked
        self.teller.write(token, highest == 0, trusted, send, receive, highest)


def main(spec):
    rng = random.Random(spec["seed"])
    teller = Teller()
    name = {"replica": spec["replica"], "election": spec["election"]}
    attachment = Attachment(teller, spec["socket"], rng)
    if spec["attach"]:
        forever(attachment)
    forever(Asker(teller, {**name, "way": "socket", "address": spec["socket"]}))
    if spec["http"]:
        forever(Asker(teller, {**name, "way": "http", "address": ["127.0.0.1", spec["http"]]}))
    forever(Reader(teller, spec["page"]))
    forever(Writer(teller, spec["replica"], spec["resource"], spec["guard"], rng))
    for line in sys.stdin:
        if line.strip() == "resign":
            attachment.resign()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
