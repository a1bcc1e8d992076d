"""What each guard says to whom: order, equal tokens, strange ones."""

import os
import threading
import time

import pytest

from clients.fences import (FileFence, ObjectFence, StaleFile, StaleObject, effect_key, read_guard,
                            row_update)
from clients.resources import Objects, Register, Sink
from kit.pg_wire import PgError, PgWire
from kit.resp import RespError

import object_fence
from http_fence import Fenced
from idempotent import send


def test_postgres(postgres):
    postgres.sql(read_guard("postgres.sql"))
    postgres.sql(read_guard("postgres.sql"))  # again does no harm
    postgres.sql("CREATE TABLE invoice (id int PRIMARY KEY, total int, fence_token bigint)")
    postgres.sql("INSERT INTO invoice VALUES (1, 0, 5)")
    session = PgWire(postgres.port, "super", "app")
    for token in (5, 5, 1796157414879):
        session.ask(f"BEGIN; SELECT gavel_fence('a', {token}); COMMIT")
    with pytest.raises(PgError, match="55000 stale fencing token 1796157414878 for a"):
        session.ask("BEGIN; SELECT gavel_fence('a', 1796157414878); UPDATE invoice SET total = 9;"
                    " COMMIT")
    session.ask("ROLLBACK")
    session.ask("BEGIN; SELECT gavel_fence('b', 1); COMMIT")  # another election
    assert session.ask("SELECT total FROM invoice") == "0"
    # The column of a row, in the words of the file; a row that has none yet takes the first write.
    session.ask("ALTER TABLE invoice DROP COLUMN fence_token")
    add = [x[5:] for x in read_guard("postgres.sql").splitlines() if x.startswith("--   ALTER")]
    session.ask(add[0])
    for total, token, written in ((6, 0, False), (6, -5, False), (6, "NULL", False),
                                  (6, 10**14 + 1, False), (6, 9 * 10**18, False), (7, 5, True),
                                  (8, 4, False), (9, 6, True), (10, 10**14, True)):
        session.ask(row_update(total, token, 1))
        assert (session.ask("SELECT total FROM invoice") == str(total)) == written, (total, token)
    session.close()


def test_postgres_a_new_leader_that_raises_the_fence_before_it_reads_loses_nothing(postgres):
    postgres.sql(read_guard("postgres.sql"))
    postgres.sql("CREATE TABLE account (balance int)")
    postgres.sql("INSERT INTO account VALUES (100)")
    old, new = (PgWire(postgres.port, "super", "app") for _ in range(2))
    old.ask("SELECT gavel_fence('a', 5)")
    late = "BEGIN; SELECT gavel_fence('a', 5); UPDATE account SET balance = balance - 30; COMMIT"
    new.ask("SELECT gavel_fence('a', 6)")
    read = int(new.ask("SELECT balance FROM account"))
    with pytest.raises(PgError, match="stale"):
        old.ask(late)
    new.ask(f"BEGIN; SELECT gavel_fence('a', 6); UPDATE account SET balance = {read} - 10; COMMIT")
    assert new.ask("SELECT balance FROM account") == "90"


@pytest.mark.parametrize("token", ["0", "-5", "NULL", "100000000000001", "9223372036854775807"])
def test_postgres_what_is_no_token_shuts_nobody_out(postgres, token):
    postgres.sql(read_guard("postgres.sql"))
    session = PgWire(postgres.port, "super", "app")
    with pytest.raises(PgError, match="22023 no fencing token"):
        session.ask(f"SELECT gavel_fence('a', {token})")
    session.ask("SELECT gavel_fence('a', 1)")
    session.close()


