"""The stores: real servers, how pods reach them, and what may happen to them while the promises
hold (see faults.py)."""

import os
import shutil
import subprocess
import time

from chaos.pods import COMMON, has_networks, make_common_address
from kit.clock import MS, S, boottime_ns, wait_until
from kit.clockshim import ClockShim
from kit.ports import free_port
from kit.postgres_server import Postgres, standby_of
from kit.redis_server import Redis
from kit.resp import Resp, RespError
from kit.sentinel import Watched


class Stand:
    """What all stores have."""
    ttl_ms = 1000        # the longest that counts
    least_ttl_ms = 1000
    independent = False
    one_way = False  # all pods have the same way to the servers

    def __init__(self, folder, story, out):
        self.folder, self.story, self.out = folder, story, out
        self.networks = has_networks()
        self.servers = []
        self._mounts = []
        if self.networks:
            make_common_address()

    @property
    def host(self):
        """Where servers are found."""
        return COMMON if self.networks else "127.0.0.1"

    def small_disk(self, path, megabytes):
        """A disk of its own, which can be filled; without root a folder."""
        os.makedirs(path, exist_ok=True)
        if self.networks:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "none",
                            path], check=True)
            self._mounts.append(path)
        return path

    @property
    def disk(self):
        return self._mounts[0] if self._mounts else None

    def targets(self):
        """The servers that the faults of servers strike. If they are independent several may be
        struck at a time."""
        return self.servers

    def writable(self, server):
        """That server; where only one of them is written to, that one."""
        return server

    def join(self, pod):
        """A pod comes: its ways to the servers."""

    def env(self):
        return {}

    def calm(self):
        """All faults are over: what else has to be put in order."""

    def close(self):
        for server in self.servers:
            server.close()
        for path in self._mounts:
            subprocess.run(["umount", "-l", path], check=False)


class Local(Stand):

    def __init__(self, folder, story, out):
        super().__init__(folder, story, out)
        self.path = self.small_disk(folder + "/locks", 1)

    def url(self, _):
        return "local:" + self.path

    def lose_lock_file(self):
        os.unlink(self.path + "/default/a.lock")


class OneRedis(Stand):

    def __init__(self, folder, story, out):
        super().__init__(folder, story, out)
        self.shim = ClockShim(folder)
        disk = self.small_disk(folder + "/redis", 24)
        self.servers = [Redis(disk, ["--appendonly", "yes", "--appendfsync", "everysec"],
                              env=self.shim.env)]
        self.relays = []

    def join(self, pod):
        first = self.relays[0].port if self.relays and self.networks else 0
        self.relays.append(pod.relay("redis", self.servers[0].port, first))

    def url(self, pod):
        return f"redis://{self.host}:{pod.relays['redis'].port}"

    def shim_of(self, _):
        return self.shim

    def empty(self, server):
        """It starts again with nothing in it."""
        server.kill()
        shutil.rmtree(server.folder + "/appendonlydir", ignore_errors=True)
        server.start()


class Redlock(Stand):
    independent = True
    count = 5

    def __init__(self, folder, story, out):
        super().__init__(folder, story, out)
        self.shims = [ClockShim(folder) for _ in range(self.count)]
        self.servers = [Redis(f"{folder}/node-{i}", env=shim.env)
                        for i, shim in enumerate(self.shims)]
        # All have to know a node by the same name, so it has one port in all networks.
        self.ports = [free_port() for _ in self.servers]
        self.shared = {}
        self.one_way = not self.networks

    def join(self, pod):
        for i, server in enumerate(self.servers):
            if self.networks:
                pod.relay(f"node {i}", server.port, self.ports[i])
            elif i in self.shared:
                pod.relays[f"node {i}"] = self.shared[i]
            else:
                self.shared[i] = pod.relay(f"node {i}", server.port, self.ports[i])

    def url(self, _):
        return "redlock:" + ",".join(f"redis://{self.host}:{p}" for p in self.ports)

    def shim_of(self, server):
        return self.shims[self.servers.index(server)]

    def empty(self, server):
        server.kill()
        server.start()


