"""One sidecar: the program under test with its log, its listeners and its signals."""

import contextlib
import dataclasses
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

from kit.clock import boottime_ns, wait_until

BIN = os.path.abspath(os.environ.get("GAVEL_BIN", os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "release")))
TIMING = os.environ.get("GAVEL_TIMING") == "1"
LONG = os.environ.get("GAVEL_LONG") == "1"
# What a bound in time is exceeded by where other tests run beside: no fault, unless it is alone.
SLACK_MS = 0 if LONG else 400
GAVEL = os.path.join(BIN, "gavel")
GAVELCTL = os.path.join(BIN, "gavelctl")


def clean_env(extra=None):
    """The environment without what would configure the program."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("GAVEL_") and k not in ("NOTIFY_SOCKET", "WATCHDOG_USEC",
                                                       "WATCHDOG_PID", "RUNTIME_DIRECTORY")}
    env.update(extra or {})
    return env


def run(program, *args, env=None, timeout=30, **kwargs):
    """Runs gavel or gavelctl to its end."""
    return subprocess.run([program, *args], env=clean_env(env), timeout=timeout, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, **kwargs)


@dataclasses.dataclass
class Check:
    """What the socket answered to `check`."""
    line: str
    send: int
    receive: int
    leader: bool
    token: int = 0
    valid_ms: int = 0
    deadline: int = 0


@dataclasses.dataclass
class Reply:
    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)


class Sidecar:
    def __init__(self, folder, store, identity="pod-a", elections=("a",), options=(), env=None,
                 http="localhost:0", health=":0", binary=GAVEL, prefix=()):
        self.folder = str(folder)
        self.store = store
        self.identity = identity
        self.elections = list(elections)
        self.options = list(options)
        self.env = dict(env or {})
        self.http, self.health = http, health
        self.binary = binary
        self.prefix = list(prefix)
        self.socket_path = os.path.join(self.folder, identity[:20] + ".sock")
        self.page_dir = os.path.join(self.folder, identity[:20] + ".pages")
        self.process = None
        self.restarts = -1
        self.start()

    def command(self):
        elections = [x for e in self.elections for x in ("--election", e)]
        return [*self.prefix, self.binary, "run", "--store", self.store, "--identity",
                self.identity, "--socket", self.socket_path, "--http", self.http, "--health",
                self.health, *self.page_options(), *elections, *self.options]

    def page_options(self):
        """Its own folder for the shared pages; made here."""
        if "--page-dir" in self.options or "GAVEL_PAGE_DIR" in self.env:
            return []
        os.makedirs(self.page_dir, exist_ok=True)
        return ["--page-dir", self.page_dir]

    def page_path(self, election="a"):
        return os.path.join(self.page_dir, election + ".lease")

    def start(self):
        self.restarts += 1
        self.events = []
        self.text = []
        self.started_ns = boottime_ns()
        self.process = subprocess.Popen(self.command(), env=clean_env(self.env),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,),
                                        daemon=True)
        self._reader.start()
        wait_until(self._is_up, 20, f"{self.identity} listens")

    def _is_up(self):
        assert self.process.poll() is None, f"ended with {self.process.poll()}:\n{self.log()}"
        need = [n for n, v in (("http", self.http), ("health", self.health)) if v != "off"]
        return all(self.port_of(n) for n in need) and self.event("listening", listener="socket")

    def _read(self, stream):
        for raw in stream:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.text.append(line)
            try:
                self.events.append(json.loads(line))
            except ValueError:
                pass

    def log(self):
        return "\n".join(self.text)

    @property
    def pid(self):
        return self.process.pid

    def port_of(self, listener, address=None):
        for e in list(self.events):
            if e.get("event") == "listening" and e.get("listener") == listener \
                    and address in (None, e.get("address")):
                return e.get("port")
        return None

    @property
    def http_port(self):
        return self.port_of("http")

    @property
    def health_port(self):
        return self.port_of("health")

    def event(self, name, **fields):
        """The log events of that name (and fields)."""
        return [e for e in list(self.events) if e.get("event") == name
                and all(e.get(k) == v for k, v in fields.items())]

    # Asking.
    @contextlib.contextmanager
    def connection(self, timeout=10.0):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(timeout)
            s.connect(self.socket_path)
            yield s

    def ask(self, line, timeout=10.0):
        """One line to the socket, one line back."""
        with self.connection(timeout) as s:
            s.sendall(line.encode() + b"\n")
            return s.makefile("rb").readline().decode().rstrip("\n")

    def check(self, election=""):
        send = boottime_ns()
        line = self.ask(f"check {election}".strip())
        receive = boottime_ns()
        words = line.split(" ")
        if words[0] != "leader":
            return Check(line, send, receive, False)
        return Check(line, send, receive, True, *map(int, words[1:4]))

    def status(self, election=""):
        return json.loads(self.ask(f"status {election}".strip()))

    def request(self, path, method="GET", port=None, host="127.0.0.1", headers=None,
                timeout=10.0):
        connection = http.client.HTTPConnection(host, port or self.http_port, timeout=timeout)
        try:
            connection.request(method, path, headers=headers or {})
            reply = connection.getresponse()
            names = {k.lower(): v for k, v in reply.getheaders()}
            return Reply(reply.status, names, reply.read())
        finally:
            connection.close()

    def probe(self, path, **kwargs):
        return self.request(path, port=self.health_port, **kwargs)

    def metrics(self):
        """{'gavel_leader{election="a"}': 1.0}"""
        found = {}
        for line in self.probe("/metrics").body.decode().splitlines():
            match = re.fullmatch(r"([a-z_:]+(?:\{.*\})?) (\S+)", line)
            if match:
                found[match.group(1)] = float(match.group(2))
        return found

    def leads(self, election=""):
        return self.check(election).leader

    def state(self, election=""):
        return self.status(election)["state"]

    def wait_state(self, state, timeout=10.0, election=""):
        wait_until(lambda: self.state(election) == state, timeout,
                   f"{self.identity} is {state}")
        return boottime_ns()

    def wait_leader(self, timeout=10.0, election=""):
        """The first check that says leader."""
        def ask():
            check = self.check(election)
            return check if check.leader else None
        return wait_until(ask, timeout, f"{self.identity} leads")

    # Ending.
    def signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def terminate(self):
        self.signal(signal.SIGTERM)

    def kill9(self):
        self.signal(signal.SIGKILL)

    def wait(self, timeout=30.0):
        """Its exit status."""
        status = self.process.wait(timeout)
        self._reader.join(5)
        return status

    def stop(self, timeout=30.0):
        self.terminate()
        return self.wait(timeout)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def close(self):
        """At the end of a test: no sanitizer may have spoken, no crash may have happened."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        status = self.wait()
        text = self.log()
        assert "Sanitizer" not in text and "runtime error:" not in text, text[-4000:]
        assert status in (0, 1, 64, 78, -signal.SIGKILL, -signal.SIGTERM), (status, text[-4000:])
        for line in self.text:
            assert line.startswith("{"), f"not a JSON line on stderr: {line!r}"