def test_postgres_a_transaction_that_is_under_way_keeps_others_out(postgres):
    postgres.sql(read_guard("postgres.sql"))
    old, new = (PgWire(postgres.port, "super", "app") for _ in range(2))
    old.ask("BEGIN; SELECT gavel_fence('a', 5)")
    order = []

    def newer():
        new.ask("BEGIN; SELECT gavel_fence('a', 6); COMMIT")
        order.append("new")
    thread = threading.Thread(target=newer)
    thread.start()
    thread.join(0.2)
    order.append("old")
    old.ask("COMMIT")
    thread.join(20)
    assert order == ["old", "new"]
    with pytest.raises(PgError, match="stale"):
        old.ask("SELECT gavel_fence('a', 5)")


def test_redis_compares_digits_and_not_doubles(redis):
    script = read_guard("redis.lua")

    def put(token, value="x"):
        return redis.cli("EVAL", script, 2, "fence", "key", token, value)
    # As doubles all of these would be equal; as plain text 10 would be less than 9.
    for token in ("9", "10", "10", "99999999999998", "99999999999999", "100000000000000"):
        assert put(token, token) == "OK"
        assert redis.cli("GET", "key") == token
    for token in ("99999999999999", "99", "099999999999999"):
        with pytest.raises(RespError, match="^STALE 100000000000000 has been seen"):
            put(token)
    assert redis.cli("GET", "key") == "100000000000000"


def test_redis_what_is_no_token_shuts_nobody_out(redis):
    script = read_guard("redis.lua")
    strange = ("", "0", "00", "-1", "1e30", "0x10", "1 ", "100000000000001", "999999999999999", "1" * 40)
    for token in strange:
        with pytest.raises(RespError, match="^BADTOKEN"):
            redis.cli("EVAL", script, 2, "fence", "key", token, "x")
    assert redis.cli("EXISTS", "fence", "key") == 0
    assert redis.cli("EVAL", script, 2, "fence", "key", "007", "x") == "OK"
    assert redis.cli("GET", "fence") == "7"
    redis.cli("SET", "fence", "junk")
    with pytest.raises(RespError, match="^BADFENCE"):
        redis.cli("EVAL", script, 2, "fence", "key", "8", "x")


def call(application, method="PUT", token=None, body=b"x", **more):
    import io
    answer = {}
    environ = {"REQUEST_METHOD": method, "wsgi.input": io.BytesIO(body),
               "CONTENT_LENGTH": str(len(body)), **more}
    if token is not None:
        environ["HTTP_FENCING_TOKEN"] = token
    application(environ, lambda status, headers: answer.update(status=status))
    return answer["status"][:3]


def test_http(folder):
    path = folder + "/fence"
    service = Register()
    fenced = Fenced(service, path)
    assert call(fenced, token="10", body=b"a") == "200"
    assert call(fenced, token="9", body=b"b") == "412" and service.value == b"a"
    assert call(fenced, token="10", body=b"c") == "200" and service.value == b"c"
    for token in (None, "", "0", "-5", "1e9", "\u0661", "100000000000001", "9" * 40):
        assert call(fenced, token=token) == "428", token
    assert call(fenced, "GET") == "200"
    # It remembers over a restart.
    again = Fenced(service, path)
    assert call(again, token="9") == "412" and call(again, token="11") == "200"


def test_http_bodies_have_bounds(folder):
    fenced = Fenced(Register(), folder + "/fence", body_most=10)
    assert call(fenced, token="10", body=b"x" * 10) == "200"
    assert call(fenced, token="11", body=b"x" * 11) == "413"
    assert call(fenced, token="11", CONTENT_LENGTH="10") == "400", "it ended early"
    assert call(fenced, token="11", CONTENT_LENGTH="-1") == "411"
    assert call(fenced, token="11", CONTENT_LENGTH="\u00b2") == "411"  # a digit to Python, no number
    assert call(fenced, token="11", HTTP_TRANSFER_ENCODING="chunked") == "411"
    assert call(fenced, token="10") == "200", "nothing of those was remembered"


