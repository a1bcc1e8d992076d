"""A client for Redis, as small as it can be: one command, one reply."""

import socket


class RespError(Exception):
    pass


class Resp:
    def __init__(self, port=None, host="127.0.0.1", timeout=5.0, path=None):
        """`path`: by its Unix socket."""
        if path is None:
            self._socket = socket.create_connection((host, port), timeout=timeout)
        else:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(timeout)
            self._socket.connect(path)
        self._file = self._socket.makefile("rb")

    def close(self):
        self._file.close()
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, *args):
        self.send(*args)
        return self.read()

    def send(self, *args):
        out = [b"*%d\r\n" % len(args)]
        for arg in args:
            data = arg if isinstance(arg, bytes) else str(arg).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self._socket.sendall(b"".join(out))

    def read(self):
        reply = self._read()
        if isinstance(reply, RespError):
            raise reply
        return reply

    def _read(self):
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("connection closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RespError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._file.read(size + 2)[:-2].decode("utf-8", "replace")
        if kind == b"*":
            return None if int(rest) < 0 else [self._read() for _ in range(int(rest))]
        raise ConnectionError(f"not RESP: {line!r}")
