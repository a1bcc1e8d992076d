"""The application's HTTP API, asked as applications ask it."""

import http.client
import json
import re
import socket

import pytest

from kit.clock import MS, S, boottime_ns, wait_until
from kit.ports import has_ipv6

MEMBERS = ["election", "namespace", "identity", "state", "leader", "token", "valid_for_ms",
           "holder", "since", "reason", "warnings", "index", "store", "lock_space", "mode"]


@pytest.fixture
def leader(start):
    a = start("pod-a", "--mode", "efficiency")
    a.wait_leader()
    return a


@pytest.fixture
def follower(leader, start):
    b = start("pod-b")
    b.wait_state("follower")
    return b


def test_the_answer_of_a_leader(leader):
    reply = leader.request("/v1/elections/a")
    assert reply.status == 200 and reply.headers["content-type"] == "application/json"
    assert b"\n" not in reply.body.rstrip(b"\n")
    answer = reply.json()
    assert list(answer)[:len(MEMBERS)] == MEMBERS
    assert answer["election"] == "a" and answer["namespace"] == "default"
    assert answer["identity"] == answer["holder"] == "pod-a"
    assert answer["state"] == "leader" and answer["leader"] is True
    assert answer["token"] == leader.check().token and 10 ** 12 < answer["token"] < 10 ** 14
    assert 0 < answer["valid_for_ms"] <= 2000
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", answer["since"])
    assert answer["reason"] in ("acquired", "renewed") and answer["warnings"] == []
    assert answer["store"] == "redis" and answer["mode"] == "efficiency"
    assert answer["lock_space"].endswith("/0/gavel:{default/a}")
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["fencing-token"] == str(answer["token"])
    assert 0 < int(reply.headers["lease-valid-ms"]) <= 2000


def test_the_answer_of_a_follower(follower):
    reply = follower.request("/v1/elections/a")
    assert reply.status == 200
    answer = reply.json()
    assert answer["identity"] == "pod-b" and answer["holder"] == "pod-a"
    assert answer["state"] == "follower" and answer["leader"] is False
    assert answer["token"] is None and answer["valid_for_ms"] == 0
    assert answer["reason"] == "held-by-other"
    assert "fencing-token" not in reply.headers and "lease-valid-ms" not in reply.headers
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/v1/elections/a/leader", "/v1/leader"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_the_role_as_a_status(leader, follower, path, method):
    yes = leader.request(path, method)
    no = follower.request(path, method)
    assert (yes.status, no.status) == (200, 503)
    assert "fencing-token" in yes.headers and "fencing-token" not in no.headers
    if method == "GET":
        assert yes.json()["leader"] is True and no.json()["leader"] is False
    if method == "HEAD":
        assert yes.body == no.body == b""


def test_the_list_of_elections(start):
    a = start("pod-a", "--mode", "efficiency", elections=("one", "two"))
    a.wait_leader(election="one")
    a.wait_leader(election="two")
    listed = a.request("/v1/elections").json()["elections"]
    assert [e["election"] for e in listed] == ["one", "two"]
    assert all(e["leader"] for e in listed)
    assert a.request("/v1/elections/two").json()["election"] == "two"
    for path in ("/v1/leader", "/"):
        problem(a.request(path), 400)


def test_what_pollers_of_the_old_leader_elector_ask(leader, follower):
    for replica in (leader, follower):
        reply = replica.request("/")
        assert reply.status == 200 and reply.json() == {"name": "pod-a"}


def test_the_old_question_while_pending(start):
    """A poller takes itself for the leader when the name is its own: not yet."""
    a = start("pod-a", "--ttl", "5s")
    a.wait_state("pending")
    assert a.request("/").json() == {"name": ""}
    answer = a.request("/v1/leader")
    assert answer.status == 503 and answer.json()["holder"] == ""
    assert answer.json()["leader"] is False and "fencing-token" not in answer.headers
    a.wait_leader()
    assert a.request("/").json() == {"name": "pod-a"}


def problem(reply, status):
    assert reply.status == status, (reply.status, reply.body)
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json()
    assert body["status"] == status and body["title"] and body["detail"]
    return body


