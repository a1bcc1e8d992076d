"""python -m chaos --store STORE [--seconds N | --hours H] [--seed S] [--out DIR]
[--mode MODE]; see run.sh"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import traceback

from chaos import private, report
from chaos.pods import Pod
from chaos.schedule import Rounds
from chaos.settings import PODS, draw
from chaos.stands import STANDS
from chaos.story import Story
from clients.fences import read_guard
from kit.clock import MS, S, boottime_ns
from kit.latency import Latency
from kit.redis_server import Redis
from kit.resp import Resp

ROUND_S = 6
LOOK_S = 30  # so often the history is judged while it grows
LEAST_ROUNDS = 2


def arguments(words):
    parser = argparse.ArgumentParser(prog="sh tests/chaos/run.sh")
    parser.add_argument("--store", choices=sorted(STANDS), required=True)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=60.0)
    length.add_argument("--hours", type=float)
    parser.add_argument("--seed", default=None)
    parser.add_argument("--renew", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("--out", default=None)
    parser.add_argument("--mode", choices=("correctness", "efficiency"), default="correctness")
    asked = parser.parse_args(words)
    if asked.hours:
        asked.seconds = asked.hours * 3600
    # What is drawn here is told, so that it can be asked for.
    asked.seed = asked.seed or str(random.SystemRandom().randrange(10**9))
    asked.out = os.path.abspath(asked.out or tempfile.mkdtemp(prefix="gavel-chaos-"))
    os.makedirs(asked.out, exist_ok=True)
    for name in os.listdir(asked.out):
        if name.endswith(".log"):
            os.unlink(os.path.join(asked.out, name))
    return asked


class Resource:
    """What applications write to: a Redis of its own that no fault strikes, guarded by the script
    that applications are given; each write that it lets pass is added to a list."""

    def __init__(self, folder, story):
        self.story = story
        self.redis = Redis(folder)
        last = "redis.call('SET', KEYS[2], ARGV[2])"
        guard = read_guard("redis.lua")
        assert guard.count(last) == 1, "the guard's last line has changed"
        self.guard = guard.replace(last, "redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])")
        self._client = Resp(path=self.redis.unix_path, timeout=60)

    def take(self):
        """What it has accepted since, in its own order."""
        while True:
            taken = self._client.call("LPOP", "taken", 1000)
            now = boottime_ns()
            for entry in taken or ():
                token, replica = entry.split()
                self.story.tell("taken", replica, int(token), now)
            if not taken:
                return

    def close(self):
        self._client.close()
        self.redis.close()


class Chaos:
    def __init__(self, asked, skipped):
        self.asked, self.skipped = asked, skipped
        self.folder = tempfile.mkdtemp(prefix="gc-")
        os.chmod(self.folder, 0o755)
        self.story = Story(os.path.join(asked.out, "history.jsonl"))
        self.latency = Latency(noted_ns=50 * MS)
        self.closing = [self.latency]
        self.pods = []
        self.settings = []
        self.failed = False

    def prepare(self):
        self.resource = self._add(Resource(self.folder + "/fence", self.story))
        self.stand = self._add(STANDS[self.asked.store](self.folder, self.story, self.asked.out))
        setting = self._draw()
        for number in range(PODS):
            spec = {"election": "a", "seed": self.asked.seed, "attach": setting.attached[number],
                    "resource": self.resource.redis.unix_path, "guard": self.resource.guard}
            self.pods.append(self._add(Pod(self.stand, number, setting.options(number), spec)))
        self.rounds = Rounds(self.stand, self.pods, self.story, self.asked.store, self.asked.seed,
                             self.latency)

    def _draw(self):
        last = self.settings[-1] if self.settings else None
        setting = draw(self.asked.seed, len(self.settings), self.asked.store, self.asked.mode, last)
        self.settings.append(setting)
        self.stand.ttl_ms, self.stand.least_ttl_ms = setting.wait_ms, min(setting.ttls_ms)
        return setting

    def _renew(self):
        """All end, and start with the next setting."""
        for pod in self.pods:
            pod.app.kill()
            pod.sidecar.terminate()
        for pod in self.pods:
            pod.ends_well(self.story)
        setting = self._draw()
        self.story.tell("setting", boottime_ns(), str(setting))
        for number, pod in enumerate(self.pods):
            pod.sidecar.options = setting.options(number)
            pod.spec["attach"] = setting.attached[number]
            pod.start_sidecar()
            pod.start_app()

    def _add(self, thing):
        self.closing.append(thing)
        return thing

    def _watch(self):
        """Beside the rounds: takes what was written, looks for two masters, and now and then for
        violations."""
        try:
            self._look_on()
        except Exception:
            self.story.failures.append(f"who looks on has ended: {traceback.format_exc()}")

    def _look_on(self):
        look_at = boottime_ns() + LOOK_S * S
        while not self.over.wait(0.05):
            self.resource.take()
            if hasattr(self.stand, "look"):
                self.stand.look()
            if boottime_ns() > look_at:
                if self.story.violations():
                    self.rounds.stopping.set()
                self._progress()
                look_at = boottime_ns() + LOOK_S * S

    def _progress(self):
        print(f"  {(boottime_ns() - self.began) / S:.0f} s: {len(self.story.faults)} faults, "
              f"{self.story.judge.numbers()}", flush=True)

    def run(self):
        self.prepare()
        self.rounds.wait_first()
        self.began = boottime_ns()
        self.story.tell("run", self.asked.store, self.asked.seed, str(self.settings[0]))
        self.over = threading.Event()
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        end = self.began + int(self.asked.seconds * S)
        renew_at = self.began + int(self.asked.renew * S)
        number = 0
        # A host that is too late for one round may do for another one.
        while (boottime_ns() < end or (number < LEAST_ROUNDS and not self.rounds.healed_s)) \
                and not self.rounds.stopping.is_set():
            length = min(ROUND_S, max(2, (end - boottime_ns()) / S - 1))
            if not self.rounds.run_round(number, length):
                break
            number += 1
            if renew_at < boottime_ns() < end:
                self._renew()
                renew_at = boottime_ns() + int(self.asked.renew * S)
        for pod in self.pods:
            pod.app.kill()
        self.over.set()
        watcher.join(60)
        self.resource.take()
        return self.tell()

    def tell(self):
        found = report.collect(self.story, self.rounds, {
            "store": self.asked.store, "seed": self.asked.seed, "asked_s": self.asked.seconds,
            "mode": self.asked.mode,
            "lasted_s": (boottime_ns() - self.began) / S, "began_ns": self.began,
            "settings": [str(s) for s in self.settings], "skipped": self.skipped})
        text = report.as_text(found, self.story)
        report.write(self.asked.out, found, text, self.story, [p.name for p in self.pods])
        print(text)
        print(f"report.txt, report.json, timeline.svg and history.jsonl are in {self.asked.out}")
        return report.status(found)

    def close(self):
        for thing in reversed(self.closing):
            try:
                thing.close()
            except AssertionError as e:
                print(f"at the end: {e}")
                self.failed = True
        self.story.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    words = sys.argv[1:]
    asked = arguments(words)
    again = ["--store", asked.store, "--seconds", str(asked.seconds), "--seed", asked.seed,
             "--out", asked.out, "--mode", asked.mode, "--renew", str(asked.renew)]
    why = private.enter(again)
    skipped = [] if why is None else [
        f"networks and disks of their own: {why}; partitions by relays, no full disks"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chaos = Chaos(asked, skipped)
    try:
        status = chaos.run()
    except Exception:
        traceback.print_exc()
        status = 2
    finally:
        chaos.close()
    sys.exit(status or (1 if chaos.failed else 0))


if __name__ == "__main__":
    main()
