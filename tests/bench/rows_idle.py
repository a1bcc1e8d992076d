"""What it costs to hold a lock and do nothing, beside npm's redlock and `etcdctl elect`."""

import os
import subprocess
import time

from bench.figures import at_most, number, skipped, told
from bench.stand import cpu_ns, end
from e2e.footprint import status_field, wake_ups
from kit.clock import boottime_ns, wait_until
from kit.ports import free_port
from shutil import which

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.environ.get("GAVEL_BENCH_PEERS", "")
TTL_MS = 10_000  # etcdctl's own, redlock is given the same


def started(stand, command, **kwargs):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, **kwargs)
    stand.stack.callback(end, process)
    return process


def redlock(stand):
    """Its process, or why there is none."""
    if which("node") is None:
        return "no node here (package nodejs)"
    if not os.path.isdir(f"{PEERS}/node_modules/redlock"):
        return "redlock could not be installed by npm"
    process = started(stand, ["node", HERE + "/peers/redlock.js", PEERS, str(stand.redis.port),
                              str(TTL_MS)])
    return process if process.stdout.readline() == "ready\n" else "redlock ended"


def etcdctl(stand):
    if which("etcd") is None or which("etcdctl") is None:
        return "no etcd here (packages etcd-server, etcd-client)"
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    started(stand, ["etcd", "--data-dir", stand.folder + "/etcd", "--listen-client-urls", client,
                    "--advertise-client-urls", client, "--listen-peer-urls", peer,
                    "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"])
    environment = {**os.environ, "ETCDCTL_API": "3"}
    wait_until(lambda: subprocess.run(["etcdctl", "--endpoints", client, "endpoint", "health"],
                                      env=environment, capture_output=True).returncode == 0,
               20, "etcd answers", poll=0.1)
    process = started(stand, ["etcdctl", "--endpoints", client, "elect", "bench", "value"],
                      env=environment)
    return process if process.stdout.readline() else "etcdctl ended"


def used(pids, seconds):
    """{pid: (KiB of anonymous memory, wake-ups a second, CPU in ms a second)}, all of them at the
    same time."""
    begun, before = boottime_ns(), {p: (wake_ups(p), cpu_ns(p)) for p in pids}
    time.sleep(seconds)
    lasted = (boottime_ns() - begun) / 1e9
    return {p: (status_field(p, "RssAnon"), (wake_ups(p) - before[p][0]) / lasted,
                (cpu_ns(p) - before[p][1]) / 1e6 / lasted) for p in pids}


def idle(stand):
    sidecar = stand.sidecar("--ttl", f"{TTL_MS}ms", http="localhost:0", health=":0")
    peers = {"redlock": redlock(stand), "etcdctl": etcdctl(stand)}
    sidecar.wait_leader()
    for name, peer in list(peers.items()):
        if isinstance(peer, str):
            yield skipped(f"idle, beside {name}", peer)
            del peers[name]
    time.sleep(3)  # what belongs to the start is over
    found = used([sidecar.pid, *(p.pid for p in peers.values())], stand.rounds(40, 10))
    yield from idle_rows(found[sidecar.pid], {n: found[p.pid] for n, p in peers.items()})


def idle_rows(ours, peers):
    for index, what, unit in ((0, "RssAnon", "KiB"), (1, "wake-ups", "/s"), (2, "CPU", "ms/s")):
        name = f"one idle election, {what}"
        text = f"{number(ours[index])} {unit}"
        against = ", ".join(f"{n} {number(p[index])} {unit}" for n, p in peers.items())
        least = min((p[index] for p in peers.values()), default=0)
        yield (at_most(name, text, against, ours[index] / least, 0.5) if least else
               told(name, text))


GROUPS = [("idle", idle)]
