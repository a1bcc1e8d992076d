"""A network of its own for one process: a link to it that can swallow all packets, both ways. The
kernels at its ends notice nothing. For root, with iproute2."""

import os
import shutil
import subprocess


def can_make_networks():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    return subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False
                          ).returncode == 0


def can_mount_privately():
    """False as well where / is no mount of its own, as in a chroot."""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """`here` is this host's address on the link, `there` that of the process."""
    _count = 0

    def __init__(self):
        Network._count += 1
        number = os.getpid() % 50000
        self.name = f"gv{number}x{Network._count}"
        self.link = f"gv{number}h{Network._count}"[:15]
        self.inner = f"gv{number}n{Network._count}"[:15]
        third = (number + Network._count) % 250
        self.here, self.there = f"10.251.{third}.1", f"10.251.{third}.2"
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self):
        _ip("netns", "add", self.name)
        _ip("link", "add", self.link, "type", "veth", "peer", "name", self.inner)
        _ip("link", "set", self.inner, "netns", self.name)
        _ip("addr", "add", self.here + "/30", "dev", self.link)
        _ip("link", "set", self.link, "up")
        for words in (("addr", "add", self.there + "/30", "dev", self.inner),
                      ("link", "set", self.inner, "up"), ("link", "set", "lo", "up")):
            self._ip_there(*words)

    @property
    def prefix(self):
        """What a command is started with to run in it. `ip netns exec` would mount things as well,
        which it cannot in a chroot."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def _ip_there(self, *words):
        subprocess.run([*self.prefix, "ip", *words], check=True, capture_output=True)

    def swallow(self):
        """Every frame goes to a station that is not there."""
        nobody = ("lladdr", "02:00:00:00:00:99", "nud", "permanent")
        _ip("neigh", "replace", self.there, *nobody, "dev", self.link)
        self._ip_there("neigh", "replace", self.here, *nobody, "dev", self.inner)

    def mend(self):
        _ip("neigh", "del", self.there, "dev", self.link)
        self._ip_there("neigh", "del", self.here, "dev", self.inner)

    def close(self):
        for words in (("link", "del", self.link), ("netns", "del", self.name)):
            subprocess.run(["ip", *words], capture_output=True, check=False)
