"""An attached application in a process of its own, which can be stopped and killed."""

import os
import signal
import subprocess
import sys
import threading

from kit.clock import wait_until

MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "application_main.py")


class Application:
    def __init__(self, sidecar, beat_ms=0, done_ms=0):
        self.sidecar, self.beat_ms, self.done_ms = sidecar, beat_ms, done_ms
        self.process = None
        self.start()

    def start(self):
        self.heard = []  # words; the last one is the moment
        self.process = subprocess.Popen(
            [sys.executable, MAIN, self.sidecar.socket_path, str(self.beat_ms), str(self.done_ms)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, args=(self.process, self.heard),
                                        daemon=True)
        self._reader.start()

    @staticmethod
    def _read(process, heard):
        for line in process.stdout:
            heard.append(line.split())

    def all(self, word):
        return [w for w in list(self.heard) if w[0] == word]

    def wait_for(self, word, timeout=10.0, count=1):
        return wait_until(lambda: len(self.all(word)) >= count and self.all(word), timeout,
                          f"the application of {self.sidecar.identity} hears {word}")[-1]

    def wait_leader(self, after=0, timeout=10.0):
        """(token, deadline, when) of the first line that says leader after that moment."""
        def found():
            return [w for w in self.all("leader") if int(w[4]) >= after]
        words = wait_until(found, timeout, f"{self.sidecar.identity} leads")[0]
        return int(words[1]), int(words[3]), int(words[4])

    def last_deadline(self):
        return max((int(w[3]) for w in self.all("leader")), default=0)

    def signal(self, number):
        self.process.send_signal(number)

    def kill9(self):
        self.signal(signal.SIGKILL)
        self.process.wait(10)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._reader.join(5)
        self.process.stdout.close()
