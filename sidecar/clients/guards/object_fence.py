"""A fence for an object store that has conditional writes (If-Match and If-None-Match, as S3 and
Azure have them): the token is kept in the object, and a write replaces only what was compared.

    store = ObjectFence("storage.local", 9000)
    store.put("/bucket/report", b"...", token)       # Stale: a newer leader has written it
    store.get("/bucket/report")                      # (b"...", token)

Whatever comes between the comparison and the write changes the ETag, and the write is refused by the
store itself; then it is compared anew. The token is the first line of the object and not metadata:
stores drop that or rename it, and S3's ETag is a digest of the content alone, so that a newer leader that
wrote the same content again would leave the ETag as it was. An object that begins otherwise is refused.

What is written depends on what was read? Then condition = look() before get(), and put_if(condition):
False if anything was written in between; read again. Do not delete what is fenced: its token goes with it,
and a late write would find nothing to compare with. Write an empty one.
"""

import http.client
import random
import re
import time

TOKEN_MOST = 10**14  # and 0 is what clients give who do not lead
TRIES = 1000
FIRST_LINE = re.compile(rb"([1-9][0-9]{0,14})\n")


class Stale(Exception):
    """Another leader, with a greater token, has written the object."""


class ObjectFence:
    def __init__(self, host, port, timeout=10.0):
        self._host, self._port, self._timeout = host, port, timeout

    def _request(self, method, path, body=None, headers=(), most=None):
        """The answer, and its body or so many bytes of it."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.request(method, path, body, dict(headers))
            reply = connection.getresponse()
            return reply, reply.read(most)
        finally:
            connection.close()

    def look(self, path, token):
        """The condition under which this token may write; raises Stale."""
        if not 1 <= token <= TOKEN_MOST:
            raise ValueError(f"no fencing token: {token}")
        # A store that knows no ranges sends all of it; no more is read.
        reply, start = self._request("GET", path, headers={"Range": "bytes=0-15"}, most=16)
        if reply.status == 404:
            return {"If-None-Match": "*"}
        if reply.status not in (200, 206, 416):  # 416: it is empty
            raise OSError(f"GET {path}: {reply.status}")
        found = FIRST_LINE.match(start) if reply.status != 416 else None
        if not found or not reply.getheader("ETag"):
            raise ValueError(f"{path} has no fencing token in its first line, or no ETag")
        if reply.getheader("ETag").startswith("W/"):
            raise ValueError(f"{path} has a weak ETag, which no write can be held to: does a proxy compress?")
        if int(found[1]) > token:
            raise Stale(path)
        return {"If-Match": reply.getheader("ETag")}

    def get(self, path):
        reply, content = self._request("GET", path)
        if reply.status != 200:
            raise OSError(f"GET {path}: {reply.status}")
        token, body = content.split(b"\n", 1)
        return body, int(token)

    def put(self, path, body, token):
        for _ in range(TRIES):
            if self.put_if(path, body, token, self.look(path, token)):
                return
            time.sleep(random.uniform(0, 0.01))
        raise OSError(f"PUT {path}: refused {TRIES} times, although nothing newer is there")

    def put_if(self, path, body, token, condition):
        """False: it was written by somebody in between."""
        reply, _ = self._request("PUT", path, b"%d\n" % token + body, condition)
        if reply.status in (409, 412):
            return False
        if reply.status not in (200, 201, 204):
            raise OSError(f"PUT {path}: {reply.status}")
        return True
