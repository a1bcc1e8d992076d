"""Small servers for guards to be tried on, in threads of the test."""

import hashlib
import http.server
import re
import socketserver
import threading
import wsgiref.simple_server

from clients.fences import GUARDS  # noqa: F401  the guards can be imported after this

from http_fence import Fenced  # noqa: E402  isort: skip


class _Serving:
    def _serve(self, server):
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()
        self._servers = [*getattr(self, "_servers", []), server]
        return server.server_port

    def close(self):
        for server in self._servers:
            server.shutdown()
            server.server_close()


class _WsgiServer(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class _QuietWsgi(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Register:
    """A service that keeps what was PUT last."""

    def __init__(self):
        self.value = b"0"

    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] == "PUT":
            self.value = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        start_response("200 OK", [("Content-Length", str(len(self.value)))])
        return [self.value]


class Fences(_Serving):
    """The service behind the middleware, and one without it."""

    def __init__(self, folder):
        self.path = folder + "/fence"
        self.ports = [self._serve(wsgiref.simple_server.make_server(
            "127.0.0.1", 0, application, _WsgiServer, _QuietWsgi))
            for application in (Fenced(Register(), self.path), Register())]


class _HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Objects(_Serving):
    """An object store with conditional writes, as S3 has them."""

    def __init__(self):
        self.objects = {}  # path -> (etag, body); metadata is not kept, as some do not
        self.refused = 0   # by a condition
        self.lock = threading.Lock()
        outer = self

        class Handler(_Handler):
            def do_GET(self):
                found = outer.objects.get(self.path)
                if not found:
                    return self.reply(404)
                etag, body = found
                most = re.fullmatch("bytes=0-([0-9]+)", self.headers.get("Range", ""))
                if not most:
                    return self.reply(200, body, [("ETag", etag)])
                if not body:
                    return self.reply(416)
                return self.reply(206, body[:int(most[1]) + 1], [("ETag", etag)])

            def do_PUT(self):
                self.reply(outer.put(self.path, self.headers, self.body()))
        self.port = self._serve(_HttpServer(("127.0.0.1", 0), Handler))

    def put(self, path, headers, body):
        """The ETag is a digest of the content alone, as in S3."""
        with self.lock:
            found = self.objects.get(path)
            wants = headers.get("If-Match")
            if (wants and (not found or found[0] != wants)) \
                    or (headers.get("If-None-Match") == "*" and found):
                self.refused += 1
                return 412
            self.objects[path] = (f'"{hashlib.md5(body).hexdigest()}"', body)
            return 200


class Sink(_Serving):
    """Takes an effect once for each Idempotency-Key."""

    def __init__(self):
        self.keys = set()
        self.effects = {"/guarded": 0, "/unguarded": 0}
        self.lock = threading.Lock()
        outer = self

        class Handler(_Handler):
            def do_POST(self):
                self.body()
                with outer.lock:
                    key = self.path, self.headers["Idempotency-Key"]
                    known = key in outer.keys
                    outer.keys.add(key)
                    outer.effects[self.path] += not known
                self.reply(200 if known else 201)
        self.port = self._serve(_HttpServer(("127.0.0.1", 0), Handler))
