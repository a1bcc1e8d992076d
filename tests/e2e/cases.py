"""What the tests of Redis' failures share: what an operator is told, who kept leading."""

from kit.clock import MS, boottime_ns, wait_until
from kit.latency import Latency
from kit.sidecar import GAVELCTL, run


def told(sidecar, election="", warning=None, timeout=10, **members):
    """Waits until an operator is told so, by the JSON and by `gavelctl status`: the members have
    those values, of `detail` it is a part; `warning` is among the warnings."""
    def right():
        status = sidecar.status(election)
        fits = all(part in status[k] if k == "detail" else part == status[k]
                   for k, part in members.items())
        if not fits or (warning and warning not in status["warnings"]):
            return None
        shown = run(GAVELCTL, "status", "--socket", sidecar.socket_path,
                    *([election] if election else []))
        assert shown.returncode == 0, shown.stderr
        words = [v for v in (*members.values(), warning) if isinstance(v, str)]
        return status if all(w in shown.stdout for w in words) else None

    try:
        return wait_until(right, timeout, f"{sidecar.identity} tells {members} {warning or ''}")
    except AssertionError as e:
        raise AssertionError(f"{e}\n{sidecar.status(election)}\n{sidecar.log()[-3000:]}") from None


def logged(sidecar, *parts, timeout=5):
    """Waits for a line of the log with all those texts in it."""
    return wait_until(lambda: [t for t in list(sidecar.text) if all(p in t for p in parts)],
                      timeout, f"{sidecar.identity} logs {parts}")[-1]


def first_wait(pods, token, election="a"):
    """Why the first grant after that token had to wait, by the logs."""
    waits = [e for p in pods for e in p.event("state", to="pending", election=election)
             if e["token"] > token]
    return min(waits, key=lambda e: e["token"])["detail"] if waits else None


def lost(sidecar, reason, election="a"):
    """Waits until it has ceased to lead, and why: for that reason, or because the host was so late
    that its lease had run out before. Returns the event."""
    events = wait_until(lambda: sidecar.event("state", election=election, **{"from": "leader"}),
                        10, f"{sidecar.identity} does not lead any more")
    assert events[0]["reason"] in (reason, "deadline", "paused"), events[0]
    return events[0]


def newest(sampler):
    """The greatest token that anybody has led with."""
    return max(c.token for c in list(sampler.changes))


def led_after(sampler, token):
    """The first to lead with a greater one."""
    return wait_until(lambda: [c for c in list(sampler.changes) if c.token > token], 15,
                      f"a leader after {token}")[0]


def nonce_of(value):
    return value.split(" ")[0]


def leader_of(pods, election=""):
    return wait_until(lambda: [p for p in pods if p.leads(election)], 15, "one of them leads")[0]


def settled(pods, election=""):
    """Waits until one of them leads and the others say that it does. Returns it first."""
    def agreed():
        pairs = [(p, p.status(election)) for p in pods]
        leaders = [p for p, s in pairs if s["leader"]]
        if len(leaders) != 1 or any((s["state"], s["reason"], s["holder"]) != (
                "follower", "held-by-other", leaders[0].identity)
                for p, s in pairs if p is not leaders[0]):
            return None
        return sorted(pods, key=lambda p: p is not leaders[0])
    try:
        return wait_until(agreed, 15, "one leads, the others know")
    except AssertionError as e:
        logs = "\n".join(p.log()[-2000:] for p in pods)
        raise AssertionError(f"{e}\n{logs}") from None


class Host:
    """Whether this host ran well enough to judge who kept leading: nobody keeps a lease whose
    process was not run in time."""

    def __init__(self, ttl_ms):
        self._latency = Latency()
        self._ttl_ns = ttl_ms * MS

    def in_time(self, since, what=""):
        """False, and says so: what depends on it is not to be judged."""
        # A renewal that should have come before counts too.
        late_ns = self._latency.worst_ns(since - self._ttl_ns, boottime_ns())
        if late_ns > self._ttl_ns // 20:
            print(f"{what} not judged: the host was late by {late_ns // MS} ms")
        return late_ns <= self._ttl_ns // 20

    def kept(self, observer, sidecar, election="a", what=""):
        """It led on one grant without a gap since the observer was made or restarted."""
        if not self.in_time(observer.since, what):
            return
        share = observer.share(sidecar, election)
        tokens = observer.tokens(election)
        assert share >= 0.99 and len(tokens) == 1, \
            f"{what}: led {share:.1%} of the time, {tokens}:\n{sidecar.log()[-3000:]}"

    def close(self):
        self._latency.close()