def test_http_a_leader_that_is_paused_in_its_body_keeps_nobody_out(folder):
    class Stuck:
        reached, go = threading.Event(), threading.Event()

        def read(self, length):
            self.reached.set()
            assert self.go.wait(60)
            return b"o" * length
    service = Register()
    fenced = Fenced(service, folder + "/fence")
    said = []
    stuck = Stuck()
    old = threading.Thread(target=lambda: said.append(
        call(fenced, token="5", CONTENT_LENGTH="3", **{"wsgi.input": stuck})))
    old.start()
    assert stuck.reached.wait(20)
    assert call(fenced, token="6", body=b"new") == "200"
    stuck.go.set()
    old.join(20)
    assert said == ["412"] and service.value == b"new"


def test_http_a_request_that_is_being_handled_is_not_overtaken(folder):
    entered, go = threading.Event(), threading.Event()
    done = []

    def slow(environ, start_response):
        entered.set()
        if environ["HTTP_FENCING_TOKEN"] == "5":
            go.wait(20)
        done.append(environ["HTTP_FENCING_TOKEN"])
        start_response("200 OK", [])
        return [b""]
    fenced = Fenced(slow, folder + "/fence")
    old = threading.Thread(target=call, args=(fenced,), kwargs={"token": "5"})
    old.start()
    entered.wait(20)
    new = threading.Thread(target=call, args=(fenced,), kwargs={"token": "6"})
    new.start()
    new.join(0.1)
    go.set()
    old.join(20)
    new.join(20)
    assert done == ["5", "6"]


def test_objects(closing):
    server = closing(Objects())
    store = ObjectFence("127.0.0.1", server.port)
    store.put("/report", b"a", 5)
    condition = store.look("/report", 5)
    store.put("/report", b"b", 6)
    # Compared before the other's write: the condition does not hold any more.
    assert not store.put_if("/report", b"late", 5, condition)
    with pytest.raises(StaleObject):
        store.put("/report", b"late", 5)
    store.put("/report", b"c", 6)
    assert store.get("/report") == (b"c", 6)
    # The newer leader wrote the same content again: that too is in between.
    store.put("/same", b"a", 5)
    condition = store.look("/same", 5)
    store.put("/same", b"a", 6)
    assert not store.put_if("/same", b"late", 5, condition)
    with pytest.raises(StaleObject):
        store.put("/same", b"late", 5)
    assert store.get("/same") == (b"a", 6)
    # Two that find no object yet.
    assert store.put_if("/new", b"a", 6, {"If-None-Match": "*"})
    assert not store.put_if("/new", b"b", 5, {"If-None-Match": "*"})


def test_objects_that_no_fence_has_written(closing):
    server = closing(Objects())
    store = ObjectFence("127.0.0.1", server.port)
    for body in (b"", b"report", b"-5\n", b"0\n", b"1000000000000000\n", b"12345"):
        server.put("/report", {}, body)
        with pytest.raises(ValueError, match="first line"):
            store.put("/report", b"a", 10)
    for token in (0, -1, 10**14 + 1):
        with pytest.raises(ValueError, match="no fencing token"):
            store.put("/new", b"a", token)
    store.put("/new", b"a", 1)


def test_objects_of_a_store_that_takes_no_condition(closing, monkeypatch):
    server = closing(Objects())
    store = ObjectFence("127.0.0.1", server.port)
    server.put("/report", {}, b"5\na")
    etag, body = server.objects["/report"]
    # As a proxy that compresses leaves it: it never matches.
    server.objects["/report"] = ("W/" + etag, body)
    with pytest.raises(ValueError, match="weak ETag"):
        store.put("/report", b"b", 6)
    server.objects["/report"] = (etag, body)
    refused = []

    def refuse(*_):
        refused.append(412)
        return 412 if len(refused) <= 50 else 500
    server.put = refuse
    monkeypatch.setattr(object_fence, "TRIES", 20, raising=False)
    with pytest.raises(OSError, match="refused 20 times"):
        store.put("/report", b"b", 6)


