"""The story of one run: everything that is said, as lines in a file, and what the judge makes of
it. The same lines can be read again: python -m chaos.story FILE"""

import json
import os
import subprocess
import sys
import threading
import traceback

from chaos.judge import Judge, Run, Writes
from kit.clock import boottime_ns

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Story:
    def __init__(self, path=None):
        self.judge = Judge()
        self.faults = []        # (kind, target, start, end)
        self.failures = []      # of the harness
        self.lock = threading.Lock()
        self._runs = {}         # (replica, life, id) -> the run that may still grow
        self._latest = {}       # replica -> the latest run of leader answers
        self._resigned = {}     # replica -> when its application resigned last
        self._file = open(path, "w", encoding="ascii") if path else None

    def tell(self, *line):
        """One line, by whom it is about; kept, and taken down."""
        with self.lock:
            if self._file:
                self._file.write(json.dumps(line) + "\n")
            getattr(self, "_" + line[0])(*line[1:])

    def _app(self, replica, life, what, *words):
        getattr(self, "_app_" + what)(replica, life, *words)

    def _app_begin(self, replica, life, kind, fields):
        fields = dict(fields)
        number = fields.pop("id")
        made = (Run if kind == "answer" else Writes)(replica=replica, life=life, **fields)
        (self.judge.runs if kind == "answer" else self.judge.writes).append(made)
        way = fields.get("way", "write")
        last = self._runs.get((replica, life, way))
        if last:
            del self._runs[last]
        self._runs[replica, life, number] = made
        self._runs[replica, life, way] = (replica, life, number)
        if fields.get("said") == "leader":
            self._latest[replica] = made

    def _app_more(self, replica, life, number, *values):
        self._runs[replica, life, number].update(*values)

    def _app_stopped(self, replica, life, at):
        self.judge.stopped(replica, life, at)

    def _app_resigned(self, replica, _, at):
        self._resigned[replica] = at

    def _app_contradiction(self, replica, life, at, text):
        self.judge.contradiction(replica, at, text)

    def _stopped(self, replica, life, at):
        self.judge.stopped(replica, life, at)

    def _started(self, replica, at):
        self.judge.started(replica, at)

    def _taken(self, replica, token, at):
        self.judge.accepted_next(replica, token, at)

    def _excuse(self, start, end):
        self.judge.excuse(start, end)

    def _healed(self, at, led_at, until):
        self.judge.healed(at, led_at, until)

    def _unjudged(self, *_):
        """Nobody led in time, and the host was too late: for who reads the file."""

    def _violation(self, kind, at, text):
        self.judge.direct(kind, at, text)

    def _fault(self, kind, target, start, end):
        self.faults.append((kind, target, start, end))

    def _setting(self, *_):
        """What went on with other settings: for who reads the file."""

    def _run(self, *_):
        """What was run: for who reads the file."""

    # Asking.
    def leader(self, since=0):
        """(replica, when) of the latest leader answer to a question asked since then."""
        with self.lock:
            found = [(r.last_receive, n) for n, r in self._latest.items() if r.last_send > since]
        if not found:
            return None
        at, replica = max(found)
        return replica, at

    def heard(self, replica, life, way, since):
        """Whether an answer came in that way to a question asked since then. What is asked on the
        connection of before may be the attached one's by now."""
        ways = (way, "socket, attached") if way == "socket" else (way,)
        with self.lock:
            runs = [self._runs.get(self._runs.get((replica, life, w))) for w in ways]
        return any(r and r.last_send > since and r.said not in ("none", "error") for r in runs)

    def resigned(self, replica, since):
        return self._resigned.get(replica, 0) >= since

    def violations(self):
        with self.lock:
            return self.judge.verdict()

    def around(self, at, reach):
        with self.lock:
            lines = self.judge.around(at, reach)
        lines += [(start, f"{(start - at) / 1e6:+.3f} … {(end - at) / 1e6:+.3f} ms  FAULT {kind}: "
                          f"{target}") for kind, target, start, end in self.faults
                  if start < at + reach and end > at - reach]
        return [text for _, text in sorted(lines)]

    def close(self):
        if self._file:
            self._file.close()


class Application:
    """The process of one application, and the thread that takes down what it says."""

    def __init__(self, story, replica, life, spec, prefix=(), env=None):
        self.story, self.replica, self.life = story, replica, life
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "chaos.application", json.dumps(spec)], cwd=TESTS,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for line in self.process.stdout:
                if line.endswith("\n"):  # it may be killed in the middle of one
                    self.story.tell("app", self.replica, self.life, *json.loads(line))
        except Exception:
            self.story.failures.append(f"what {self.replica} says is not understood: "
                                       f"{traceback.format_exc()}")

    def order(self, word):
        self.process.stdin.write(word + "\n")

    def kill(self):
        """Nothing that it was told as the attached one counts from now on."""
        at = boottime_ns()
        self.process.kill()
        self.process.wait(20)
        self._thread.join(20)
        self.story.tell("stopped", self.replica, self.life, at)
        self.process.stdin.close()
        self.process.stdout.close()

    def close(self):
        if self.process.poll() is None:
            self.kill()


def read(path):
    story = Story()
    with open(path, encoding="ascii") as f:
        for line in f:
            story.tell(*json.loads(line))
    return story


if __name__ == "__main__":
    again = read(sys.argv[1])
    print(json.dumps(again.judge.numbers(), indent=1))
    for violation in again.violations():
        print(f"{violation.kind}: {violation.text}")
        print("\n".join("    " + text for text in again.around(violation.at, 2_000_000_000)))
