"""A pod: one sidecar, its application, the clock that both see, and their way to the servers."""

import os
import signal
import subprocess

from chaos.story import Application
from kit.clock import boottime_ns
from kit.clockshim import ClockShim
from kit.netns import Network, can_make_networks
from kit.ports import free_port
from kit.relay import Relay
from kit.sidecar import Sidecar

# Where pods that have a network of their own find the servers: an address of this host.
COMMON = "10.250.0.1"


def has_networks():
    """Networks of one's own are made in a private one alone: chaos.private has seen to that."""
    return os.environ.get("GAVEL_CHAOS_PRIVATE") == "1" and can_make_networks()


def make_common_address():
    subprocess.run(["ip", "addr", "add", COMMON + "/32", "dev", "lo"], check=True)


class Pod:
    def __init__(self, stand, number, options, spec):
        self.stand, self.number, self.spec = stand, number, spec
        self.name = "pod-" + "abcdefgh"[number]
        self.folder = f"{stand.folder}/{self.name}"
        os.mkdir(self.folder)
        self.network = None
        if stand.networks:
            self.network = Network()
            subprocess.run(["ip", "-n", self.network.name, "route", "add", "default", "via",
                            self.network.here], check=True)
        self.shim = ClockShim(stand.folder)
        self.relays = {}
        self.life = 0
        self.app = self.sidecar = None
        self.http = 4040 if self.network else free_port()
        stand.join(self)
        self.options = options
        self.sidecar = Sidecar(
            self.folder, stand.url(self), self.name, options=options, http=f"localhost:{self.http}",
            health="off", env={**stand.env(), **self.shim.env}, prefix=self.prefix)
        self.start_app()

    @property
    def prefix(self):
        return self.network.prefix if self.network else []

    @property
    def device(self):
        return self.network.link if self.network else None

    def relay(self, name, backend_port, port=0):
        """This pod's own way to that server."""
        relay = Relay(backend_port, COMMON if self.network else "127.0.0.1", port, self.device)
        self.relays[name] = relay
        return relay

    def ways(self):
        """How its application gets answers when all is well."""
        return ("socket", "http", "page", *(("attached",) if self.spec["attach"] else ()))

    def start_app(self):
        spec = {**self.spec, "replica": self.name, "socket": self.sidecar.socket_path,
                "http": self.http, "page": self.sidecar.page_path(),
                "seed": f"{self.spec['seed']}/{self.name}/{self.life}"}
        self.app = Application(self.stand.story, self.name, self.life, spec, self.prefix,
                               self.shim.env)
        self.life += 1

    def ends_well(self, story):
        """After SIGTERM."""
        status = self.sidecar.wait(60)
        if status != 0:
            self.ended_with(status, "exit status", f"{self.name} drained and ended", story)

    def ended_with(self, status, kind, text, story):
        """Nobody kills itself by SIGKILL: that is no fault of gavel's, and the end of the proof."""
        text = f"{text} with {status}: {self.sidecar.log()[-2000:]}"
        if status == -signal.SIGKILL:
            story.failures.append("killed by somebody else, or for want of memory: " + text)
        else:
            story.tell("violation", kind, boottime_ns(), text)

    def start_sidecar(self):
        self.keep_log()
        self.sidecar.start()
        self.stand.story.tell("started", self.name, self.sidecar.started_ns)

    def keep_log(self):
        """What the sidecar has said so far, beside the report."""
        with open(os.path.join(self.stand.out, self.name + ".log"), "a", encoding="utf-8") as f:
            f.write(self.sidecar.log() + "\n")

    def close(self):
        if self.app:
            self.app.close()
        if self.sidecar:
            self.keep_log()
        for relay in self.relays.values():
            relay.close()
        try:
            if self.sidecar:
                self.sidecar.close()
        finally:
            if self.network:
                self.network.close()
