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


def pending_detail(sidecar, election="a"):
    """Why its last grant had to wait, by its log."""
    return sidecar.event("state", to="pending", election=election)[-1]["detail"]


def nonce_of(value):
    return value.split(" ")[0]


def leader_of(pods, election=""):
    return wait_until(lambda: [p for p in pods if p.leads(election)], 15, "one of them leads")[0]


class Host:
    """Whether this host ran well enough to judge who kept leading: nobody keeps a lease whose
    process was not run in time."""

    def __init__(self, ttl_ms):
        self._latency = Latency()
        self._bound_ns = ttl_ms * MS // 8

    def kept(self, observer, sidecar, election="a", what=""):
        """It led on one grant without a gap since the observer was made or restarted."""
        late_ns = self._latency.worst_ns(observer.since, boottime_ns())
        if late_ns > self._bound_ns:
            print(f"{what} not judged: the host was late by {late_ns // MS} ms")
            return
        share = observer.share(sidecar, election)
        tokens = observer.tokens(election)
        assert share >= 0.99 and len(tokens) == 1, \
            f"{what}: led {share:.1%} of the time, {tokens}:\n{sidecar.log()[-3000:]}"

    def close(self):
        self._latency.close()
