import shutil
import tempfile

import pytest

from kit.ports import free_port
from kit.postgres_server import Postgres
from kit.redis_server import Redis
from kit.relay import Relay
from kit.sampler import Sampler
from kit.sidecar import Sidecar


@pytest.fixture
def folder():
    """A short path: that of a Unix socket has 107 bytes at most."""
    path = tempfile.mkdtemp(prefix="gv-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def closing():
    """closing(thing): its close() is called at the end; all are, the first failure counts."""
    things = []

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
