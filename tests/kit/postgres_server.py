"""A real PostgreSQL of our own: made once into a template that is copied, on a free port, in a
folder of its own, run by an ordinary user, ended with the test by its process id."""

import atexit
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile

from kit.clock import wait_until
from kit.ports import free_port

_templates = {}


def postgres_bin():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"),
                   key=lambda p: int(p.split("/")[4]))
    assert found, "PostgreSQL is missing: sh tests/run.sh installs it"
    return os.path.dirname(found[-1])


def ordinary_user():
    """How a program is started as one who is not root: the server refuses root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


def give_away(path):
    if os.geteuid() == 0:
        shutil.chown(path, "nobody", "nogroup")
        for folder, folders, files in os.walk(path):
            for name in folders + files:
                shutil.chown(os.path.join(folder, name), "nobody", "nogroup")


def make_cluster(folder):
    """A cluster with the role and the database `app`; where its data is."""
    os.mkdir(folder, 0o700)
    give_away(folder)
    subprocess.run([postgres_bin() + "/initdb", "-D", folder + "/data", "-U", "super", "-A",
                    "trust", "--no-sync", "--locale=C.UTF-8", "-E", "UTF8"], check=True,
                   cwd="/", stdout=subprocess.DEVNULL, **ordinary_user())
    for database, sql in (("postgres", "CREATE ROLE app LOGIN;\n"),
                          ("postgres", "CREATE DATABASE app;\n"),
                          ("app", "GRANT CREATE ON SCHEMA public TO app;\n")):
        subprocess.run([postgres_bin() + "/postgres", "--single", "-j", "-D", folder + "/data",
                        "-c", "fsync=off", database], input=sql, text=True, check=True, cwd="/",
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **ordinary_user())
    return folder + "/data"


def template(number=0):
    """The cluster that others are copies of: copies have one system identifier, of different
    numbers different ones."""
    if number not in _templates:
        top = tempfile.mkdtemp(prefix="gv-pg-")
        atexit.register(shutil.rmtree, top, ignore_errors=True)
        os.chmod(top, 0o755)
        _templates[number] = make_cluster(os.path.join(top, "t"))
    return _templates[number]


class Postgres:
    def __init__(self, folder, options=(), data=None, cluster=0):
        """`data`: a cluster's folder to run, else a copy of the template of that number."""
        self.folder = str(folder)
        self.port = free_port()
        self.options = list(options)
        self.process = None
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(os.path.dirname(self.folder), 0o755)
        self.data = data or os.path.join(self.folder, "data")
        if data is None:
            shutil.copytree(template(cluster), self.data)
        os.chmod(self.data, 0o700)
        give_away(self.folder)
        self.start()

    @property
    def url(self):
        return self.url_of("app")

    def url_of(self, role, database="app"):
        return f"postgres://{role}@127.0.0.1:{self.port}/{database}"

    def start(self):
        self.log = open(os.path.join(self.folder, "postgres.log"), "ab")
        options = [x for o in ("listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=16MB",
                               *self.options) for x in ("-c", o)]
        self.process = subprocess.Popen(
            [postgres_bin() + "/postgres", "-D", self.data, "-p", str(self.port), "-k",
             self.folder, *options], cwd="/", stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, **ordinary_user())
        wait_until(self._answers, 30, "PostgreSQL answers", poll=0.05)

    def _answers(self):
        assert self.process.poll() is None, f"postgres ended, see {self.folder}/postgres.log"
        return self.psql("SELECT 1", check=False).returncode == 0

    def psql(self, sql, role="super", database="app", check=True, timeout=30):
        return subprocess.run(["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h",
                               "127.0.0.1", "-p", str(self.port), "-U", role, "-d", database,
                               "-c", sql], text=True, capture_output=True, check=check,
                              timeout=timeout)

    def sql(self, sql, **kwargs):
        """What one statement answers, as the superuser: columns apart by |, rows by lines."""
        return self.psql(sql, **kwargs).stdout.strip()

    def session(self, role="super", database="app"):
        """An interactive psql: write statements to it, its session lives until it is closed."""
        return Session(self.port, role, database)

    def locks(self):
        """The processes that hold advisory locks, once for each lock."""
        out = self.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted "
                       "ORDER BY pid")
        return [int(line) for line in out.splitlines()]

    def row(self, election="a", namespace="default"):
        columns = ("token", "holder", "nonce", "backend", "clean", "prior", "server")
        out = self.sql(f"SELECT {', '.join(columns)} FROM gavel_election WHERE name = "
                       f"'{election}' AND namespace = '{namespace}'")
        return dict(zip(columns, out.split("|"))) if out else None

    def end_backend(self, pid):
        self.sql(f"SELECT pg_terminate_backend({pid})")

    def promote(self):
        """A standby becomes a primary."""
        self.sql("SELECT pg_promote()")
        wait_until(lambda: self.sql("SELECT pg_is_in_recovery()") == "f", 20)

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def freeze(self):
        """The whole server, the processes that it has among it."""
        self.process.send_signal(signal.SIGSTOP)
        for pid in self.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.process.send_signal(signal.SIGCONT)

    def stop(self, mode="fast"):
        """As `pg_ctl stop -m MODE` does."""
        number = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        if self.process.poll() is None:
            self.process.send_signal(number[mode])
            self.process.wait(20)
        self.log.close()

    def close(self):
        if self.process.poll() is None:
            self.thaw()
        self.stop("immediate")


def standby_of(primary, folder, name="s1"):
    """A streaming standby of that server, made by pg_basebackup."""
    owner = ["-o", "nobody"] if ordinary_user() else []
    subprocess.run(["install", "-d", "-m", "0700", *owner, folder], check=True)
    subprocess.run([postgres_bin() + "/pg_basebackup", "-h", "127.0.0.1", "-p", str(primary.port),
                    "-U", "super", "-D", folder + "/data", "-R", "-X", "stream", "-c", "fast",
                    "-d", f"application_name={name}"], check=True, cwd="/", **ordinary_user())
    return Postgres(folder, data=folder + "/data")


class Session:
    def __init__(self, port, role, database):
        self.process = subprocess.Popen(
            ["psql", "-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", role, "-d",
             database], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, bufsize=1)

    def ask(self, sql):
        """The lines that these statements print."""
        self.process.stdin.write(f"{sql};\n\\echo --done\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n") == "--done":
                return lines
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"psql ended: {lines}")

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()
