"""A client for PostgreSQL, as small as it can be: trusted, one text of statements, its last row."""

import socket
import struct


class PgError(Exception):
    """str() is the SQLSTATE and the message."""


class PgWire:
    def __init__(self, port, role, database, timeout=30.0):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._file = self._socket.makefile("rb")
        words = b"".join(w.encode() + b"\0" for w in ("user", role, "database", database))
        body = struct.pack("!i", 196608) + words + b"\0"
        self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self._until_ready()

    def ask(self, sql):
        """The first column of the last row, as text; None: there was no row."""
        body = sql.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        return self._until_ready()

    def _until_ready(self):
        value, error = None, None
        while True:
            head = self._file.read(5)
            if len(head) < 5:
                raise ConnectionError("PostgreSQL has gone")
            kind, (size,) = head[:1], struct.unpack("!i", head[1:])
            body = self._file.read(size - 4)
            if kind == b"D":
                (length,) = struct.unpack("!i", body[2:6])
                value = None if length < 0 else body[6:6 + length].decode()
            elif kind == b"E":
                fields = {f[:1]: f[1:].decode() for f in body.split(b"\0") if f}
                error = PgError(f"{fields[b'C']} {fields[b'M']}")
            elif kind == b"Z":
                if error:
                    raise error
                return value

    def close(self):
        self._file.close()
        self._socket.close()
