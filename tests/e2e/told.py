"""What an operator is told, wherever he looks, and how a sidecar lives through a fault."""

from kit.clock import MS, S, boottime_ns, wait_until
from kit.sidecar import GAVELCTL, TIMING, run

QUICK = ("--ttl", "1s", "--mode", "efficiency")


def wait_told(sidecar, reason, *words, state=None, timeout=8.0):
    """Waits until the JSON gives this reason, its text has all these words, and the state is the
    given one. `gavelctl status` and the verbose readiness say the same."""
    def told():
        status = sidecar.status()
        right = status["reason"] == reason and state in (None, status["state"]) \
            and all(w in status["detail"] for w in words)
        return status if right else None
    try:
        status = wait_until(told, timeout, f"{state or 'any state'}, {reason}: {words}")
    except AssertionError as e:
        raise AssertionError(f"{e}\n{sidecar.status()}\n" + "\n".join(sidecar.text[-12:])) from e
    assert sidecar.process.poll() is None

    def everywhere():
        shown = run(GAVELCTL, "status", "--socket", sidecar.socket_path).stdout
        verbose = sidecar.probe("/readyz?verbose").body.decode()
        return all(w in shown and w in verbose for w in words)
    if words:
        wait_until(everywhere, timeout, f"gavelctl and readiness tell of {words}")
    return status


def show_nowhere(sidecar, *secrets):
    """Of all that a sidecar tells, nothing has any of these in it."""
    shown = {"log": sidecar.log(), "status": sidecar.ask("status"),
             "gavelctl": run(GAVELCTL, "status", "--socket", sidecar.socket_path).stdout}
    for path in ("/metrics", "/readyz?verbose", "/leader"):
        shown[path] = sidecar.probe(path).body.decode()
    for path in ("/v1/elections", "/v1/elections/a", "/v1/leader"):
        shown[path] = sidecar.request(path).body.decode()
    with open(f"/proc/{sidecar.pid}/cmdline", encoding="utf-8") as f:
        shown["arguments"] = f.read()
    for where, text in shown.items():
        for secret in secrets:
            assert secret not in text, f"{where} shows {secret}"


def alive(*sidecars):
    for sidecar in sidecars:
        assert sidecar.process.poll() is None, sidecar.log()[-3000:]
        assert sidecar.probe("/livez").status == 200


def pair(start, ttl="1s", **kwargs):
    """(the leader, the follower), both in `correctness`; the follower has been up for W."""
    pods = [start(f"pod-{i}", "--ttl", ttl, "--drain", "none", fixed_port=True, **kwargs)
            for i in "ab"]
    leader = wait_until(lambda: next((p for p in pods if p.leads()), None), 15, "one leads")
    follower = next(p for p in pods if p is not leader)
    follower.wait_state("follower")
    return leader, follower


def pause_s(seconds):
    """For as long as a fault has to last."""
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > seconds * S, seconds + 10)


def within(since, seconds, sampler=None):
    """A bound in time, where the build is one in which those count."""
    now = boottime_ns()
    stalled = sampler.stalled_ns(since, now) if sampler else 0
    took = (now - since - stalled) / MS
    assert not TIMING or took <= seconds * 1000, f"{took} ms instead of {seconds} s"


def requests(sidecar, op, result):
    name = 'gavel_store_requests_total{op="%s",result="%s"}' % (op, result)
    return sidecar.metrics().get(name, 0)


def connections(sidecar):
    """How often it has come through to Redis. The log does not tell of each."""
    return len(sidecar.event("store-connected")[:1]) \
        + sidecar.metrics()["gavel_store_reconnects_total"]
