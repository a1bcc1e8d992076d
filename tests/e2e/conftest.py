import shutil
import tempfile

import pytest

from kit.clock import MS, boottime_ns, wait_until
from kit.latency import Latency
from kit.monitor import Monitor
from kit.observer import Observer
from kit.ports import free_port
from kit.postgres_server import Postgres
from kit.redis_server import Redis
from kit.relay import Relay
from kit.sampler import Sampler
from kit.sidecar import Sidecar


# Timely tests count on everybody being awake within a tenth of a second.
LATE_HOST_NS = 100 * MS


@pytest.fixture
def timely():
    """Measures how late the host is. A failed test that has it is excused when that was too late
    for what it asks for; what the sampler holds against an answer is never excused."""
    latency = Latency()
    latency.began = boottime_ns()
    yield latency
    latency.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    latency = getattr(item, "funcargs", {}).get("timely")
    if call.when != "call" or not report.failed or latency is None:
        return
    late = latency.worst_ns(latency.began, boottime_ns())
    samplers = [t for t in item.funcargs.get("closing_things", []) if isinstance(t, Sampler)]
    if late > LATE_HOST_NS and not any(s.violations for s in samplers):
        report.outcome = "skipped"
        report.wasxfail = f"the host was late by {late // MS} ms: {call.excinfo.value}"


@pytest.fixture
def folder():
    """A short path: that of a Unix socket has 107 bytes at most."""
    path = tempfile.mkdtemp(prefix="gv-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def closing_things():
    return []


@pytest.fixture
def closing(closing_things):
    """closing(thing): its close() is called at the end; all are, the first failure counts."""
    things = closing_things

    def add(thing):
        things.append(thing)
        return thing
    yield add
    failures = []
    for thing in reversed(things):
        try:
            thing.close()
        except AssertionError as e:
            failures.append(e)
    if failures:
        raise failures[0]


@pytest.fixture
def redis(folder, closing):
    return closing(Redis(folder + "/redis"))


@pytest.fixture
def postgres(folder, closing):
    return closing(Postgres(folder + "/pg"))


@pytest.fixture
def relay(redis, closing):
    return closing(Relay(redis.port))


@pytest.fixture
def start(folder, closing, request):
    """start(identity, *options, store=...): a sidecar that ends with the test."""
    def start_one(identity="pod-a", *options, store=None, fixed_port=False, **kwargs):
        store = store or request.getfixturevalue("redis").url
        if fixed_port:  # one that can be asked again after a restart
            kwargs["http"] = f"localhost:{free_port()}"
        return closing(Sidecar(folder, store, identity, options=options, **kwargs))
    return start_one


@pytest.fixture
def sample(closing):
    return lambda sidecars, **kwargs: closing(Sampler(sidecars, **kwargs))


@pytest.fixture
def link(redis, closing):
    """What replication goes through."""
    redis.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    return closing(Relay(redis.port))


@pytest.fixture
def replica(link, folder, closing):
    server = closing(Redis(folder + "/replica", ["--replicaof", f"127.0.0.1 {link.port}"]))
    wait_until(lambda: "master_link_status:up" in server.cli("INFO", "replication"), 10)
    return server


@pytest.fixture
def observe(closing):
    return lambda sidecars, elections=None: closing(Observer(sidecars, elections))


@pytest.fixture
def monitor(redis, closing):
    return closing(Monitor(redis))


@pytest.fixture
def pods(start, postgres):
    """Sidecars pod-NAME on one PostgreSQL."""
    def some(names, *options, ttl="1s", store=None, **kwargs):
        return [start(f"pod-{i}", "--ttl", ttl, *options, store=store or postgres.url,
                      fixed_port=True, **kwargs) for i in names]
    return some
