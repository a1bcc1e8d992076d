"""A TCP relay between sidecars and a server: freezes, drops a reply, switches the server."""

import selectors
import socket
import threading


class Relay:
    def __init__(self, backend_port):
        self.backend_port = backend_port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._pairs = set()
        self._closing = False
        self._open = threading.Event()  # cleared: frozen
        self._open.set()
        self._before_reply = None
        self.dropped = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def freeze(self):
        """Nothing passes in either direction, connections stay."""
        self._open.clear()

    def thaw(self):
        self._open.set()

    def drop_reply_when(self, condition):
        """The first reply for which the condition holds is thrown away, its connection closed."""
        with self._lock:
            self._before_reply = condition

    def switch(self, backend_port):
        """New connections go there, those that exist are closed."""
        self.backend_port = backend_port
        self.cut()

    def sever(self):
        """Nothing passes any more, new connections are refused at once."""
        self.switch(1)

    def cut(self):
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._shut(pair)

    def close(self):
        self._closing = True
        self._listener.close()
        self.thaw()
        self.cut()

    @staticmethod
    def _shut(pair):
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self):
        while not self._closing:
            try:
                client, _ = self._listener.accept()
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
        pair = (client, server)
        with self._lock:
            self._pairs.add(pair)
        try:
            self._copy(client, server)
        except OSError:
            pass
        finally:
            with self._lock:
                self._pairs.discard(pair)
            self._shut(pair)
            client.close()
            server.close()

    def _copy(self, client, server):
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(65536)
                    self._open.wait()
                    if not data or (key.fileobj is server and self._drops()):
                        return
                    key.data.sendall(data)

    def _drops(self):
        with self._lock:
            if self._before_reply is None or not self._before_reply():
                return False
            self._before_reply = None
            self.dropped += 1
            return True