def test_objects_and_files_that_are_read_before_they_are_written(closing, folder):
    """In the order that the guards describe."""
    server = closing(Objects())
    store = ObjectFence("127.0.0.1", server.port)
    store.put("/report", b"100", 5)
    condition = store.look("/report", 6)
    assert store.get("/report") == (b"100", 5)
    store.put("/report", b"70", 5)  # the old one, late
    assert not store.put_if("/report", b"90", 6, condition)
    store.put("/report", b"", 6)  # instead of DELETE
    with pytest.raises(StaleObject):
        store.put("/report", b"late", 5)
    fence = FileFence(folder + "/report")
    fence.write(b"100", 5)
    number, _ = fence.look()
    assert fence.read() == (b"100", 5)
    fence.write(b"70", 5)
    assert not fence.write_after(number, b"90", 6)


def test_files_what_is_no_token_shuts_nobody_out(folder):
    fence = FileFence(folder + "/report")
    for token in (0, -1, 10**14 + 1):
        with pytest.raises(ValueError):
            fence.write(b"a", token)
    fence.write(b"a", 1)


def test_files(folder):
    fence = FileFence(folder + "/report")
    fence.write(b"a\nb", 5)
    number, _ = fence.look()
    fence.write(b"c", 6)
    assert not fence.write_after(number, b"late", 5)
    with pytest.raises(StaleFile):
        fence.write(b"late", 5)
    assert fence.read() == (b"c", 6)
    fence.tidy(older_than_s=-1)
    assert fence.read() == (b"c", 6) and fence.look() == (2, 6)
    # One that was away for longer than versions are kept is not read.
    assert fence.write_after(0, b"late", 5) and fence.read() == (b"c", 6)


def test_files_that_are_tidied_between_two_looks_of_a_reader(folder, monkeypatch):
    fence = FileFence(folder + "/report")
    with pytest.raises(FileNotFoundError, match="nothing is written"):
        fence.read()
    fence.write(b"old", 5)
    listed = FileFence._versions

    def overtaken(self):
        found = listed(self)
        monkeypatch.setattr(FileFence, "_versions", listed)
        fence.write(b"new", 6)
        fence.tidy(older_than_s=-1)
        return found
    monkeypatch.setattr(FileFence, "_versions", overtaken)
    assert fence.read() == (b"new", 6)


def test_files_in_a_folder_with_others(folder, monkeypatch):
    path = folder + "/report"
    fence = FileFence(path)
    for name in ("v.swp", "v1~", "v0", "version"):
        open(f"{path}/{name}", "w").close()
    fence.write(b"a", 5)
    assert fence.read() == (b"a", 5) and fence.look() == (1, 5)
    # What a killed writer left goes with the rest, when it is old; nothing else does.
    left = f"{path}/.5.{os.getpid()}.0123456789ab"
    open(left, "w").close()
    open(path + "/.profile", "w").close()
    fence.tidy()
    assert os.path.exists(left)
    os.utime(left, (time.time() - 2 * 86400,) * 2)
    fence.tidy()
    assert sorted(os.listdir(path)) == [".profile", "v.swp", "v0", "v1", "v1~", "version"]
    # One that was only paused finds its file gone, and compares again.
    link = os.link

    def tidied(source, target):
        monkeypatch.setattr(os, "link", link)
        os.unlink(source)
        link(source, target)
    monkeypatch.setattr(os, "link", tidied)
    fence.write(b"b", 6)
    assert fence.read() == (b"b", 6)


def test_keys_for_a_sink_that_compares_nothing(closing):
    sink = closing(Sink())
    assert effect_key("a", "bc") != effect_key("ab", "c")
    assert effect_key("salary", 7) == effect_key("salary", "7")
    key = effect_key("salary", "2026-11", 7)
    assert [send("127.0.0.1", sink.port, "/guarded", key, "x") for _ in range(3)] == \
        [True, False, False]
    assert sink.effects["/guarded"] == 1
