"""A TCP relay between sidecars and a server: freezes, delays, holds what it is told to, drops a
reply, switches the server."""

import collections
import random
import selectors
import socket
import threading

from kit.clock import MS, boottime_ns

REQUEST, REPLY = "request", "reply"
TURN_S = 0.002  # how often what waits is looked at


class _Pair:
    """A client's connection and the one to the server that belongs to it."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        self.held = False
        self.waiting = {REQUEST: collections.deque(), REPLY: collections.deque()}

    def shut(self):
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Relay:
    def __init__(self, backend_port, host="127.0.0.1", port=0, device=None):
        """`device`: serves who comes by that link alone, so that each link can have a relay of its
        own at one address. For root."""
        self.backend_port = backend_port
        self._device = device
        self._place = self._bound((host, port))  # keeps the port while nobody listens
        self.port = self._place.getsockname()[1]
        self._lock = threading.Lock()
        self._pairs = set()
        self._closing = False
        self._frozen = set()  # directions
        self._lost_of_100 = 0
        self._delay_ns = {REQUEST: 0, REPLY: 0}
        self._before_reply = None
        self._to_hold = None
        self.dropped = 0
        self.holding = 0  # requests held by hold_request_when, since the last thaw
        self.tap = None   # tap(direction, data, arrived_ns): is shown all that comes in
        self._refusing = False
        self._listen()

    def _bound(self, place):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._device:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._device.encode())
        s.bind(place)
        return s

    def _listen(self):
        self._listener = self._bound(self._place.getsockname())
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def freeze(self, directions=(REQUEST, REPLY)):
        """Nothing passes in these directions, connections stay. None: all pass again."""
        self._frozen = set(directions)

    def lose(self, percent):
        """From now on so many of what comes in, on either way, are lost with their connection."""
        self._lost_of_100 = percent

    def freeze_connections(self):
        """The same for the connections that there are now, whose number is returned; new ones
        pass."""
        with self._lock:
            for pair in self._pairs:
                pair.held = True
            return len(self._pairs)

    def thaw_connections(self):
        with self._lock:
            for pair in self._pairs:
                pair.held = False

    def hold_request_when(self, condition):
        """The first request whose bytes meet the condition stays here, and so does all that comes
        after it on its connection; other connections pass."""
        with self._lock:
            self._to_hold = condition

    def thaw(self):
        """All goes on, in order: what a client sent that has gone by now arrives too."""
        with self._lock:
            self._to_hold = None
            self.holding = 0
        self.thaw_connections()
        self._frozen = set()

    def delay(self, request_ms=0, reply_ms=0):
        """From now on what comes in passes that much later."""
        self._delay_ns = {REQUEST: request_ms * MS, REPLY: reply_ms * MS}

    def drop_reply_when(self, condition):
        """The first reply for which the condition holds is thrown away, its connection closed."""
        with self._lock:
            self._before_reply = condition

    def switch(self, backend_port):
        """New connections go there, those that exist are closed."""
        self.backend_port = backend_port
        self.cut()

    def sever(self):
        """Nothing passes any more, new connections are closed at once."""
        self.switch(1)

    def refuse(self):
        """Nobody listens: who connects is refused by the kernel. All connections are closed."""
        self._refusing = True
        self._close_listener()
        self.cut()

    def welcome(self):
        """After refuse()."""
        self._refusing = False
        self._listen()

    def _close_listener(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts, and holds it open
        except OSError:
            pass
        self._listener.close()

    def cut(self):
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.shut()

    def close(self):
        self._closing = True
        self._close_listener()
        self._place.close()
        self.thaw()
        self.cut()

    def _accept(self, listener):
        while not self._closing:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.backend_port), timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = _Pair(client, server)
        with self._lock:
            self._pairs.add(pair)
        try:
            if not self._refusing:
                self._copy(pair)
        except OSError:
            pass
        finally:
            with self._lock:
                self._pairs.discard(pair)
            pair.shut()
            client.close()
            server.close()

    def _copy(self, pair):
        with selectors.DefaultSelector() as ready:
            ready.register(pair.client, selectors.EVENT_READ, REQUEST)
            ready.register(pair.server, selectors.EVENT_READ, REPLY)
            while True:
                waits = any(pair.waiting.values())
                for key, _ in ready.select(TURN_S if waits else None):
                    self._take(ready, pair, key)
                if not all([self._give(pair, REQUEST, pair.server),
                            self._give(pair, REPLY, pair.client)]):
                    return

    def _take(self, ready, pair, key):
        """Bytes that came in, none at the end, wait until they may pass."""
        try:
            data = key.fileobj.recv(65536)
        except OSError:
            data = b""
        now = boottime_ns()
        if not data:
            ready.unregister(key.fileobj)
        elif self.tap:
            self.tap(key.data, data, now)
        if key.data == REQUEST and data and self._to_hold:
            with self._lock:
                if self._to_hold and self._to_hold(data):
                    self._to_hold = None
                    self.holding += 1
                    pair.held = True
        pair.waiting[key.data].append((now + self._delay_ns[key.data], data))

    def _give(self, pair, direction, to):
        """Passes on what is due. False: the connection is over."""
        waiting = pair.waiting[direction]
        while waiting and direction not in self._frozen and not pair.held \
                and waiting[0][0] <= boottime_ns():
            _, data = waiting.popleft()
            if not data or (direction == REPLY and self._drops()):
                return False
            if self._lost_of_100 and random.randrange(100) < self._lost_of_100:
                return False
            to.sendall(data)
        return True

    def _drops(self):
        with self._lock:
            if self._before_reply is None or not self._before_reply():
                return False
            self._before_reply = None
            self.dropped += 1
            return True
