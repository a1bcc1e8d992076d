"""Time as the sidecar sees it: CLOCK_BOOTTIME in nanoseconds."""

import time

MS = 1_000_000
S = 1_000_000_000


def boottime_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wait_until(condition, timeout=10.0, what=None, poll=0.005):
    """Asks until the condition gives something true, and returns that."""
    end = boottime_ns() + int(timeout * S)
    while True:
        last = condition()
        if last:
            return last
        if boottime_ns() > end:
            name = what or getattr(condition, "__name__", "condition")
            raise AssertionError(f"not within {timeout} s: {name} (last: {last!r})")
        time.sleep(poll)
