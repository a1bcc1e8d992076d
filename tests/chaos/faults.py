"""The kinds of faults: what each does, to whom, and what it needs. Each one ends what it began, so
that after the last one all is well again. One that found nothing to strike says so (`act.void()`)
and is not counted. At most what the promises cover is done:

- a server's clock steps, or a server forgets, in one round: never both, since tokens are promised
  to rise while the store keeps the record or its clock is not behind it
- whoever was replaced as a master never comes back as one: two masters are not covered
"""

import contextlib
import dataclasses
import os
import signal
import typing

from kit.clock import S, boottime_ns
from kit.relay import REPLY, REQUEST
from kit.resp import RespError

EVERYWHERE = ("redis", "sentinel", "redlock", "postgres", "local")
FAR = ("redis", "sentinel", "redlock", "postgres")
RELAYED = ("redis", "redlock", "postgres")


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    on: str             # whom it strikes: one fault of these at a time
    stores: tuple
    act: typing.Callable
    root: tuple = ()    # where it needs networks or disks of its own
    world: str = ""     # "clock" or "amnesia": rounds have one of them
    weight: float = 1.0


KINDS = {}


def kind(name, on, stores=EVERYWHERE, **more):
    def add(act):
        KINDS[name] = Kind(name, on, stores, act, **more)
        return act
    return add


def of_store(store, root):
    return [k for k in KINDS.values() if store in k.stores and (root or store not in k.root)]


@contextlib.contextmanager
def _void_if(act, *errors):
    try:
        yield
    except errors:
        act.void()


def _stopped(act, process):
    with _void_if(act, ProcessLookupError):
        process.send_signal(signal.SIGSTOP)
    try:
        act.wait(act.seconds)
    finally:
        process.send_signal(signal.SIGCONT)


def _throttled(act, stop, go):
    """Runs for a part of each period only, as under a limit of CPU time."""
    period = act.rng.choice((0.02, 0.1, 0.3))
    share = act.rng.uniform(0.1, 0.6)
    end = boottime_ns() + int(act.seconds * S)
    while boottime_ns() < end and not act.over():
        stop()
        try:
            act.wait(period * (1 - share))
        finally:
            go()
        act.wait(period * share)


# Sidecars.
@kind("sidecar frozen", "sidecar", weight=2)
def _(act):
    _stopped(act, act.pod.sidecar.process)


@kind("sidecar throttled", "sidecar")
def _(act):
    _throttled(act, act.pod.sidecar.freeze, act.pod.sidecar.thaw)


@kind("sidecar killed", "sidecar", weight=2)
def _(act):
    act.pod.sidecar.kill9()
    act.pod.sidecar.wait()
    act.wait(act.seconds)
    act.pod.start_sidecar()


@kind("sidecar drained", "sidecar")
def _(act):
    act.pod.sidecar.terminate()
    act.pod.ends_well(act.rounds.story)
    act.wait(act.seconds / 2)
    act.pod.start_sidecar()


@kind("leadership resigned", "sidecar")
def _(act):
    with _void_if(act, OSError), act.pod.sidecar.connection(timeout=5) as s:
        s.sendall(b"resign\n")
        with contextlib.suppress(TimeoutError):  # it waits for its readers
            if s.recv(512) != b"ok\n":
                act.void()


@kind("wall clock steps", "clock")
def _(act):
    act.pod.shim.step(act.rng.choice((-1, 1)) * act.rng.choice((0.3, 1, 5, 60, 3600)))
    try:
        act.wait(act.seconds)
    finally:
        act.pod.shim.step(0)


# Applications.
@kind("application frozen", "application", weight=2)
def _(act):
    _stopped(act, act.pod.app.process)


@kind("application throttled", "application", weight=0.5)
def _(act):
    process = act.pod.app.process
    _throttled(act, lambda: process.send_signal(signal.SIGSTOP),
               lambda: process.send_signal(signal.SIGCONT))


@kind("application killed", "application")
def _(act):
    act.pod.app.kill()
    act.wait(act.seconds / 2)
    act.pod.start_app()


@kind("application resigns", "application", weight=0.5)
def _(act):
    since = boottime_ns()
    act.pod.app.order("resign")
    while not act.resigned(since):
        if boottime_ns() > since + 2 * S or act.over():
            act.void()  # it is not attached
            return
        act.wait(0.02)


# The way to the servers.
def _cut(act, ways, directions):
    network = act.pod.network
    if network:
        network.swallow(ways)
    else:
        for relay in act.pod.relays.values():
            relay.freeze(directions)
    try:
        act.wait(act.seconds)
    finally:
        if network:
            network.mend(ways)
        else:
            for relay in act.pod.relays.values():
                relay.freeze(())


@kind("cut off", "link", FAR, root=("sentinel",), weight=2)
def _(act):
    _cut(act, ("in", "out"), (REQUEST, REPLY))


@kind("cut off, requests only", "link", FAR, root=("sentinel",))
def _(act):
    _cut(act, ("out",), (REQUEST,))


@kind("cut off, replies only", "link", FAR, root=("sentinel",))
def _(act):
    _cut(act, ("in",), (REPLY,))


def _some_relays(act):
    relays = list(act.pod.relays.values())
    return act.rng.sample(relays, act.rng.randint(1, len(relays)))


@kind("delayed", "relay", RELAYED)
def _(act):
    relays = _some_relays(act)
    most = act.stand.ttl_ms * 0.8
    for relay in relays:
        relay.delay(act.rng.random() ** 2 * most, act.rng.random() ** 2 * most)
    act.wait(act.seconds)
    for relay in relays:
        relay.delay()


