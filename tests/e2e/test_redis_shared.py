"""Several elections in one process share their connections."""

from kit.clock import wait_until

NAMES = [f"job-{n}" for n in range(20)]


def clients(redis):
    """What the server says of its clients, besides the one that asks."""
    return [line for line in redis.cli("CLIENT", "LIST").splitlines()
            if "cmd=client" not in line]


def test_many_elections_one_command_connection_and_one_subscriber(redis, start):
    a = start("pod-a", "--ttl", "2s", "--mode", "efficiency", elections=NAMES)
    wait_until(lambda: all(a.leads(n) for n in NAMES), 10, "leads all of them")
    wait_until(lambda: len(clients(redis)) <= 2, 5)
    b = start("pod-b", "--ttl", "2s", "--mode", "efficiency", elections=NAMES)
    wait_until(lambda: all(b.state(n) == "follower" for n in NAMES), 10)
    wait_until(lambda: len(clients(redis)) == 4, 5,
               "a command connection and a subscriber of each")
    subscribers = [c for c in clients(redis) if f" sub={len(NAMES)} " in c]
    assert len(subscribers) >= 1, clients(redis)
    tokens = {n: a.check(n).token for n in NAMES}
    assert all(tokens.values())
    assert a.stop() == 0
    wait_until(lambda: all(b.leads(n) for n in NAMES), 10, "the other one leads all of them")
    assert all(b.check(n).token > tokens[n] for n in NAMES)
    assert b.process.poll() is None


def test_one_election_is_resigned_alone(redis, start):
    a = start("pod-a", "--ttl", "5s", "--mode", "efficiency", elections=("one", "two"),
              )
    wait_until(lambda: a.leads("one") and a.leads("two"))
    assert a.ask("resign one") == "ok"
    assert not a.leads("one") and a.leads("two")
    assert redis.lease("one") is None and redis.lease("two")


def test_namespaces_are_apart(redis, start):
    a = start("pod-a", "--mode", "efficiency", "--namespace", "blue")
    b = start("pod-b", "--mode", "efficiency", "--namespace", "green")
    a.wait_leader()
    b.wait_leader()
    assert a.status()["lock_space"] != b.status()["lock_space"]
    assert redis.lease("a", "blue") and redis.lease("a", "green")
