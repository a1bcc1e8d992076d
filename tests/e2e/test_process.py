"""Signals, secrets, and what the service manager is told."""

import re
import signal

from kit.clock import MS, S, boottime_ns, wait_until
from kit.notify import NotifySocket
from kit.redis_server import Redis


def test_a_second_signal_exits_now(start):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "20s", "--valid-for", "10s")
    assert a.wait_leader().valid_ms > 9000
    a.terminate()
    wait_until(lambda: a.state() == "resigning")
    began = boottime_ns()
    a.terminate()
    status = a.wait(5)
    assert boottime_ns() - began < 2 * S
    assert status != 0


def test_sigint_drains_like_sigterm(start, redis):
    a = start("pod-a", "--mode", "efficiency", "--drain", "none")
    a.wait_leader()
    a.signal(signal.SIGINT)
    assert a.wait(5) == 0 and redis.lease() is None


def test_a_drain_that_takes_too_long_leaves_the_lease_to_lapse(start, redis):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "20s", "--valid-for", "10s",
              "--drain", "500ms")
    a.wait_leader()
    began = boottime_ns()
    a.terminate()
    a.wait(5)
    assert 400 * MS < boottime_ns() - began < 3 * S
    assert redis.lease() is not None, "released while a validity still ran"


def test_a_pending_sidecar_ends_at_once(start):
    a = start("pod-a", "--ttl", "30s")
    a.wait_state("pending")
    began = boottime_ns()
    assert a.stop() == 0
    assert boottime_ns() - began < 3 * S


def test_it_ends_with_the_store_down(start, redis):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    a.wait_leader()
    redis.freeze()
    a.terminate()
    a.wait(15)
    redis.thaw()


def test_sighup_reads_the_password_file_again(folder, closing, start):
    redis = closing(Redis(folder + "/secret"))
    redis.cli("CONFIG", "SET", "requirepass", "old-secret")
    file = folder + "/password"
    with open(file, "w") as f:
        f.write("old-secret\n")
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=redis.url,
              env={"GAVEL_STORE_PASSWORD_FILE": file})
    first = a.wait_leader()

    from kit.resp import Resp
    with Resp(redis.port) as admin:
        admin.call("AUTH", "old-secret")
        admin.call("CONFIG", "SET", "requirepass", "new-secret")
        admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        admin.call("CLIENT", "KILL", "TYPE", "pubsub")
    with open(file, "w") as f:
        f.write("new-secret\n")
    a.signal(signal.SIGHUP)
    wait_until(lambda: a.check().token >= first.token and a.metrics()["gavel_store_up"] == 1, 10)
    a.wait_leader()
    text = a.log()
    assert "old-secret" not in text and "new-secret" not in text


def test_a_half_failed_reread_keeps_both_secrets_whole(folder, closing, start):
    """The user file is read again, the password file cannot be: nobody uses freed memory."""
    redis = closing(Redis(folder + "/acl"))
    redis.cli("ACL", "SETUSER", "ann", "on", ">secret", "allkeys", "allchannels", "allcommands")
    redis.cli("ACL", "SETUSER", "bob", "on", ">secret", "allkeys", "allchannels", "allcommands")
    user, password = folder + "/user", folder + "/password"
    for file, text in ((user, "ann\n"), (password, "secret\n")):
        with open(file, "w") as f:
            f.write(text)
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=redis.url,
              env={"GAVEL_STORE_USER_FILE": user, "GAVEL_STORE_PASSWORD_FILE": password})
    a.wait_leader()
    with open(user, "w") as f:
        f.write("bob\n")
    with open(password, "w"):
        pass
    a.signal(signal.SIGHUP)
    wait_until(lambda: "reload-failed" in a.log(), 10, "the failure is told")
    redis.cli("ACL", "DELUSER", "ann")  # ends its connections too
    wait_until(lambda: "user=bob" in redis.cli("CLIENT", "LIST"), 10, "it comes back as bob")
    a.wait_leader()


def test_a_wrong_password_is_named_and_never_shown(folder, closing, start):
    redis = closing(Redis(folder + "/secret"))
    redis.cli("CONFIG", "SET", "requirepass", "right")
    a = start("pod-a", "--ttl", "1s", store=redis.url,
              env={"GAVEL_STORE_PASSWORD": "wrong-one-1234"})
    wait_until(lambda: a.status()["reason"] == "store-refused", 10)
    wait_until(lambda: re.search("password|WRONGPASS|NOAUTH", a.log()), 5, "a word in the log")
    assert "wrong-one-1234" not in a.log()
    with open(f"/proc/{a.pid}/cmdline") as f:
        assert "wrong-one" not in f.read()


def test_the_service_manager_is_told(folder, closing, start):
    manager = closing(NotifySocket(folder))
    a = start("pod-a", "--mode", "efficiency",
              env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "600000"})
    manager.wait_for("READY=1")
    manager.wait_for("WATCHDOG=1")
    first = manager.wait_for("WATCHDOG=1")
    second = manager.wait_for("WATCHDOG=1")
    assert second - first < 600 * MS
    assert "STOPPING=1" not in manager.lines
    a.terminate()
    manager.wait_for("STOPPING=1")
    assert a.wait() == 0


def test_ready_does_not_wait_for_the_store(folder, closing, start, redis):
    redis.kill()
    manager = closing(NotifySocket(folder))
    start("pod-a", env={"NOTIFY_SOCKET": manager.path})
    manager.wait_for("READY=1", 3)


def test_a_pause_is_measured_and_counted(start):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    a.wait_leader()
    a.freeze()
    since = boottime_ns()
    # Longer than the second from one heartbeat to the next: with a renewal under way nothing else
    # has to be due before the deadline.
    wait_until(lambda: boottime_ns() - since > 1500 * MS)
    a.thaw()
    wait_until(lambda: a.metrics()["gavel_loop_stalls_total"] >= 1, 5)


def test_each_change_of_state_is_logged_once_with_token_and_reason(start):
    a = start("pod-a", "--ttl", "600ms")
    token = a.wait_leader().token
    assert a.stop() == 0
    changes = [(e["from"], e["to"]) for e in a.event("state")]
    assert changes[0][0] == "unknown" and changes[-1][0] in ("leader", "resigning")
    assert all(left[1] == right[0] for left, right in zip(changes, changes[1:]))
    led = a.event("state", to="leader")
    assert len(led) == 1 and led[0]["token"] == token and led[0]["reason"]
    for event in a.events:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])
        assert event["level"] in ("debug", "info", "warn", "error") and event["event"]


def test_a_full_pipe_on_stderr_does_not_stop_the_sidecar(start, folder):
    """Nobody reads what it logs: answers go on."""
    a = start("pod-a", "--ttl", "300ms", "--mode", "efficiency", "--log-level", "debug")
    a.wait_leader()
    import os
    import subprocess
    from kit.sidecar import GAVEL, clean_env
    end, write = os.pipe()
    with subprocess.Popen([GAVEL, "run", "--store", "redis://127.0.0.1:1", "--election", "x",
                           "--ttl", "300ms", "--http", "off", "--health", "off", "--socket",
                           folder + "/full.sock", "--page-dir", "off", "--log-level", "debug"],
                          env=clean_env(), stderr=write) as process:
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 4096)
        except BlockingIOError:
            pass
        wait_until(lambda: os.path.exists(folder + "/full.sock"), 10)
        from kit.sidecar import run
        for _ in range(3):
            asked = run(GAVEL, "check", "--socket", folder + "/full.sock")
            assert asked.returncode == 1, asked
        process.terminate()
        process.wait(10)
    os.close(end)
    os.close(write)
