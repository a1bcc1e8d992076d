"""Networks, disks and process ids of one's own, where root can have them: all of it ends with this
program, however that ends."""

import os
import subprocess
import sys

MARK = "GAVEL_CHAOS_PRIVATE"
UNSHARE = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


def enter(arguments):
    """Starts this program anew in there, or says why it stays outside."""
    if os.environ.get(MARK) == "1":
        os.makedirs("/run/netns", exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run/netns"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return None
    if os.geteuid() != 0:
        return "not root"
    inside = ("mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && "
              "ip netns add tried && ip link add tried0 type veth peer name tried1 && "
              "ip link set tried1 netns tried")
    tried = subprocess.run([*UNSHARE, "sh", "-c", inside], capture_output=True, text=True,
                           check=False)
    if tried.returncode != 0:
        return (tried.stderr.strip().splitlines() or ["no namespaces here"])[-1]
    os.environ[MARK] = "1"
    sys.stdout.flush()
    # The first process there inherits what killed applications leave; a shell buries it.
    buries = ("sh", "-c", '"$@"; exit $?', "sh")
    os.execvp(UNSHARE[0], [*UNSHARE, *buries, sys.executable, "-m", "chaos", *arguments])
