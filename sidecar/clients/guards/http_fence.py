"""A fence for an HTTP service, as WSGI middleware: a request with a lower Fencing-Token than the
highest that was seen gets 412, one without gets 428, and 413 or 411 one whose body is too long or of
unknown length.

    application = Fenced(application, "/var/lib/app/fence")

The highest token is kept in a file, synced before the request is let through. Requests that write are
handled one at a time: checked and then overtaken, one could take effect after a newer leader's. A body
is read before that, or a leader that is paused in the middle of it would keep its successor out. So
this is for one process with threads; several share a database, and its fence.
"""

import io
import os
import threading

SAFE = ("GET", "HEAD", "OPTIONS")
TOKEN_MOST = 10**14  # and 0 is what clients give who do not lead


class Fenced:
    def __init__(self, application, path, body_most=1 << 20):
        self._application, self._path, self._body_most = application, path, body_most
        self._lock = threading.Lock()
        try:
            with open(path, encoding="ascii") as f:
                self._highest = int(f.read())
        except FileNotFoundError:
            self._highest = 0

    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] in SAFE:
            return self._application(environ, start_response)
        token = environ.get("HTTP_FENCING_TOKEN", "")
        if not (token.isascii() and token.isdigit() and len(token) <= 15
                and 1 <= int(token) <= TOKEN_MOST):
            return self._refuse(start_response, "428 Precondition Required", "no Fencing-Token")
        length = environ.get("CONTENT_LENGTH") or "0"
        if "HTTP_TRANSFER_ENCODING" in environ or not (
                length.isascii() and length.isdigit()):
            return self._refuse(start_response, "411 Length Required", "no Content-Length")
        if int(length) > self._body_most:
            return self._refuse(start_response, "413 Content Too Large",
                                f"{self._body_most} bytes at most")
        body = environ["wsgi.input"].read(int(length))
        if len(body) < int(length):
            return self._refuse(start_response, "400 Bad Request", "the body ended early")
        environ["wsgi.input"] = io.BytesIO(body)
        with self._lock:
            if int(token) < self._highest:
                return self._refuse(start_response, "412 Precondition Failed",
                                    f"{self._highest} has been seen")
            if int(token) > self._highest:
                self._remember(int(token))
            # All of it within the lock, the lazy parts too.
            answer = self._application(environ, start_response)
            try:
                return list(answer)
            finally:
                getattr(answer, "close", lambda: None)()

    def _remember(self, token):
        with open(self._path + ".new", "w", encoding="ascii") as f:
            f.write(str(token))
            f.flush()
            os.fsync(f.fileno())
        os.replace(self._path + ".new", self._path)
        folder = os.open(os.path.dirname(self._path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # or a power cut could bring the old one back
        finally:
            os.close(folder)
        self._highest = token

    @staticmethod
    def _refuse(start_response, status, why):
        body = why.encode()
        start_response(status, [("Content-Type", "text/plain"),
                                ("Content-Length", str(len(body)))])
        return [body]
