"""A server that speaks PostgreSQL's protocol up to the first query, and then does what no real one
can be made to do."""

import contextlib
import socket
import struct
import threading


def message(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


READY = message(b"Z", b"I")
GREETING = (message(b"R", struct.pack("!I", 0)) + message(b"S", b"server_version\0" b"15.0\0")
            + message(b"K", struct.pack("!II", 1, 2)) + READY)
COPY_IN = message(b"G", b"\0\0\0")
COPY_OUT = message(b"H", b"\0\0\0")


def error(text, state=b"XX000"):
    return message(b"E", b"SERROR\0VERROR\0C" + state + b"\0M" + text + b"\0\0")


class OddPostgres:
    """`reply`: what it answers to each query; bytes."""

    def __init__(self, reply):
        self.reply = reply
        self.queries = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],),
                                 daemon=True).start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError, struct.error):
            while True:
                size = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))[0]
                body = client.recv(size - 4, socket.MSG_WAITALL)
                if struct.unpack("!I", body[:4])[0] not in (80877103, 80877104):
                    break
                client.sendall(b"N")  # neither TLS nor GSS
            client.sendall(GREETING)
            while client.recv(65536):
                self.queries += 1
                client.sendall(self.reply)

    def close(self):
        self.listener.close()
