"""The guards, each on a real resource: how a writer uses it, and what has come of it.

    prepared = fence.prepare(token)             before the pause, where the guard compares by itself
    fence.write(prepared, token, n, guarded)    True: accepted
    fence.current(guarded)                      the token of what is there now
"""

import http.client
import os
import sys
import threading

from kit.pg_wire import PgError, PgWire
from kit.resp import Resp, RespError

GUARDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sidecar", "clients",
                      "guards")
sys.path.insert(0, GUARDS)
from file_fence import FileFence, Stale as StaleFile  # noqa: E402
from idempotent import effect_key, send  # noqa: E402
from object_fence import ObjectFence, Stale as StaleObject  # noqa: E402


def read_guard(name):
    with open(os.path.join(GUARDS, name), encoding="utf-8") as f:
        return f.read()


def row_update(total, token, row):
    """The statement for a row's column, in the words of the file."""
    lines = read_guard("postgres.sql").split("--   UPDATE", 1)[1].split(";", 1)[0]
    sql = "UPDATE" + lines.replace("\n--", "\n")
    return sql.replace("$1", str(total)).replace("$2", str(token)).replace("$3", str(row))


class _Connected:
    """One connection a thread."""

    def __init__(self):
        self._local = threading.local()

    def _mine(self):
        if not hasattr(self._local, "connection"):
            self._local.connection = self._connect()
        return self._local.connection

    def prepare(self, _token):
        pass


class PostgresFence(_Connected):
    election, table = "a", "written"

    def __init__(self, port):
        super().__init__()
        self._port = int(port)
        self._paused = False

    def _connect(self):
        return PgWire(self._port, "super", "app")

    @staticmethod
    def create(postgres):
        postgres.sql(read_guard("postgres.sql"))
        for table in ("written", "written_open"):
            postgres.sql(f"CREATE TABLE {table} (guarded boolean PRIMARY KEY, token bigint)")
            postgres.sql(f"INSERT INTO {table} VALUES (true, 0), (false, 0)")
        postgres.sql("CREATE TABLE bare (total bigint)")
        postgres.sql("INSERT INTO bare VALUES (0)")
        postgres.sql("CREATE TABLE invoice (id int PRIMARY KEY, total bigint, fence_token bigint"
                     " NOT NULL DEFAULT 0)")
        postgres.sql("INSERT INTO invoice SELECT n, 0 FROM generate_series(0, 49) n")

    def _sql(self, token, guarded):
        fence = f"SELECT gavel_fence('{self.election}', {token});" if guarded else ""
        return f"{fence} UPDATE {self.table} SET token = {token} WHERE guarded = {guarded};"

    def write(self, _prepared, token, _n, guarded):
        try:
            self._mine().ask(f"BEGIN; {self._sql(token, guarded)} COMMIT")
            return True
        except PgError as e:
            assert "stale fencing token" in str(e), e
            self._mine().ask("ROLLBACK")
            return False

    def current(self, guarded):
        return int(self._mine().ask(f"SELECT token FROM {self.table} WHERE guarded = {guarded}"))


class OpenFence(PostgresFence):
    """The first write of those that are checked is paused in its transaction, after the fence. The
    server ends it; until then the next leader waits."""
    election, table = "open", "written_open"

    def prepare(self, token):
        if self._paused:
            return None
        self._paused = True
        session = self._connect()
        session.ask(f"SET idle_in_transaction_session_timeout = '200ms'; BEGIN; {self._sql(token, True)}")
        return session

    def write(self, prepared, token, n, guarded):
        self._paused = False
        if not prepared:
            return super().write(None, token, n, guarded)
        try:
            prepared.ask("COMMIT")
            return True
        except (PgError, OSError):
            return False
        finally:
            prepared.close()


class RowFence(PostgresFence):
    """Each write to a row of its own, which has the column."""

    def write(self, _prepared, token, n, guarded):
        if guarded:
            return self._mine().ask(row_update(token, token, n) + " RETURNING 1") == "1"
        return self._mine().ask(f"UPDATE bare SET total = {token} RETURNING 1") == "1"

    def current(self, guarded):
        """All rows have been written by the last leader."""
        return int(self._mine().ask(f"SELECT min(total) FROM {'invoice' if guarded else 'bare'}"))


