"""Every client against a leader, a follower, a dead socket, a slow sidecar, one that restarts, one
that is stopped, and a handover. All languages go through a scenario together, each with an election
of its own."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients.fake_sidecar import FakeSidecar
from clients.languages import ATTACHES, LANGUAGES, MISSING, WANTED, build_go, build_java
from e2e.told import pause_s
from kit.clock import MS, boottime_ns, wait_until
from kit.clockshim import ClockShim

# Long enough that a busy machine does not end it.
STABLE = ("--ttl", "30s", "--mode", "efficiency", "--valid-for", "5s")


@pytest.fixture(scope="session", autouse=True)
def built():
    """Go and Java are compiled at the same time."""
    with ThreadPoolExecutor() as pool:
        builds = [pool.submit(build) for name, build in (("go", build_go), ("java", build_java))
                  if name in LANGUAGES]
    for build in builds:
        build.result()


@pytest.fixture
def pod(start):
    """pod(identity, *options): a sidecar on the test's lock files, with an election for each
    language."""
    return lambda identity, *options, store, **kwargs: start(
        identity, *options, store=store, elections=[*LANGUAGES, "more"], http="off", health="off", **kwargs)


@pytest.fixture
def pods(pod, folder):
    """Two sidecars; the first leads everywhere."""
    def make(*options):
        store = "local:" + folder + "/state"
        os.makedirs(folder + "/state", exist_ok=True)
        first = pod("pod-a", *options, store=store)
        for language in LANGUAGES:
            first.wait_leader(election=language)
        return first, pod("pod-b", *options, store=store)
    return make


@pytest.mark.parametrize("language", WANTED)
def test_all_that_follows_is_about(language):
    if language in MISSING:
        pytest.skip(MISSING[language])
    assert language in LANGUAGES


def everyone(program, sidecar, languages=LANGUAGES):
    return {x: program(x, sidecar.socket_path, x) for x in languages if x in LANGUAGES}


def asked_all(one):
    """What it says when asked in each of the three ways."""
    return one.ask("is_leader"), one.ask("token"), one.ask("require")


NOT_LEADER = ("false", "-", "not-leader")


def test_a_leader_and_a_follower(pods, program):
    leader, follower = pods(*STABLE)
    for language, one in everyone(program, leader).items():
        token = str(leader.check(language).token)
        assert asked_all(one) == ("true", token, token), language
    for language, one in everyone(program, follower).items():
        assert asked_all(one) == NOT_LEADER, language


def test_a_dead_socket(pods, program, folder):
    leader, _ = pods(*STABLE)
    programs = everyone(program, leader)
    leader.kill9()
    leader.wait()
    assert os.path.exists(leader.socket_path)
    for language, one in programs.items():
        assert asked_all(one) == NOT_LEADER, language
    os.unlink(leader.socket_path)
    for language, one in programs.items():
        assert asked_all(one) == NOT_LEADER, language


def test_an_election_that_is_not_there(pods, program):
    leader, _ = pods(*STABLE)
    for language in LANGUAGES:
        for name in ("other", ""):  # with several elections one has to be named
            assert asked_all(program(language, leader.socket_path, name)) == NOT_LEADER, language


def test_a_slow_sidecar_is_not_trusted_for_the_time_that_it_took(program, folder, closing):
    """The validity counts from before the question: an answer may come when it is over."""
    fake = closing(FakeSidecar(folder + "/fake"))
    programs = {x: program(x, fake.path, "a") for x in LANGUAGES}
    fake.answer = lambda: fake.leader(valid_ms=30_000)
    for language, one in programs.items():
        assert one.ask("is_leader") == "true", language
        assert fake.asked[-1] == b"check a\n"
    fake.delay_s = 0.35
    fake.answer = lambda: fake.leader(valid_ms=300)
    for one in programs.values():
        one.tell("is_leader")
    for language, one in programs.items():
        assert one.wait_for("is_leader", count=2)[1] == "false", language
    # It does not answer at all: no client waits for ever.
    fake.answer = None
    for one in programs.values():
        one.tell("token")
    for language, one in programs.items():
        assert one.wait_for("token")[1] == "-", language


@pytest.mark.parametrize("answer", [
    b"", b"\n", b"leader\n", b"leader 5 2000\n", b"leader -5 2000 %d\n", b"leader 5 -1 %d\n",
    b"leader 5 2000 %d", b"leader x 2000 %d\n", b" leader 5 2000 %d\n", b"leader 5 2000 %d 7\n",
    b"leaders 5 2000 %d\n", b"follower leader 5 2000 %d\n", b"error busy leader 5 2000 %d\n",
    b"leader 5 2000 %d\0\n", b"leader 12345678901234567890123 2000 %d\n", b"leader 5 2e3 %d\n",
    b"leader 5 2000 %d" + b"0" * 20000 + b"\n"],
    ids=lambda a: a.decode()[:36].strip("\0").encode("unicode_escape").decode())
def test_strange_answers_are_not_leader(strange, answer):
    fake, programs = strange
    later = boottime_ns() + 2_000_000_000
    fake.answer = answer.replace(b"%d", str(later).encode())
    for one in programs.values():
        one.tell("is_leader")
    for language, one in programs.items():
        count = len(one.all("is_leader"))
        said = one.wait_for("is_leader", count=max(count, fake.rounds + 1))[1]
        assert said == "false", (language, answer[:60])
    fake.rounds += 1


@pytest.fixture(scope="module")
def strange():
    """One fake sidecar for all the strange answers. For a shell gavelctl has to know them: it has
    its own tests."""
    import tempfile

    from clients.languages import Program
    with tempfile.TemporaryDirectory(prefix="gv-") as folder:
        fake = FakeSidecar(folder + "/fake")
        fake.rounds = 0
        programs = {x: Program(x, fake.path, "a") for x in LANGUAGES}
        yield fake, programs
        for one in programs.values():
            one.close()
        fake.close()


def test_changes_and_the_attachment_live_through_a_restart(pods, program):
    leader, follower = pods(*STABLE)
    follower.stop()
    programs = everyone(program, leader)
    for language, one in programs.items():
        one.tell("watch")
        if language in ATTACHES:
            one.tell("attach")
    before = {x: int(one.wait_for("change", "true")[2]) for x, one in programs.items()}
    attached = [x for x in LANGUAGES if x in ATTACHES]
    for language in attached:
        wait_until(lambda x=language: leader.event("application", election=x, what="attached"))
        one = programs[language]
        wait_until(lambda p=one: p.ask("is_leader") == "true", 10, f"{language} has the lease")
        assert one.ask("token") == str(before[language])
    leader.kill9()
    leader.wait()
    killed = boottime_ns()
    for language, one in programs.items():
        one.wait_for("change", "false")
        # An attached application does not wait for the end of what it was told.
        assert language not in ATTACHES or asked_all(one) == NOT_LEADER, language
    leader.start()
    for language, one in programs.items():
        after = int(one.wait_for("change", "true", count=2)[2])
        assert after > before[language]
        wait_until(lambda p=one: p.ask("token") == str(after), 10, f"{language} leads again")
        assert [w[1] for w in one.all("change")] == ["true", "false", "true"], language
    # A resignation is told to the one that is attached.
    with ThreadPoolExecutor(len(attached)) as pool:
        answers = list(pool.map(lambda x: leader.ask("resign " + x, 60), attached))
    assert answers == ["ok"] * len(attached)
    for language in attached:
        assert leader.event("application", election=language, what="attached"), language
        revoked = programs[language].wait_for("revoked")
        assert int(revoked[2]) > killed
        wait_until(lambda x=language: leader.event("application", election=x, what="done"))
        assert asked_all(programs[language]) == NOT_LEADER, language


def test_a_handover_waits_until_the_work_has_stopped(pods, program):
    # Nothing but `done` lets the other one lead within two minutes.
    first, second = pods("--ttl", "1h", "--drain", "2m", "--valid-for", "200ms",
                         "--mode", "efficiency")
    leading, other = everyone(program, first), everyone(program, second)
    tokens = {}
    for language, one in leading.items():
        one.tell("run")
        tokens[language] = one.wait_for("started")[1]
        assert tokens[language] == str(first.check(language).token), language
        other[language].tell("run")
    for language in LANGUAGES:
        wait_until(lambda x=language: second.event("application", election=x, what="attached"))
    first.terminate()
    for language, one in leading.items():
        assert one.wait_for("cancelled")[1] == tokens[language], language
    for language, one in leading.items():
        assert not second.leads(language) and not other[language].all("started"), language
        assert not first.event("application", election=language, what="done")
        one.tell("finish")
        one.wait_for("stopped")
        token = other[language].wait_for("started")[1]
        assert int(token) > int(tokens[language]), language
    assert first.wait() == 0 and first.event("drained")
    for language, one in leading.items():
        ends = [e["what"] for e in first.event("application", election=language)]
        assert language == "sh" or "done" in ends, language


def test_work_that_ends_by_itself_gives_leadership_away(pods, program):
    # Nothing but the end of the attachment lets the other one lead within an hour.
    first, second = pods("--ttl", "1h", "--valid-for", "100ms", "--mode", "efficiency")
    leading, other = everyone(program, first), everyone(program, second)
    for language, one in leading.items():
        one.tell("run")
        one.wait_for("started")
        other[language].tell("run")
        one.tell("finish")
        one.wait_for("returned")
        assert not one.all("cancelled"), language
        other[language].wait_for("started")
        assert not first.leads(language)


def test_a_restart_cancels_the_work_and_runs_it_again(pods, program):
    first, second = pods(*STABLE)
    second.stop()
    programs = everyone(program, first)
    for one in programs.values():
        one.tell("run")
    tokens = {x: one.wait_for("started")[1] for x, one in programs.items()}
    first.kill9()
    first.wait()
    for language, one in programs.items():
        assert one.wait_for("cancelled")[1] == tokens[language]
    first.start()
    pause_s(0.5)  # in which a client tries it several times
    for language, one in programs.items():
        # Attached again only when the old work has ended.
        assert not first.event("application", election=language, what="attached"), language
        one.tell("finish")
        one.wait_for("stopped")
        assert int(one.wait_for("started", count=2)[1]) > int(tokens[language])


def test_a_suspended_host_ends_the_work(pods, program, folder):
    """Sleeps do not count the time for which a host is suspended: the clocks have moved on when it
    wakes up, and that is looked for. (Go takes its clocks from the kernel itself.)"""
    shim = ClockShim(folder)
    first, _ = pods("--ttl", "1h", "--mode", "efficiency")
    programs = {x: program(x, first.socket_path, x, env=shim.env) for x in ATTACHES if x != "go"}
    for one in programs.values():
        one.tell("run")
        one.wait_for("started")
    shim.step(seconds=7200, boot=7200)
    for one in programs.values():
        one.wait_for("cancelled")  # the next word of the lease comes 20 minutes later
        one.tell("finish")
        one.wait_for("stopped")


def test_a_stopped_sidecar_cannot_keep_the_work_running(redis, pod, program, timely):
    """Nothing is heard of it: the work is cancelled by the clock, before another leads."""
    options = ("--ttl", "2s", "--valid-for", "2s")
    first = pod("pod-a", *options, store=redis.url)
    programs = everyone(program, first)
    for language, one in programs.items():
        first.wait_leader(election=language)
        one.tell("run")
    tokens = {x: one.wait_for("started")[1] for x, one in programs.items()}
    second = pod("pod-b", *options, store=redis.url)
    for language in LANGUAGES:
        second.wait_state("follower", election=language)
    first.signal(signal.SIGSTOP)
    led = {}

    def others_lead():
        for language in LANGUAGES:
            if language not in led and second.check(language).leader:
                led[language] = boottime_ns()
        return len(led) == len(LANGUAGES)
    wait_until(others_lead, 20, "the other one leads everywhere")
    for language, one in programs.items():
        _, token, cancelled = one.wait_for("cancelled")
        assert token == tokens[language]
        late = int(cancelled) - led[language]
        assert late < 0, f"{language}: {late / MS} ms after another led"
        assert one.ask("is_leader") == "false", language
        one.tell("finish")
    first.signal(signal.SIGCONT)
