"""After a round of faults one has to lead: what is held against gavel, and what against the host."""

import enum

from kit.clock import S

LATE_NS = 30 * S  # so much longer than it should take at most may pass until one leads again
PATIENCE = 4      # times as long we wait on a host that gives leases no time at all


class Found(enum.Enum):
    WAITS = 0
    LED = 1
    BROKEN = 2
    UNJUDGED = 3


def until_ns(at, bound_ns):
    return at + bound_ns + LATE_NS


def longest_quiet_ns(start, end, late):
    """The longest piece of that time in which the host was not late; `late`: (since, until)."""
    longest = 0
    for since, until in sorted(late):
        longest = max(longest, min(since, end) - start)
        start = max(start, until)
    return max(longest, end - start)


def judge(at, now, led, bound_ns, late):
    """`at`: all faults were over; `led`: when one led, or None so far; `bound_ns`: within that time
    one leads on a quiet host, whatever was before. So a late host excuses only if it had no such
    time: one late moment excuses no more than itself."""
    until = until_ns(at, bound_ns)
    if led is not None and led <= until:
        return Found.LED
    end = now if led is None else led
    if end <= until:
        return Found.WAITS
    if longest_quiet_ns(at, end, late) >= bound_ns:
        return Found.BROKEN
    if led is None and now <= at + PATIENCE * (until - at):
        return Found.WAITS
    return Found.UNJUDGED