class Sentinels(Stand):
    """A killed master is never let in again as a master: two masters are not covered."""

    def __init__(self, folder, story, out):
        super().__init__(folder, story, out)
        self.watched = Watched(folder, host=self.host, lines=[
            "sentinel down-after-milliseconds mymaster 2000"])
        self.servers = self.watched.sentinels + self.watched.servers
        self._single_at = boottime_ns()
        self._double_since = 0

    def env(self):
        return self.watched.env

    def url(self, _):
        return self.watched.url

    def targets(self):
        return self.watched.servers

    def _named(self):
        """The ports of the masters that the Sentinels name, of those that answer."""
        ports = []
        for sentinel in self.watched.sentinels:
            try:
                with Resp(sentinel.port, timeout=1) as client:
                    ports.append(int(client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                                 "mymaster")[1]))
            except (OSError, RespError):
                pass  # it is being struck itself
        return ports

    def master(self):
        def most():
            ports = self._named()
            return max(ports, key=ports.count) if len(ports) > 1 else None
        return self.watched.server(wait_until(most, 60, "two Sentinels answer"))

    def writable(self, _):
        return self.master()

    def replicas(self):
        master = self.master()
        return [s for s in self.watched.servers if s is not master]

    def fails_over(self, old, seconds=40):
        """Whether the Sentinels name another master. They may find no replica that is good enough
        for them; then the old one has to come back as it was."""
        end = boottime_ns() + seconds * S
        while boottime_ns() < end:
            ports = self._named()
            if len(ports) > 1 and old.port not in ports:
                return True
            time.sleep(0.05)
        return False

    def back(self, server, master=None):
        """It starts again with nothing in it: as a replica of that master, or as the master."""
        users = [x for user, password in (("replica", "rp"), ("sentinel", "sp"), ("gavel", "gp"))
                 for x in ("--user", user, "on", ">" + password, "~*", "&*", "+@all")]
        kept = server.options[:server.options.index("--replicaof")] \
            if "--replicaof" in server.options else server.options
        server.options = kept[:kept.index("--user")] if "--user" in kept else list(kept)
        server.options += users
        if master:
            server.options += ["--replicaof", f"{self.host} {master.port}"]
        server.start()
        if master:
            wait_until(lambda: "master_link_status:up" in server.cli("INFO", "replication"), 60)

    def look(self):
        """Whether two masters answer at the same time, which nobody can help: it is written down."""
        masters = 0
        for server in self.watched.servers:
            try:
                with Resp(server.port, timeout=0.2) as client:
                    masters += client.call("ROLE")[0] == "master"
            except (OSError, RespError):
                pass
        now = boottime_ns()
        if masters > 1:
            self._double_since = self._double_since or self._single_at
        elif self._double_since:
            self.story.tell("excuse", self._double_since, now + 2 * self.ttl_ms * MS)
            self._double_since = 0
        else:
            self._single_at = now

    def calm(self):
        wait_until(self._agree, 60, "the Sentinels agree on a master that answers")

    def _agree(self):
        ports = self._named()
        if len(ports) < len(self.watched.sentinels) or len(set(ports)) != 1:
            return False
        try:
            return self.watched.server(ports[0]).cli("ROLE")[0] == "master"
        except (OSError, RespError):
            return False


class Standby(Stand):
    """PostgreSQL with a streaming standby. A primary that was given up never comes back."""

    def __init__(self, folder, story, out):
        super().__init__(folder, story, out)
        self.made = 0
        self.servers = [Postgres(folder + "/pg-0", ["wal_keep_size=64MB"])]
        self.servers.append(self._new_standby())
        self.slots = list(self.servers)  # in the order of the URL
        self.pods = []

    def _new_standby(self):
        self.made += 1
        return standby_of(self.servers[0], f"{self.folder}/pg-{self.made}")

    def join(self, pod):
        for i, server in enumerate(self.slots):
            first = self.pods[0].relays[f"postgres {i}"] if self.pods and self.networks else None
            pod.relay(f"postgres {i}", server.port, first.port if first else 0)
        self.pods.append(pod)

    def url(self, pod):
        hosts = ",".join(f"{self.host}:{pod.relays[f'postgres {i}'].port}" for i in (0, 1))
        return f"postgres://app@{hosts}/app"

    def targets(self):
        return self.servers[:1]

    @property
    def primary(self):
        return self.servers[0]

    def wait_recovered(self):
        wait_until(lambda: self.primary.psql("SELECT 1", check=False).returncode == 0, 60,
                   "the server has recovered")

    def fail_over(self):
        """The primary is gone for good, the standby takes its place."""
        old, new = self.servers
        old.stop("immediate")
        new.promote()
        self.servers = [new, old]

    def rebuild(self):
        """A new standby in the place of the lost server."""
        old = self.servers[1]
        shutil.rmtree(old.folder, ignore_errors=True)
        slot = self.slots.index(old)
        self.servers[1] = self._new_standby()
        self.slots[slot] = self.servers[1]
        for pod in self.pods:
            pod.relays[f"postgres {slot}"].switch(self.servers[1].port)


STANDS = {"redis": OneRedis, "sentinel": Sentinels, "redlock": Redlock, "postgres": Standby,
          "local": Local}
