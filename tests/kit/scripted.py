"""A server that speaks just enough of Redis' protocol to be led on, and answers our scripts with
whatever the test wants."""

import collections
import socket
import threading
import time

from kit.clock import boottime_ns
from kit.scripts import NAMES, is_script

SERVER = "run:replid"


def bulk(*texts):
    """An array of strings, as all answers of our scripts are."""
    parts = [b"*%d\r\n" % len(texts)]
    for text in texts:
        data = str(text).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Scripted:
    def __init__(self):
        self.greeting = b""  # said to each new connection, unasked
        self.answers = {}    # script -> bytes, instead of the right answer
        self.seen = collections.defaultdict(list)  # script -> when each call came
        self.confirmed_ns = 0  # when the last call came that was answered rightly
        self.accepted = 0
        self.token = 0
        self._kinds = {name: is_script(name) for name in NAMES}
        self._connections = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        self.accepted += 1
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(self.greeting)
            requests = connection.makefile("rb")
            while words := self._read(requests):
                connection.sendall(self._answer(words))
        except (OSError, ValueError):
            pass
        finally:
            self._connections.discard(connection)
            connection.close()

    @staticmethod
    def _read(requests):
        head = requests.readline()
        if not head.startswith(b"*"):
            return None
        words = []
        for _ in range(int(head[1:])):
            size = int(requests.readline()[1:])
            words.append(requests.read(size + 2)[:-2])
        return words

    def _answer(self, words):
        name = words[0].upper()
        if name in (b"EVAL", b"EVALSHA"):
            return self._script(words)
        if name == b"SUBSCRIBE":
            return b"".join(b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n" % (len(c), c, i + 1)
                            for i, c in enumerate(words[1:]))
        if name == b"ROLE":
            return b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
        if name == b"INFO":
            return b"$0\r\n\r\n"
        return b"+OK\r\n"

    def _script(self, words):
        kind = next(k for k, fits in self._kinds.items() if fits(words[1]))
        with self._lock:  # one script at a time, like a real one
            came_ns = boottime_ns()
            answer = self.answers.get(kind)
            if answer is None:
                answer = self._right(kind, raises=kind == "renew" and words[6] == b"1")
                self.confirmed_ns = came_ns
            # Noted when what it is answered with is certain.
            self.seen[kind].append(came_ns)
            return answer

    def _right(self, kind, raises):
        """What a server says that has nothing to object."""
        if kind == "acquire" or raises:
            self.token = max(self.token + 1, time.time_ns() // 1_000_000)
        common = ("yes", self.token, 1000, time.time_ns() // 1000, SERVER, 0)
        return bulk(*common, "clean", "none", 0) if kind == "acquire" else bulk(*common)

    def cut(self):
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self._listener.close()
        self.cut()
