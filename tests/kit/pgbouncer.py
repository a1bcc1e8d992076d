"""A PgBouncer of our own before a PostgreSQL of our own."""

import os
import shutil
import signal
import subprocess

from kit.clock import wait_until
from kit.ports import free_port
from kit.postgres_server import give_away, ordinary_user


class PgBouncer:
    def __init__(self, folder, postgres, mode="transaction", size=5, options=()):
        self.folder = str(folder)
        self.port = free_port()
        os.makedirs(self.folder, exist_ok=True)
        with open(self.folder + "/users", "w", encoding="ascii") as f:
            f.write('"app" ""\n"super" ""\n')
        with open(self.folder + "/ini", "w", encoding="ascii") as f:
            f.write("[databases]\n"
                    f"* = host=127.0.0.1 port={postgres.port}\n"
                    "[pgbouncer]\n"
                    f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
                    f"auth_type = trust\nauth_file = {self.folder}/users\n"
                    f"pool_mode = {mode}\ndefault_pool_size = {size}\n"
                    "admin_users = super\nmax_client_conn = 100\n" + "\n".join(options) + "\n")
        give_away(self.folder)
        binary = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        self.log = open(self.folder + "/log", "ab")
        self.process = subprocess.Popen([binary, self.folder + "/ini"], cwd="/",
                                        stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, **ordinary_user())
        wait_until(self._answers, 10, "pgbouncer answers", poll=0.05)

    def _answers(self):
        assert self.process.poll() is None, f"pgbouncer ended, see {self.folder}/log"
        return subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U",
                               "super", "-d", "pgbouncer", "-c", "SHOW VERSION"],
                              capture_output=True, check=False).returncode == 0

    @property
    def url(self):
        return f"postgres://app@127.0.0.1:{self.port}/app"

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)
        self.log.close()
