"""The other side of the bound: one fault that is over before half the ttl costs no leadership.
Three leaders, each with a server of its own, go through theirs at the same time."""

import concurrent.futures
import time

from e2e.cases import Host
from kit.clock import MS, S, boottime_ns, wait_until
from kit.clockshim import ClockShim
from kit.redis_server import Redis
from kit.relay import Relay
from kit.resp import Resp

TTL_MS = 1500
FAULT_NS = TTL_MS * MS * 45 // 100
RENEWED = 'gavel_last_renewal_timestamp_seconds{election="a"}'


class Leader:
    """A sidecar with a relay and a server of its own."""

    def __init__(self, name, folder, closing, start, observe):
        self.shim = ClockShim(folder)
        self.redis = closing(Redis(f"{folder}/{name}", ["--repl-diskless-sync-delay", "0"],
                                   env=self.shim.env))
        self.relay = closing(Relay(self.redis.port))
        self.sidecar = start(name, "--ttl", f"{TTL_MS}ms", store=self.relay.url,
                             env=self.shim.env if name == "pod-clocks" else None)
        self.key, self.record = self.redis.lease_key("a"), self.redis.record_key("a")
        self.sidecar.wait_leader()
        self.observer = observe([self.sidecar])

    def wait_renewal(self):
        """One that succeeds from now on."""
        last = self.sidecar.metrics()[RENEWED]
        wait_until(lambda: self.sidecar.metrics()[RENEWED] != last, 10, "a renewal")

    def live_through(self, fault):
        """From just after a renewal on. The fault lasts for as long as it takes, or for 45% of the
        ttl where something ends it."""
        self.wait_renewal()
        undo = fault(self)
        if undo:
            since = boottime_ns()
            wait_until(lambda: boottime_ns() - since > FAULT_NS)
            undo()
        self.wait_renewal()


# Each does something to the leader's world; what it returns undoes that.

def connections_are_cut(world):
    world.relay.cut()


def connections_hang(world):
    world.relay.freeze()
    return world.relay.thaw


def those_that_there_are_hang_for_ever(world):
    world.relay.freeze_connections()


def replies_are_late(world):
    world.relay.delay(reply_ms=TTL_MS // 10)
    return world.relay.delay


def the_reply_to_a_renewal_is_lost(world):
    before = world.redis.record()["end"]
    world.relay.drop_reply_when(lambda: world.redis.record()["end"] != before)
    wait_until(lambda: world.relay.dropped, 5)


def the_server_refuses_connections(world):
    port = world.relay.backend_port
    world.relay.sever()
    return lambda: world.relay.switch(port)


def the_server_hangs(world):
    world.redis.freeze()
    return world.redis.thaw


def the_server_restarts_with_its_data(world):
    world.redis.cli("SAVE")
    world.redis.kill()
    world.redis.start()


def its_scripts_are_flushed(world):
    world.redis.cli("SCRIPT", "FLUSH")


def there_are_too_many_clients(world):
    admin = Resp(world.redis.port)
    admin.call("CONFIG", "SET", "maxclients", "1")
    admin.call("CLIENT", "KILL", "TYPE", "normal")

    def undo():
        admin.call("CONFIG", "SET", "maxclients", "1000")
        admin.close()
    return undo


def it_misses_its_replicas(world):
    world.redis.cli("CONFIG", "SET", "min-replicas-to-write", "1")
    return lambda: world.redis.cli("CONFIG", "SET", "min-replicas-to-write", "0")


def it_is_demoted_for_a_moment(world):
    world.redis.cli("REPLICAOF", "127.0.0.1", "1")
    return lambda: world.redis.cli("REPLICAOF", "NO", "ONE")


def the_key_never_expires(world):
    world.redis.cli("PERSIST", world.key)


def the_record_is_deleted(world):
    world.redis.cli("DEL", world.record)


def the_record_is_no_hash(world):
    world.redis.cli("DEL", world.record)
    world.redis.cli("SET", world.record, "x")
    return lambda: world.redis.cli("DEL", world.record)


def all_clocks_of_the_server_and_ours_step_back(world):
    world.shim.step(-3600)


def the_servers_clock_goes_wrong_a_little(world):
    world.shim.rate("real", 1.02)
    time.sleep(FAULT_NS / S)
    world.shim.rate("real", 1)


WORLDS = {
    "pod-network": [connections_are_cut, connections_hang, replies_are_late,
                    the_server_refuses_connections, the_reply_to_a_renewal_is_lost,
                    those_that_there_are_hang_for_ever],
    "pod-server": [the_server_hangs, its_scripts_are_flushed, there_are_too_many_clients,
                   it_misses_its_replicas, it_is_demoted_for_a_moment,
                   the_server_restarts_with_its_data],
    "pod-clocks": [the_key_never_expires, the_record_is_deleted, the_record_is_no_hash,
                   all_clocks_of_the_server_and_ours_step_back,
                   the_servers_clock_goes_wrong_a_little],
}


def test_one_fault_shorter_than_half_the_ttl_ends_no_leadership(folder, closing, start, observe):
    worlds = {name: Leader(name, folder, closing, start, observe) for name in WORLDS}
    host = closing(Host(TTL_MS))

    def run(name):
        world = worlds[name]
        for fault in WORLDS[name]:
            world.sidecar.wait_leader()
            world.observer.restart()
            world.live_through(fault)
            host.kept(world.observer, world.sidecar, what=fault.__name__)
    with concurrent.futures.ThreadPoolExecutor(len(WORLDS)) as pool:
        list(pool.map(run, WORLDS))
    for world in worlds.values():
        assert world.sidecar.process.poll() is None
        world.observer.check()
