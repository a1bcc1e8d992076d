"""A small application of several replicas: the leader counts up in a table of PostgreSQL.

It attaches itself to the sidecar beside it, asks before each write, and sends the fencing token
along: the table refuses a lower one. Without DATABASE_URL it only says what it would write.
"""

import os
import signal
import socket
import sys
import threading
import time

SOCKET = os.environ.get("GAVEL_SOCKET", "/run/gavel/gavel.sock")
NAME = os.environ.get("HOSTNAME", "app")
MARGIN_S = 0.2  # what a write may take, and then some

WRITE = """UPDATE counter SET value = value + 1, fence_token = %(token)s, writer = %(name)s
           WHERE id = 1 AND fence_token <= %(token)s RETURNING value"""


def say(*words):
    print(time.strftime("%H:%M:%S"), NAME, *words, flush=True)


class Sidecar:
    """Two connections: one that stands for this application, one that asks."""

    def __init__(self):
        self.attached = self.connect()
        self.asking = self.connect()
        self.writing = threading.Lock()
        self.attached.sendall(b"attach\n")
        self.lines = self.attached.makefile()
        answer = self.lines.readline().strip()
        if answer != "ok":
            raise OSError(answer or "the sidecar hung up")
        threading.Thread(target=self.listen, daemon=True).start()

    @staticmethod
    def connect():
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(None)
        connection.connect(SOCKET)
        return connection

    def listen(self):
        """Leadership is about to end: once nothing is being written any more we say so."""
        for line in self.lines:
            if line.startswith("revoke"):
                token = line.split()[1]
                with self.writing:
                    say("stops, token", token)
                    self.attached.sendall(f"done {token}\n".encode())
        say("lost the sidecar")
        os._exit(1)  # whoever starts us starts us again

    def leads(self):
        """(token, monotonic time until which that is good), or None. Taken before asking."""
        before = time.monotonic()
        self.asking.sendall(b"check\n")
        words = self.asking.makefile().readline().split()
        if not words or words[0] != "leader":
            return None
        return int(words[1]), before + int(words[2]) / 1000 - MARGIN_S


def wait_for_sidecar():
    """It may be started after us."""
    for _ in range(120):
        try:
            return Sidecar()
        except OSError as error:
            problem = error
            time.sleep(0.5)
    sys.exit(f"no sidecar at {SOCKET}: {problem}")


def connect_to_database():
    if not os.environ.get("DATABASE_URL"):
        return None
    import psycopg2  # pylint: disable=import-outside-toplevel
    database = psycopg2.connect(os.environ["DATABASE_URL"], connect_timeout=5)
    database.autocommit = True
    return database.cursor()


def write(cursor, token):
    if cursor is None:
        return "would write"
    cursor.execute(WRITE, {"token": token, "name": NAME})
    row = cursor.fetchone()
    return f"wrote {row[0]}" if row else "was refused: a later leader has written"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the end of the connections says it all
    sidecar = wait_for_sidecar()
    cursor = connect_to_database()
    every = float(os.environ.get("EVERY_S", "0.5"))
    while True:
        with sidecar.writing:
            answer = sidecar.leads()
            if answer and time.monotonic() < answer[1]:
                say(write(cursor, answer[0]), "token", answer[0])
        time.sleep(every)


if __name__ == "__main__":
    main()