def test_every_error_is_a_problem(leader):
    problem(leader.request("/v1/elections/nope"), 404)
    problem(leader.request("/v1/elections/nope/leader"), 404)
    problem(leader.request("/v2"), 404)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        reply = leader.request("/v1/leader", method)
        problem(reply, 405)
        assert "GET" in reply.headers["allow"]
    problem(leader.request("/v1/leader", headers={"Host": "evil.example"}), 421)
    problem(leader.request("/v1/leader", headers={"Host": "127.0.0.1.evil.example"}), 421)
    problem(leader.request("/v1/elections/" + "x" * 6000), 414)
    problem(leader.request("/v1/leader?nonsense=1"), 400)
    problem(leader.request("/v1/elections/a?index=x"), 400)
    problem(leader.request("/v1/elections/%zz"), 400)


@pytest.mark.parametrize("host", ["localhost", "localhost:4040", "127.0.0.1", "[::1]:4040"])
def test_hosts_of_this_machine_are_served(leader, host):
    assert leader.request("/v1/leader", headers={"Host": host}).status == 200


def test_both_loopback_addresses(leader):
    assert leader.request("/v1/leader", host="127.0.0.1").status == 200
    if has_ipv6():
        assert leader.port_of("http", "::1") == leader.port_of("http", "127.0.0.1")
        assert leader.request("/v1/leader", host="::1").status == 200


def test_another_interface_is_refused_and_binding_there_is_a_warning(leader, start):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        assert s.connect_ex(("127.0.0.2", leader.http_port)) != 0
    exposed = start("pod-x", http="0.0.0.0:0")
    wait_until(lambda: "listener-exposed" in exposed.status()["warnings"], 2)
    assert exposed.metrics()['gavel_warning{code="listener-exposed"}'] == 1


def test_answers_are_computed_when_asked(leader):
    """The validity never runs longer than the lease, and a stopped store ends it by the clock."""
    for _ in range(50):
        before = boottime_ns()
        answer = leader.request("/v1/leader").json()
        check = leader.check()
        assert answer["token"] == check.token
        assert check.deadline >= before
        assert check.deadline <= check.receive + check.valid_ms * MS


def test_the_index_changes_with_the_state_and_not_with_renewals(start, redis):
    a = start("pod-a", "--ttl", "600ms", "--mode", "efficiency")
    a.wait_leader()
    first = a.status()
    renewed = a.metrics()['gavel_last_renewal_timestamp_seconds{election="a"}']
    wait_until(lambda: a.metrics()['gavel_last_renewal_timestamp_seconds{election="a"}']
               > renewed, 5, "a renewal")
    assert a.status()["index"] == first["index"]
    redis.cli("DEL", redis.lease_key("a"))
    wait_until(lambda: a.status()["index"] > first["index"], 5)


def test_one_connection_serves_many_requests(leader):
    connection = http.client.HTTPConnection("127.0.0.1", leader.http_port, timeout=5)
    connection.connect()
    first = connection.sock
    for _ in range(20):
        connection.request("GET", "/v1/leader")
        reply = connection.getresponse()
        assert reply.status == 200 and json.loads(reply.read())["leader"]
        assert connection.sock is first
    connection.close()


def test_an_identity_used_twice_is_told_apart(start):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    a.wait_leader()
    b = start("pod-b", "--ttl", "1s")  # another socket path; its identity is changed below
    b.stop()
    b.identity = "pod-a"
    b.start()
    b.wait_state("follower")
    status = b.status()
    assert status["identity"] == "pod-a" and status["holder"].startswith("pod-a~")
    assert b.request("/").json()["name"] != "pod-a"
    # Not at once: it could be an earlier life of this replica.
    wait_until(lambda: "identity-not-unique" in b.status()["warnings"], 5)


def test_the_validity_is_bounded_by_the_lease(start):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "1s", "--valid-for", "5s")
    a.wait_leader()
    for _ in range(20):
        assert 0 < a.request("/v1/leader").json().get("valid_for_ms", 1) <= 800
    assert a.check().deadline - boottime_ns() <= 0.8 * S
