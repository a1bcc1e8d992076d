"""Independent Redis servers that vote, each behind a relay of its own; one sidecar alone can be cut
off from one of them, since each has a user of its own."""

from kit.redis_server import Redis
from kit.relay import Relay

PASSWORD = "one4all"


class Node:
    def __init__(self, folder, users):
        self.users = list(users)
        self.redis = Redis(folder, self._options(self.users))
        self.relay = Relay(self.redis.port)

    @staticmethod
    def _options(users):
        return [x for user in users
                for x in ("--user", user, "on", f">{PASSWORD}", "~*", "&*", "+@all")]

    def url(self, user):
        return f"redis://{user}:{PASSWORD}@127.0.0.1:{self.relay.port}"

    @property
    def name(self):
        return f"127.0.0.1:{self.relay.port}/0"

    def cut(self, user):
        """That sidecar is shut out, the others go on."""
        self.redis.cli("ACL", "SETUSER", user, "off")
        self.redis.cli("CLIENT", "KILL", "USER", user)

    def let_in(self, user):
        self.redis.cli("ACL", "SETUSER", user, "on")

    def restart_empty(self, without=()):
        """Ends at once and starts with nothing in it; some are shut out from the start."""
        self.redis.kill()
        self.redis.options = self._options([u for u in self.users if u not in without])
        self.redis.start()

    def close(self):
        self.relay.close()
        self.redis.close()


class Nodes:
    def __init__(self, folder, count, users=("pod-a", "pod-b", "pod-c", "pod-x")):
        self.all = [Node(f"{folder}/node{i}", users) for i in range(count)]

    def __getitem__(self, index):
        return self.all[index]

    def url(self, user, nodes=None):
        return "redlock:" + ",".join(n.url(user) for n in (nodes or self.all))

    def close(self):
        for node in self.all:
            node.close()
