"""The shared page: readers that ask it never hear more than those who ask the sidecar."""

import os
import re
import shutil
import signal
import stat
import subprocess

import pytest

from kit import page
from kit.application import Application
from kit.clock import MS, S, boottime_ns, wait_until
from kit.clockshim import ClockShim
from kit.page import PageReader
from kit.sidecar import GAVEL, TIMING, run

NOBODY = 65534


@pytest.fixture
def read(closing):
    """read(sidecar, ...): a reader of its page."""
    return lambda sidecar, election="a", **kwargs: closing(
        PageReader(sidecar.page_path(election), **kwargs))


@pytest.fixture
def leader(start):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "2s")
    a.wait_leader()
    return a


def agree(sidecar, reader):
    """One and the same, asked one after the other; None: it changed in between."""
    before = sidecar.status()
    reading = reader.check()
    after = sidecar.status()
    if before["index"] != after["index"]:
        return None
    assert reading.state == before["state"], (reading, before)
    assert reading.token == (before["token"] or 0)
    assert reading.holder == ((before["holder"] or "-") if not reading.leader else "-")
    assert reading.problem == page.GOOD
    return True


def test_page_socket_and_http_say_the_same(start, read):
    a = start("pod-a", "--ttl", "1s")
    first = read(a)
    wait_until(lambda: agree(a, first) and a.state() == "pending")
    a.wait_leader()
    b = start("pod-b", "--ttl", "1s")
    second = read(b)
    b.wait_state("follower")
    for _ in range(20):
        wait_until(lambda: agree(a, first) and agree(b, second))
    reading = first.check()
    assert reading.leader and reading.token == a.request("/v1/leader").json()["token"]
    assert second.check().holder == "pod-a"


def test_a_reading_is_good_for_valid_for_and_never_beyond_the_lease(leader, read):
    reader = read(leader)
    for _ in range(200):
        reading = reader.check()
        told = leader.check()
        assert reading.leader and told.leader and reading.token == told.token
        assert 0 < reading.valid_ns <= 1600 * MS
        assert reading.deadline <= reading.receive + reading.valid_ns
        # ttl - margin after a renewal that was sent before now.
        assert reading.deadline <= boottime_ns() + 1600 * MS


def test_the_file(leader):
    found = os.lstat(leader.page_path())
    assert stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o644
    assert found.st_size == 4096
    leader.stop()
    assert not os.path.exists(leader.page_path())


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_reader_of_another_user(leader, read, folder):
    os.chmod(folder, 0o755)
    assert os.access(page.READER, os.X_OK)
    # The user needs a way to the program as well, wherever it was built.
    program = shutil.copy(page.READER, folder + "/reader")
    os.chmod(program, 0o755)
    done = subprocess.run([program, leader.page_path()], input="check\n", text=True, timeout=20,
                          capture_output=True, user=NOBODY, group=NOBODY, extra_groups=[])
    assert page.parse(done.stdout).leader, done.stdout + done.stderr
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(["sh", "-c", f"echo x >>{leader.page_path()}"], check=True, user=NOBODY,
                       stderr=subprocess.DEVNULL, group=NOBODY, extra_groups=[])


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_stopped_or_dead_sidecar_is_not_leader_at_the_deadline(start, read, how):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "1s", "--valid-for", "300ms")
    a.wait_leader()
    reader = read(a)
    reader.wait_leader()
    a.signal(how)
    # No renewal can be under way any more: what the page says now is the last word.
    wait_until(lambda: how == signal.SIGKILL and a.process.poll() is not None or
               how == signal.SIGSTOP and "T" in status_of(a.pid), 10)
    stopped = boottime_ns()
    reader.follow(stopped + 2 * S)
    readings = reader.followed()
    *before, last = readings
    assert all(r.leader for r in before) and not last.leader, readings
    assert last.state == "unknown" and last.problem == page.GOOD and last.token == 0
    # ttl - margin after the last renewal, which was sent before the stop.
    assert last.send <= stopped + (900 if TIMING else 1500) * MS
    assert not reader.check().leader
    assert os.path.exists(a.page_path())
    if how == signal.SIGSTOP:
        a.thaw()


