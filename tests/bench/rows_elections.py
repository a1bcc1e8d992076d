"""One sidecar with 1, 10, 100 and 1,000 elections: what that costs, and whether answers stay fast."""

import time

from bench.figures import at_most, median, number, ratios, split, told
from bench.stand import cpu_ns, lines_of
from e2e.footprint import status_field
from kit.clock import S, boottime_ns

COUNTS = (1, 10, 100, 1000)
TTL_S = 3
SLICE_S = 0.05


def scripts_called(redis):
    """How often a script was called so far."""
    for line in redis.cli("INFO", "commandstats").splitlines():
        if line.startswith("cmdstat_evalsha:"):
            return int(line.split("calls=")[1].split(",")[0])
    return 0


def started(stand, count):
    names = [f"e{i}" for i in range(count)]
    sidecar = stand.sidecar("--ttl", f"{TTL_S}s", "--namespace", f"n{count}",
                            "--mode", "efficiency", elections=names)
    sidecar.wait_leader(60, f"e{count - 1}")
    time.sleep(TTL_S)  # renewals have found their pace
    return sidecar


def watched(stand, sidecar, seconds):
    """Over that time: (CPU in ms a second, scripts a second, the busiest slice's share of what an
    even spread would put into it)."""
    begun, before = boottime_ns(), cpu_ns(sidecar.pid)
    counts = [scripts_called(stand.redis)]
    while boottime_ns() - begun < seconds * S:
        time.sleep(SLICE_S)
        counts.append(scripts_called(stand.redis))
    lasted = (boottime_ns() - begun) / S
    slices = [b - a for a, b in zip(counts, counts[1:])]
    rate = (counts[-1] - counts[0]) / lasted
    even = rate * lasted / len(slices)
    return (cpu_ns(sidecar.pid) - before) / 1e6 / lasted, rate, max(slices) / even if even else 0


def elections(stand):
    seconds = stand.rounds(12, 3)
    found, sidecars = {}, {}
    for count in COUNTS:
        sidecar = started(stand, count)
        found[count] = (*watched(stand, sidecar, seconds), status_field(sidecar.pid, "RssAnon"))
        sidecars[count] = sidecar
        # The others are asked beside the first one later, and cost nothing while they stand still.
        sidecar.freeze()
    yield from cost_rows(found)
    sidecars[1].thaw()
    sidecars[1].wait_leader(60, "e0")
    for count in COUNTS[1:]:
        sidecars[count].thaw()
        sidecars[count].wait_leader(60, "e0")
        yield check_row(stand, sidecars, count)
        sidecars[count].freeze()


def cost_rows(found):
    for count, (cpu, rate, busiest, anonymous) in found.items():
        yield told(f"{count} elections in one sidecar",
                   f"{number(cpu)} ms CPU/s, {number(rate)} scripts/s, {anonymous} KiB",
                   f"the busiest {SLICE_S * 1000:.0f} ms have {number(busiest)} × an even share")
    few, most = COUNTS[1], COUNTS[-1]
    for what, index, unit in (("CPU", 0, "ms/s"), ("scripts", 1, "/s")):
        one, all_of_them = found[few][index] / few, found[most][index] / most
        yield at_most(f"{what} an election, {most} against {few}",
                      f"{number(all_of_them)} {unit}", f"{number(one)} {unit}", all_of_them / one,
                      1.1)
    yield at_most(f"the busiest slice with {most} elections", f"{number(found[most][2])} ×",
                  "renewals spread evenly", found[most][2], 2)
    more = (found[most][3] - found[1][3]) / (most - 1)
    yield at_most("RssAnon of one more election", f"{number(more)} KiB", "", more, 2, "KiB")
    yield at_most("RssAnon with one election", f"{found[1][3]} KiB", "", found[1][3] / 1024, 3, "MiB")


def check_row(stand, sidecars, count):
    question = "check e0\\n"
    with stand.placed(sidecars[1], sidecars[count]):
        took = split(lines_of("ask", "one", "line", stand.rounds(60, 10), 500,
                              sidecars[count].socket_path, question,
                              sidecars[1].socket_path, question))
    pairs = ratios(*([median(took[i][k:k + 450]) for k in range(0, len(took[i]), 450)]
                     for i in (0, 1)))
    return at_most(f"socket check p50, {count} elections", f"{number(median(took[0]) / 1000)} µs",
                   f"{number(median(took[1]) / 1000)} µs with one", median(pairs), 1.1)


GROUPS = [("many elections", elections)]
