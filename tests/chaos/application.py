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

from chaos.judge import OF_ATTACHMENT
from kit.clock import MS, S, boottime_ns
from kit.page import PageReader
from kit.resp import Resp, RespError
from kit.sampler_main import Target

PAUSE_S = 0.005    # after each answer
AGAIN_S = 0.02     # after a failed attempt
TELL_NS = 200 * MS
TICK_S = 0.02      # of the writer
FIRST_S = 5        # so long the one that attaches waits for the one that asks from outside
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
        self.cut_at = 0  # what the attached one asked for before is trusted no more
        self.claims = {}  # (token, whether the attached one was told) -> (deadline, send): the latest

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
            ends = way in OF_ATTACHMENT
            if leader and not (ends and send <= self.cut_at) \
                    and deadline > self.claims.get((token, ends), (0,))[0]:
                self.claims[token, ends] = deadline, send
            if run and (run["said"], run["token"]) == (said, token) \
                    and not (leader and receive > run["deadline"]) \
                    and not (ends and run["last_send"] <= self.cut_at < send):
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

    def resigned(self):
        with self.lock:
            self.say("resigned", boottime_ns())

    def cut(self):
        """From here on nothing counts that the attached one asked for before."""
        with self.lock:
            self.cut_at = boottime_ns()
            self.claims = {key: claim for key, claim in self.claims.items() if not key[1]}
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

    def __init__(self, teller, spec, attachment=None):
        self.teller = teller
        self.target = Target(spec)
        self.way = spec["way"]
        self.attachment = self.owner = attachment if self.way == "socket" else None
        self.of = 0         # the attachment after which the connection was made, perhaps

    def connect(self):
        t = self.target
        t.connect()
        t.socket.settimeout(30)
        if self.attachment:
            # Looked up when the connection is there: connections are taken in their order.
            self.of = self.attachment.number
            self.attachment.outside.set()

    def way_now(self):
        attached = self.attachment and self.of and self.of == self.attachment.number
        return self.way + ", attached" if attached else self.way

    def lost(self):
        self.target.close(0)
        if self.attachment:
            self.attachment.outside.clear()

    def __call__(self):
        t = self.target
        way = self.way_now()
        try:
            if t.socket is None:
                self.connect()
                way = self.way_now()
            if way not in OF_ATTACHMENT:
                t.ask()
            elif not self.owner.let_ask(t):
                time.sleep(AGAIN_S)
                return
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
            self.lost()
            return
        except OSError:
            self.lost()
            now = boottime_ns()
            self.teller.answer(way, "none", 0, now, now, 0)
            time.sleep(AGAIN_S)
            return
        said, a, goes_on = parsed
        if not goes_on:
            self.lost()
        said = "leader" if a.leader else said if said != "leader" else "none"
        self.teller.answer(way, said, a.token, a.send, a.receive, a.deadline)
        time.sleep(PAUSE_S)


class AttachedAsker(Asker):
    """Asks on a connection made after the attachment, while that lasts."""

    def __init__(self, teller, spec, attachment):
        super().__init__(teller, {**spec, "way": "socket"})
        self.way = "attached"
        self.owner = attachment

    def __call__(self):
        if not self.owner.standing or self.of != self.owner.standing:
            self.target.close(0)
            self.of = self.owner.standing
        if self.of:
            super().__call__()
        else:
            time.sleep(AGAIN_S)


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
        self.tries = 0
        self.number = 0     # of the attachment that is there or on its way; 0: none
        self.standing = 0   # the same, from its `ok` on
        self.outside = threading.Event()  # somebody asks on a connection made before
        self.asking = threading.Lock()
        self.resigning = False

    def let_ask(self, target):
        """Not between a resignation and its `ok`: what is asked then may overtake it."""
        with self.asking:
            if not self.resigning:
                target.ask()
            return not self.resigning

    def __call__(self):
        self.outside.wait(FIRST_S)
        self.tries += 1
        self.number = self.tries
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.connect(self.path)
            s.sendall(b"attach\n")
            lines = s.makefile("rb")
            if lines.readline() == b"ok\n":
                self.socket = s
                self.standing = self.number
                for line in lines:
                    self._heard(line.split())
        except OSError:
            pass
        self.socket = None
        self.standing = self.number = 0
        self.resigning = False
        s.close()
        time.sleep(0.05)

    def _heard(self, words):
        if words[:1] == [b"revoke"]:
            time.sleep(int(words[2]) / 1e3 * self.rng.choice((0, 0, 0.1, 0.5, 0.9, 1.2)))
            self.teller.cut()
            self.socket.sendall(b"done %s\n" % words[1])
        elif words == [b"ok"]:
            self.resigning = False

    def resign(self):
        s = self.socket
        if s is None:
            return
        with self.asking:
            self.resigning = True
            self.teller.cut()
        try:
            s.sendall(b"resign\n")
        except OSError:
            return  # it has gone
        self.teller.resigned()


class Writer:
    def __init__(self, teller, replica, resource, guard, rng):
        self.teller, self.replica, self.rng = teller, replica, rng
        self.resource, self.guard = resource, guard
        self.client = None
        self.due = []       # (when, token, deadline, asked at, whether the attached one was told)
        self.old = []       # tokens

    def __call__(self):
        time.sleep(TICK_S)
        now = boottime_ns()
        with self.teller.lock:
            claims = dict(self.teller.claims)
            for key in [k for k, c in claims.items() if c[0] < now]:
                del self.teller.claims[key]
                self.old = [t for t in self.old if t != key[0]][-OLD_KEPT:] + [key[0]]
        for (token, ends), (deadline, send) in claims.items():
            if deadline > now and self.rng.random() < 0.5:
                self._plan(now, token, deadline, send, ends)
        if self.old and self.rng.random() < 0.02:
            self._write(self.rng.choice(self.old), 0, 0, False)
        while self.due and self.due[0][0] <= boottime_ns():
            self._write(*heapq.heappop(self.due)[1:])
        self.teller.flush()

    def _plan(self, now, token, deadline, send, ends):
        left = deadline - now
        when = now + self.rng.choices((0, self.rng.random() * left,
                                       left + self.rng.random() * 3 * S), (6, 2, 2))[0]
        heapq.heappush(self.due, (int(when), token, deadline, send, ends))

    def _write(self, token, deadline, asked, ends):
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
        trusted = receive <= deadline and not (ends and asked <= self.teller.cut_at)
        self.teller.write(token, highest == 0, trusted, send, receive, highest)


def main(spec):
    rng = random.Random(spec["seed"])
    teller = Teller()
    name = {"replica": spec["replica"], "election": spec["election"]}
    attachment = Attachment(teller, spec["socket"], rng)
    if spec["attach"]:
        forever(attachment)
        forever(AttachedAsker(teller, {**name, "address": spec["socket"]}, attachment))
    forever(Asker(teller, {**name, "way": "socket", "address": spec["socket"]}, attachment))
    if spec["http"]:
        forever(Asker(teller, {**name, "way": "http", "address": ["127.0.0.1", spec["http"]]}))
    forever(Reader(teller, spec["page"]))
    forever(Writer(teller, spec["replica"], spec["resource"], spec["guard"], rng))
    for line in sys.stdin:
        if line.strip() == "resign":
            attachment.resign()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