def status_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def test_a_restarted_sidecar_is_found(start, read):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "1s")
    a.wait_leader()
    reader = read(a)
    first = reader.wait_leader()
    a.kill9()
    a.wait()
    a.start()
    second = wait_until(lambda: [r for r in [reader.check()]
                                 if r.leader and r.token > first.token], 20)[0]
    assert second.token == a.check().token


def test_a_drain_waits_for_what_was_read_from_the_page(start, read, redis, timely):
    """Nobody asks but by the page, and the sidecar cannot know who did."""
    a = start("pod-a", "--mode", "efficiency", "--ttl", "5s", "--valid-for", "700ms",
              health="off")
    wait_until(lambda: redis.lease() is not None)
    reader = read(a)
    reader.wait_leader()
    reader.follow(boottime_ns() + 4 * S)
    began = boottime_ns()
    a.terminate()
    assert a.wait() == 0
    ended = boottime_ns()
    readings = reader.followed()
    assert redis.lease() is None, "not released"
    # On a busy host a renewal may come late, and the page be without an answer for a moment.
    cleared = next((r for r in readings if r.state == "resigning"), None)
    assert cleared and cleared.receive > began, readings
    # Had another reading been made just before that, it would still have been good for so long.
    assert ended - cleared.send > 699 * MS, (ended - cleared.send) / MS


def test_a_resignation_waits_too(start, read, redis):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "5s", "--valid-for", "700ms")
    reader = read(a)
    reader.wait_leader()
    reader.follow(boottime_ns() + 3 * S)
    assert a.ask("resign") == "ok"
    ended = boottime_ns()
    readings = reader.followed()
    cleared = next(r for r in readings if not r.leader)
    assert ended - cleared.send > 699 * MS and redis.lease() is None


def test_the_next_leader_waits_for_the_readers_of_the_page(start, read):
    """Over handovers: no reading of one replica's page overlaps with another's."""
    options = ("--ttl", "2s", "--valid-for", "200ms")
    a, b = start("pod-a", *options), start("pod-b", *options)
    readers = {x.identity: read(x) for x in (a, b)}
    wait_until(lambda: a.leads() or b.leads(), 20)
    taken_over = 0
    for _ in range(3):
        until = boottime_ns() + 3 * S // 2
        old, new = (a, b) if a.leads() else (b, a)
        for reader in readers.values():
            reader.follow(until)
        assert old.ask("resign") == "ok"
        found = {name: reader.followed() for name, reader in readers.items()}
        cleared = next(r for r in found[old.identity] if not r.leader)
        taken = [r for r in found[new.identity] if r.leader]
        if taken:
            # The last reading of the old one was made before `cleared.send`, good for 200 ms.
            last = [r for r in found[old.identity] if r.leader and r.send < cleared.send]
            assert all(r.deadline <= taken[0].receive for r in last)
            assert taken[0].receive >= cleared.send + 199 * MS
            taken_over += 1
        wait_until(lambda: new.leads() or old.leads(), 20)
    assert taken_over > 0


def test_readers_beside_an_attached_application_are_waited_for(start, read, closing):
    """Others read the page too: what they were promised is short, and over before another leads."""
    options = ("--ttl", "2s", "--valid-for", "2s", "--require-app")
    pods = [start(f"pod-{n}", *options) for n in "ab"]
    apps = [closing(Application(pod)) for pod in pods]
    for app in apps:
        app.wait_for("attached")
    for _ in range(3):
        wait_until(lambda: any(p.leads() for p in pods), 20)
        old, new = apps if pods[0].leads() else apps[::-1]
        reader = read(old.sidecar)
        reader.wait_leader()
        reader.follow(boottime_ns() + 1 * S)
        killed = boottime_ns()
        old.kill9()
        taken = new.wait_leader(killed)[2]
        readings = reader.followed()
        last = [r for r in readings if r.leader and r.send < taken]
        assert last and all(0 < r.valid_ns <= 5 * MS for r in last)
        assert max(r.deadline for r in last) <= taken
        old.start()
        old.wait_for("attached")


def test_what_was_read_before_an_application_attached_is_waited_for(start, read, redis, closing):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "5s", "--valid-for", "700ms",
              health="off")
    reader = read(a)
    promised = reader.wait_leader()
    app = closing(Application(a))
    app.wait_for("attached")
    while (reading := reader.check()).valid_ns > 5 * MS:
        promised = reading
    app.kill9()
    wait_until(lambda: redis.lease() is None, 10)
    assert boottime_ns() >= promised.deadline