class RedisFence(_Connected):
    def __init__(self, port):
        super().__init__()
        self._port = int(port)
        self._script = read_guard("redis.lua")

    def _connect(self):
        return Resp(self._port, timeout=30.0)

    def write(self, _prepared, token, _n, guarded):
        try:
            if guarded:
                self._mine().call("EVAL", self._script, 2, "fence", "guarded", token, token)
            else:
                self._mine().call("SET", "unguarded", token)
            return True
        except RespError as e:
            assert str(e).startswith("STALE "), e
            return False

    def current(self, guarded):
        return int(self._mine().call("GET", "guarded" if guarded else "unguarded"))


class HttpFence:
    """Ports: the service behind the middleware, and the bare one."""

    def __init__(self, ports):
        self._guarded, self._bare = map(int, ports.split(","))

    def _request(self, method, guarded, token=None):
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._guarded if guarded else self._bare, timeout=30)
        headers = {"Fencing-Token": str(token)} if token else {}
        connection.request(method, "/", str(token) if token else None, headers)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, body

    def prepare(self, _token):
        pass

    def write(self, _prepared, token, _n, guarded):
        status, _ = self._request("PUT", guarded, token)
        assert status in (200, 412), status
        return status == 200

    def current(self, guarded):
        return int(self._request("GET", guarded)[1])


class ObjectStoreFence:
    """The comparison is made before the pause: what is late is the conditional write."""

    def __init__(self, port):
        self._port = int(port)
        self._store = ObjectFence("127.0.0.1", self._port, 30)

    def prepare(self, token):
        return self._store.look("/guarded", token)

    def write(self, prepared, token, _n, guarded):
        if not guarded:
            self._request("PUT", "/unguarded", str(token))
            return True
        try:
            body = str(token).encode()
            if not self._store.put_if("/guarded", body, token, prepared or
                                      self._store.look("/guarded", token)):
                self._store.put("/guarded", body, token)
            return True
        except StaleObject:
            return False

    def _request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        connection.request(method, path, body)
        body = connection.getresponse().read()
        connection.close()
        return body

    def current(self, guarded):
        if not guarded:
            return int(self._request("GET", "/unguarded"))
        content, token = self._store.get("/guarded")
        assert content == str(token).encode()
        return token


class FilesFence:
    def __init__(self, folder):
        self._fence = FileFence(folder + "/guarded")
        self._bare = folder + "/unguarded"

    def prepare(self, token):
        number, highest = self._fence.look()
        assert highest <= token
        return number

    def write(self, prepared, token, n, guarded):
        content = str(token).encode()
        if not guarded:
            with open(f"{self._bare}.{token}.{n}", "wb") as f:
                f.write(content)
            os.replace(f"{self._bare}.{token}.{n}", self._bare)
            return True
        try:
            if prepared is None or not self._fence.write_after(prepared, content, token):
                self._fence.write(content, token)
            return True
        except StaleFile:
            return False

    def current(self, guarded):
        if guarded:
            content, token = self._fence.read()
            assert content == str(token).encode()
            self._fence.tidy(older_than_s=300)  # longer than any pause
            return token
        with open(self._bare, "rb") as f:
            return int(f.read())


class Idempotent:
    """Refused means: known already. The effects of a round are the same whoever sends them."""

    def __init__(self, port):
        self._port = int(port)
        self.round = 0

    def prepare(self, _token):
        pass

    def write(self, _prepared, token, n, guarded):
        key = effect_key("salary", self.round, n) \
            if guarded else f"{self.round}/{token}/{n}"
        return send("127.0.0.1", self._port, "/guarded" if guarded else "/unguarded", key,
                    str(token), 30)


FENCES = {"postgres": PostgresFence, "rows": RowFence, "open": OpenFence,
          "redis": RedisFence, "http": HttpFence, "objects": ObjectStoreFence,
          "files": FilesFence, "idempotent": Idempotent}
