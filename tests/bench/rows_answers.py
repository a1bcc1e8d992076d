"""How fast a question is answered: the socket, HTTP, the shared page."""

import json
import re
import subprocess

from bench.figures import at_least, at_most, median, number, p99, ratios, split, spread, told
from bench.stand import lines_of, need, program

ADDRESS = "127.0.0.1"


def leader(stand, **kwargs):
    sidecar = stand.sidecar("--mode", "efficiency", store=f"local:{stand.folder}/locks", **kwargs)
    sidecar.wait_leader()
    return sidecar


def by_block(values, blocks, of):
    """One figure for each of the blocks that follow each other in the values."""
    size = len(values) // blocks
    return [of(values[i * size:(i + 1) * size]) for i in range(blocks)]


def socket_one(stand):
    sidecar = leader(stand)
    reply = sidecar.ask("check")
    bare = stand.folder + "/bare.sock"
    stand.server("bare", bare, reply)
    blocks = stand.rounds(100, 20)
    with stand.placed(sidecar):
        took = split(lines_of("ask", "one", "line", blocks, 1000, sidecar.socket_path, "check\\n",
                              bare, "check\\n"))
    ours, theirs = ([v / 1000 for v in took[i]] for i in (0, 1))
    for name, of, goal in (("p50", median, 1.25), ("p99", p99, 1.5)):
        pairs = ratios(by_block(ours, blocks, of), by_block(theirs, blocks, of))
        yield at_most(f"socket check, one client, {name}", f"{number(of(ours))} µs",
                      f"{number(of(theirs))} µs, a bare ping-pong of the same bytes",
                      median(pairs), goal)


def throughput(stand, sidecar, name, kind, clients, ours, theirs, peer, goal):
    """`ours` and `theirs` are addresses with their questions."""
    with stand.placed(sidecar, apart=clients > 1):
        found = split(lines_of("ask", "many", kind, clients, stand.rounds(40, 8), 200, *ours,
                               *theirs))
    pairs = ratios(found[0], found[1])
    return at_least(name, f"{number(median(found[0]) / 1000)} k/s",
                    f"{number(median(found[1]) / 1000)} k/s, {peer}", median(pairs), goal)


def socket_many(stand):
    sidecar = leader(stand)
    echo = stand.folder + "/echo.sock"
    stand.server("echo", echo)
    question = "check\\n"
    yield throughput(stand, sidecar, "socket check, 64 clients", "line", 64,
                     (sidecar.socket_path, question), (echo, question), "libuv's echo server", 0.9)


def http(stand):
    sidecar = leader(stand, http="localhost:0")
    body = sidecar.request("/v1/leader").body.decode()
    assert json.loads(body)["leader"] is True
    port = stand.server("fixed", body)
    question = "GET /v1/leader HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"
    for clients in (1, 64):
        yield throughput(stand, sidecar, f"HTTP check, keep-alive, {clients} client{'s' * (clients > 1)}",
                         "http", clients, (str(sidecar.http_port), question), (port, question),
                         "libmicrohttpd, a fixed reply", 0.85)


def page(stand):
    sidecar = leader(stand)
    path = sidecar.page_path()
    found = split(lines_of("page", path, stand.rounds(2000, 300), 1000))
    what = "page check"
    yield at_most(what, spread(found[0], "ns"), f"{spread(found[1], 'ns')}, one clock_gettime",
                  median(ratios(found[0], found[1])), 2)
    yield told(what + ", beside BOOTTIME and REALTIME", f"{number(median(found[0]))} ns",
               f"{number(median(found[2]))} ns", number(median(ratios(found[0], found[2]))) + " ×")
    yield page_calls(path)


def system_calls(path, count):
    """How many system calls the program makes in all, by strace's own sum."""
    done = subprocess.run(["strace", "-c", "-f", program("page"), path, str(count)], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return int(re.search(r"^100\.00\s.*?(\d+)(?:\s+\d+)?\s+total$", done.stderr,
                         re.MULTILINE).group(1))


def page_calls(path):
    need("strace", "strace")
    few, many = system_calls(path, 1000), system_calls(path, 101_000)
    row = at_most("page check, system calls in 100,000", str(many - few), "strace", many - few + 1,
                  1)
    row.ratio, row.goal = str(many - few), "0"
    return row


GROUPS = [("socket check, one client", socket_one), ("socket check, 64 clients", socket_many),
          ("HTTP check", http), ("page check", page)]
