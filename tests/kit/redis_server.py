"""A real redis-server of our own: a free port, a folder of its own, ended with the test."""

import os
import shutil
import signal
import subprocess

from kit.clock import wait_until
from kit.ports import free_port
from kit.resp import Resp, RespError


def redis_binary():
    """redis-server, or the same program under its other name (Debian's redis-tools has it)."""
    found = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    assert found, "redis-server is missing: sh tests/run.sh installs it"
    return found


class Redis:
    def __init__(self, folder, options=(), env=None, port=None):
        self.folder = str(folder)
        self.port = port or free_port()
        self.options = list(options)
        self.env = dict(env or {})
        self.process = None
        os.makedirs(self.folder, exist_ok=True)
        self.unix_path = os.path.join(self.folder, "r.sock")
        self.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def command(self):
        # The name it is called by decides what the program is.
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                "--unixsocket", self.unix_path, "--dir", self.folder, "--save", "",
                "--appendonly", "no", "--daemonize", "no", *self.options]

    def start(self, wait=True):
        self.log = open(os.path.join(self.folder, "redis.log"), "ab")
        self.process = subprocess.Popen(self.command(), executable=redis_binary(),
                                        stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env={**os.environ, **self.env})
        if wait:
            wait_until(self._answers, 10, "redis-server answers")

    def _answers(self):
        assert self.process.poll() is None, f"redis-server ended, see {self.folder}/redis.log"
        try:
            return self.cli("PING") == "PONG"
        except RespError as e:
            return "NOAUTH" in str(e)
        except OSError:
            return False

    def cli(self, *args):
        with Resp(self.port) as resp:
            return resp.call(*args)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Ends it like an operator would (SIGTERM)."""
        self._end(signal.SIGTERM)

    def kill(self):
        self._end(signal.SIGKILL)

    def _end(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            if number != signal.SIGKILL:
                self.process.send_signal(signal.SIGCONT)
            self.process.wait(10)
        self.log.close()

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def close(self):
        self.kill()

    # What the sidecar keeps there.
    @staticmethod
    def lease_key(election, namespace="default"):
        return "gavel:{%s/%s}:lease" % (namespace, election)

    @staticmethod
    def record_key(election, namespace="default"):
        return "gavel:{%s/%s}:record" % (namespace, election)

    def lease(self, election="a", namespace="default"):
        return self.cli("GET", self.lease_key(election, namespace))

    def record(self, election="a", namespace="default"):
        flat = self.cli("HGETALL", self.record_key(election, namespace))
        return dict(zip(flat[::2], flat[1::2]))