def test_clearing_on_loss_of_the_lock(start, read, redis):
    # It waits before it leads again: a reader that gets no CPU for a while still sees it cleared.
    a = start("pod-a", "--mode", "correctness", "--ttl", "1s")
    reader = read(a)
    reader.wait_leader()
    reader.follow(boottime_ns() + 4 * S)
    redis.cli("DEL", "gavel:{default/a}:lease")
    readings = reader.followed()
    cleared = next(i for i, r in enumerate(readings) if not r.leader)
    assert readings[cleared].problem == page.GOOD and readings[cleared].token == 0
    again = [r.token for r in readings[cleared:] if r.leader]
    assert again and again[0] > readings[0].token, readings


def test_a_reader_is_told_by_the_wall_clock_that_the_machine_was_paused(start, read, folder):
    """Only the reader hears of it: its sidecar is stopped. It needs a newer page afterwards."""
    a = start("pod-a", "--mode", "efficiency", "--ttl", "20s")
    a.wait_leader()
    shim = ClockShim(folder)
    reader = read(a, env=shim.env)
    assert reader.check().leader
    a.freeze()
    shim.step(60)
    assert not reader.check().leader
    shim.step(0)
    assert not reader.check().leader
    a.thaw()
    wait_until(lambda: reader.check().leader, 20)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare here")
def test_a_reader_in_another_time_namespace_refuses(leader, read):
    inside = ["unshare", "--time", "--boottime", "1000", "--fork", "--kill-child"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("no time namespace can be made here")
    reader = read(leader, prefix=inside)
    reading = reader.check()
    assert not reading.leader and reading.problem == page.OTHER_CLOCK
    assert read(leader).check().leader
    reader.stop()


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
def test_a_check_is_no_system_call(start, read, folder):
    a = start("pod-a", "--mode", "efficiency", "--ttl", "30s")
    a.wait_leader()
    trace = folder + "/trace"
    if subprocess.run(["strace", "-o", trace, "true"], capture_output=True).returncode != 0:
        pytest.skip("strace may not trace here")
    reader = read(a, prefix=("strace", "-f", "-o", trace))
    reader.wait_leader()
    count = 20000
    assert reader.spin(count) == count
    with open(trace) as f:
        lines = f.read().splitlines()
    begun = next(i for i, l in enumerate(lines) if "spin " in l)
    ended = next(i for i, l in enumerate(lines) if "spun " in l)
    between = [re.sub(r"^\d+ +", "", l) for l in lines[begun + 1:ended]]
    assert between == [], between[:5]


def test_a_second_sidecar_does_not_take_the_pages(leader, start, folder):
    """The readers of the first one would go by the leadership of the second."""
    done = run(GAVEL, "run", "--store", leader.store, "--election", "a", "--http", "off", "--health",
               "off", "--socket", folder + "/other.sock", "--page-dir", leader.page_dir)
    assert done.returncode == 1 and "--page-dir" in done.stderr and "another gavel" in done.stderr
    assert os.path.exists(leader.page_path())


def test_a_folder_that_cannot_be_used(folder, redis):
    done = run(GAVEL, "run", "--store", redis.url, "--election", "a", "--http", "off", "--health",
               "off", "--socket", folder + "/x.sock", "--page-dir", folder + "/none")
    assert done.returncode == 1
    assert "--page-dir " + folder + "/none" in done.stderr and "off" in done.stderr


def test_off(start, folder):
    a = start("pod-a", "--page-dir", "off", "--mode", "efficiency")
    a.wait_leader()
    assert not os.path.exists(a.page_path())


def test_many_elections(start, read):
    names = tuple(f"e{i}" for i in range(40))
    a = start("pod-a", "--mode", "efficiency", elections=names)
    for name in (names[0], names[17], names[39]):
        a.wait_leader(election=name)
        assert read(a, name).wait_leader().token == a.check(name).token
    assert sum(leads_to(f"/proc/{a.pid}/fd/{fd}", a.page_dir)
               for fd in os.listdir(f"/proc/{a.pid}/fd")) == 2  # folder and lock
    assert len([f for f in os.listdir(a.page_dir) if f.endswith(".lease")]) == 40


def leads_to(link, folder):
    try:
        return os.readlink(link).startswith(folder)
    except FileNotFoundError:  # closed in the meantime
        return False
