"""A master with replicas, watched by Sentinels: real processes on ports of our own."""

import os

from kit.clock import wait_until
from kit.redis_server import Redis
from kit.resp import RespError

MASTER = "mymaster"


class Sentinel(Redis):
    """One redis-sentinel, which is redis-server under another name. It rewrites its own file."""

    def __init__(self, folder, watched_port, quorum=1, lines=(), host="127.0.0.1"):
        self.watched_port = watched_port
        self.host = host
        self.quorum = quorum
        self.lines = lines
        super().__init__(folder)

    def _write(self, path):
        with open(path, "w") as f:
            f.write("\n".join([
                f"port {self.port}", "bind " + " ".join(sorted({"127.0.0.1", self.host})),
                f"dir {self.folder}",
                f"sentinel monitor {MASTER} {self.host} {self.watched_port} {self.quorum}",
                f"sentinel down-after-milliseconds {MASTER} 1000",
                f"sentinel failover-timeout {MASTER} 3000", *self.lines, ""]))

    def command(self):
        path = os.path.join(self.folder, "sentinel.conf")
        if not os.path.exists(path):
            self._write(path)
        return ["redis-sentinel", path, "--sentinel"]

    def details(self):
        flat = self.cli("SENTINEL", "MASTER", MASTER)
        return dict(zip(flat[::2], flat[1::2]))

    def master_port(self):
        return int(self.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)[1])


class Watched:
    """One master, two replicas, three Sentinels that agree by two. Replicas, Sentinels and sidecars
    (see `env`) log in as users of their own, so that a server can be cut off from some of them and
    still be reached by all others."""

    env = {"GAVEL_STORE_USER": "gavel", "GAVEL_STORE_PASSWORD": "gp"}

    def __init__(self, folder, replicas=2, sentinels=3, host="127.0.0.1", lines=()):
        """`host`: the address by which all know each other; `lines` for each Sentinel's file."""
        self.host = host
        self.servers = []
        self.sentinels = []
        try:
            for i in range(1 + replicas):
                self._add_server(f"{folder}/redis-{i}")
            for i in range(sentinels):
                self.sentinels.append(Sentinel(
                    f"{folder}/sentinel-{i}", self.servers[0].port, sentinels // 2 + 1,
                    [f"sentinel auth-user {MASTER} sentinel", f"sentinel auth-pass {MASTER} sp",
                     *lines], host))
            wait_until(lambda: all(self._knows_all(s) for s in self.sentinels), 20,
                       "the Sentinels know each other and the replicas")
        except BaseException:
            self.close()
            raise

    def _add_server(self, folder):
        options = ["--repl-diskless-sync-delay", "0", "--masteruser", "replica",
                   "--masterauth", "rp"]
        if self.host != "127.0.0.1":
            options += ["--bind", f"127.0.0.1 {self.host}", "--protected-mode", "no"]
        if self.servers:
            options += ["--replicaof", f"{self.host} {self.servers[0].port}"]
        server = Redis(folder, options)
        self.servers.append(server)
        for user, password in (("replica", "rp"), ("sentinel", "sp"), ("gavel", "gp")):
            server.cli("ACL", "SETUSER", user, "on", ">" + password, "~*", "&*", "+@all")
        if len(self.servers) > 1:
            wait_until(lambda: "master_link_status:up" in server.cli("INFO", "replication"), 10,
                       "the replica is in step")

    def _knows_all(self, sentinel):
        details = sentinel.details()
        return details["flags"] == "master" \
            and int(details["num-slaves"]) == len(self.servers) - 1 \
            and int(details["num-other-sentinels"]) == len(self.sentinels) - 1

    @property
    def url(self):
        hosts = ",".join(f"{self.host}:{s.port}" for s in self.sentinels)
        return f"redis+sentinel://{hosts}/{MASTER}"

    def server(self, port):
        return next(s for s in self.servers if s.port == port)

    def master(self):
        """The one that the Sentinels name."""
        return self.server(self.sentinels[0].master_port())

    def replicas(self):
        return [s for s in self.servers if s is not self.master()]

    @staticmethod
    def cut_off(server, *users):
        """The users "replica" and "sentinel" do not reach it any more."""
        # Whoever is not let in is the default user, which must not be taken for a healthy server.
        server.cli("ACL", "SETUSER", "default", "-@all", "+role", "+info", "+get", "+hgetall",
                   "+acl", "+client")
        for user in users:
            server.cli("ACL", "SETUSER", user, "off")
            try:
                server.cli("CLIENT", "KILL", "USER", user)
            except RespError:
                pass  # it has no connection

    def wait_failover(self, old, timeout=40):
        """Until all Sentinels name another master than that one, which is returned."""
        def moved():
            try:
                ports = {s.master_port() for s in self.sentinels}
            except TimeoutError:
                return None  # it syncs its file first, which a busy disk makes it wait for
            return ports.pop() if len(ports) == 1 and old.port not in ports else None
        return self.server(wait_until(moved, timeout, "the Sentinels name another master"))

    def close(self):
        for process in self.sentinels + self.servers:
            process.close()
