"""A Redis server by script: it says what a test tells it to say, and keeps what it was asked.

Left alone it is a master that grants, renews and releases one lease for each key. `say` replaces
the answer to one kind of request: a command's name, or `acquire`, `renew`, `release` for the three
scripts (told apart by the number of their arguments), or `greeting` for what comes unasked.
"""

import dataclasses
import socket
import threading
import time

from kit.clock import boottime_ns

MUTE = object()   # no answer
CLOSE = object()  # the connection is closed
SCRIPTS = {12: "acquire", 11: "renew", 10: "release"}


class Cut(bytes):
    """These bytes, and the connection is closed."""


def bulk(text):
    data = text if isinstance(text, bytes) else str(text).encode()
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(*texts):
    return b"*%d\r\n" % len(texts) + b"".join(map(bulk, texts))


def error(text):
    return b"-" + text.encode() + b"\r\n"


def message(channel, text):
    return array("message", channel, text)


@dataclasses.dataclass
class Asked:
    """One request as it came."""
    connection: int
    at: int
    kind: str  # the command, or the script
    args: list


class FakeRedis:
    def __init__(self, port=0):
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.asked = []
        self.accepted = 0
        self._answers = {}
        self._leases = {}  # key: (nonce, token, identity, ttl)
        self._token = int(time.time() * 1000)
        self._open = {}  # number of the connection: its socket
        self._subscribers = set()
        self._lock = threading.RLock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    # What a test does.
    def say(self, kind, answer):
        """The answer from now on: bytes, a Cut, MUTE, CLOSE, or a function of the request's
        arguments that gives one of them or None for the usual answer. None: the usual answer."""
        with self._lock:
            self._answers[kind] = answer

    def count(self, *kinds, since=0):
        return sum(a.kind in kinds and a.at >= since for a in list(self.asked))

    def kinds(self):
        return {a.kind for a in list(self.asked)}

    def push(self, data):
        """To all that have subscribed; how many that are."""
        with self._lock:
            subscribers = [self._open[n] for n in self._subscribers if n in self._open]
        for s in subscribers:
            self._send(s, data)
        return len(subscribers)

    def drop_lease(self):
        with self._lock:
            self._leases.clear()

    def cut(self):
        """Closes all connections."""
        with self._lock:
            sockets = list(self._open.values())
        for s in sockets:
            self._shut(s)

    def close(self):
        self._shut(self._listener)
        self._listener.close()
        self.cut()

    # How it works.
    @staticmethod
    def _shut(s):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    @staticmethod
    def _send(s, data):
        try:
            s.sendall(data)
        except OSError:
            pass

    def _accept(self):
        while True:
            try:
                s, _ = self._listener.accept()
            except OSError:
                return
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.accepted += 1
                number = self.accepted
                self._open[number] = s
            threading.Thread(target=self._serve, args=(number, s), daemon=True).start()

    def _serve(self, number, s):
        try:
            with s, s.makefile("rb") as stream:
                going = self._give(s, self._answer("greeting", []) or b"")
                while going:
                    args = self._read(stream)
                    going = args is not None and self._serve_one(number, s, args)
        except (OSError, ValueError):
            pass
        with self._lock:
            self._open.pop(number, None)
            self._subscribers.discard(number)

    def _serve_one(self, number, s, args):
        name = args[0].upper()
        kind = SCRIPTS.get(len(args), name) if name in ("EVALSHA", "EVAL") else name
        self.asked.append(Asked(number, boottime_ns(), kind, args))
        answer = self._answer(kind, args)
        if answer is None:
            answer = self.usual(kind, args)
            if name == "SUBSCRIBE":
                with self._lock:
                    self._subscribers.add(number)
        return self._give(s, answer)

    @staticmethod
    def _read(stream):
        line = stream.readline()
        if not line.startswith(b"*"):
            return None
        args = []
        for _ in range(int(line[1:])):
            size = int(stream.readline()[1:])
            args.append(stream.read(size + 2)[:-2].decode("utf-8", "replace"))
        return args

    def _answer(self, kind, args):
        with self._lock:
            answer = self._answers.get(kind)
        return answer(args) if callable(answer) else answer

    def _give(self, s, answer):
        """False: this connection is over."""
        if answer is CLOSE:
            return False
        if answer is not MUTE:
            s.sendall(answer)
        return not isinstance(answer, Cut)

    def usual(self, kind, args):
        """The answer to that request where nothing else is said."""
        if kind in SCRIPTS.values():
            with self._lock:
                return self._script(kind, args[3], args[5:])
        if kind == "ROLE":
            return b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
        if kind == "INFO":
            return bulk("# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n")
        if kind == "SUBSCRIBE":
            return b"".join(b"*3\r\n" + bulk("subscribe") + bulk(channel) + b":%d\r\n" % (i + 1)
                            for i, channel in enumerate(args[1:]))
        return b"+OK\r\n"

    def _script(self, kind, key, args):
        now = time.time()
        lease = self._leases.get(key)
        if lease and lease[4] <= now:
            lease = None
        nonce = args[0]
        if kind == "acquire" and not lease and args[5] == "1":
            self._token += 1
            lease = (nonce, self._token, args[1], int(args[2]), now + int(args[2]) / 1000)
        if not lease:
            self._leases.pop(key, None)
            return array("free", *self._tail(self._token, 0))
        if lease[0] != nonce:
            left = int((lease[4] - now) * 1000)
            return array("held", *self._tail(lease[1], lease[3]), lease[0], lease[2], left, "0")
        if kind == "release":
            self._leases.pop(key, None)
        else:
            self._leases[key] = (*lease[:4], now + lease[3] / 1000)
        prior = ("none", "no-record", "0") if kind == "acquire" else ()
        return array("yes", *self._tail(lease[1], lease[3]), *prior)

    def _tail(self, token, ttl):
        return token, ttl, int(time.time() * 1e6), "fake:fake", "0"