@kind("lossy", "relay", RELAYED)
def _(act):
    relays = _some_relays(act)
    for relay in relays:
        relay.lose(act.rng.choice((5, 20, 50)))
    act.wait(act.seconds)
    for relay in relays:
        relay.lose(0)


@kind("half-open", "relay", RELAYED)
def _(act):
    """What is connected hears nothing any more; who connects anew is served."""
    relays = _some_relays(act)
    if not sum([relay.freeze_connections() for relay in relays]):
        act.void()
    act.wait(act.seconds)
    for relay in relays:
        relay.thaw_connections()


@kind("refused", "relay", RELAYED)
def _(act):
    relays = _some_relays(act)
    for relay in relays:
        relay.refuse()
    act.wait(act.seconds)
    for relay in relays:
        relay.welcome()


# Servers: Redis.
@kind("server frozen", "server", ("redis", "redlock", "postgres"))
def _(act):
    server = act.server
    server.freeze()
    try:
        act.wait(act.seconds)
    finally:
        server.thaw()


@kind("server throttled", "server", ("redis", "redlock", "postgres"))
def _(act):
    _throttled(act, act.server.freeze, act.server.thaw)


@kind("server killed", "server", ("redis",), weight=2)
def _(act):
    act.server.kill()
    act.wait(act.seconds / 2)
    act.server.start()


@kind("server emptied", "server", ("redis", "redlock"), world="amnesia", weight=2)
def _(act):
    act.stand.empty(act.server)


@kind("all keys gone", "server", ("redis", "redlock"), world="amnesia")
def _(act):
    with _void_if(act, RespError, OSError):
        act.server.cli("FLUSHALL")


@kind("lease gone", "server", ("redis", "redlock", "sentinel"))
def _(act):
    server = act.stand.writable(act.server)
    with _void_if(act, RespError, OSError):
        if server.cli("DEL", server.lease_key("a")) != 1:
            act.void()


@kind("connections killed", "server", ("redis", "redlock", "sentinel"))
def _(act):
    server = act.stand.writable(act.server)
    with _void_if(act, RespError, OSError):
        if not sum(server.cli("CLIENT", "KILL", "TYPE", t) for t in ("normal", "pubsub")):
            act.void()


@kind("server's clock steps", "server", ("redis", "redlock"), world="clock", weight=2)
def _(act):
    act.stand.shim_of(act.server).step(act.rng.choice((-1, 1)) * act.rng.choice((0.2, 1, 3)))
    try:
        act.wait(act.seconds)
    finally:
        act.stand.shim_of(act.server).step(0)


# Disks.
@kind("disk full", "disk", ("local",), root=("local",))
@kind("server's disk full", "server", ("redis",), root=("redis",))
def _(act):
    path = act.stand.disk + "/filler"
    try:
        with _void_if(act, OSError), open(path, "wb", buffering=0) as f:
            for size in (1 << 16, 1 << 9, 1):
                with contextlib.suppress(OSError):
                    while f.write(bytes(size)) > 0:
                        pass
        act.wait(act.seconds)
    finally:
        os.unlink(path)


@kind("lock file gone", "disk", ("local",))
def _(act):
    with _void_if(act, FileNotFoundError):
        act.stand.lose_lock_file()


# Sentinel.
@kind("master killed", "server", ("sentinel",), weight=3)
def _(act):
    old = act.stand.master()
    old.kill()
    moved = act.stand.fails_over(old)
    act.wait(act.seconds / 2)
    act.stand.back(old, act.stand.master() if moved else None)


@kind("replica killed", "server", ("sentinel",))
def _(act):
    replica = act.rng.choice(act.stand.replicas())
    replica.kill()
    act.wait(act.seconds)
    act.stand.back(replica, act.stand.master())


@kind("replica frozen", "server", ("sentinel",))
def _(act):
    _stopped(act, act.rng.choice(act.stand.replicas()).process)


@kind("sentinel killed", "sentinel", ("sentinel",))
def _(act):
    sentinel = act.rng.choice(act.stand.watched.sentinels)
    sentinel.kill()
    act.wait(act.seconds)
    sentinel.start()


@kind("sentinel frozen", "sentinel", ("sentinel",))
def _(act):
    _stopped(act, act.rng.choice(act.stand.watched.sentinels).process)


# PostgreSQL.
@kind("server restarted", "server", ("postgres",), weight=2)
def _(act):
    server = act.stand.primary
    server.stop(act.rng.choice(("fast", "immediate")))
    act.wait(act.seconds / 2)
    server.start()


def _holder(act):
    """The process that holds the lock, if one does."""
    found = act.stand.primary.locks()[:1]
    if not found:
        act.void()
    return found


@kind("backend killed", "server", ("postgres",))
def _(act):
    """As a whole: the server ends all its sessions then, and recovers."""
    for pid in _holder(act):
        os.kill(pid, signal.SIGKILL)
    act.stand.wait_recovered()


@kind("session ended", "server", ("postgres",))
def _(act):
    for pid in _holder(act):
        act.stand.primary.end_backend(pid)


@kind("standby frozen", "server", ("postgres",), weight=0.5)
def _(act):
    standby = act.stand.servers[1]
    standby.freeze()
    try:
        act.wait(act.seconds)
    finally:
        standby.thaw()


@kind("standby promoted", "server", ("postgres",), weight=2)
def _(act):
    act.stand.fail_over()
    act.wait(act.seconds / 2)
    act.stand.rebuild()
