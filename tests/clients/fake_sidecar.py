"""A sidecar's socket that answers what the test wants, as late as it wants."""

import socket
import threading
import time

from kit.clock import boottime_ns


class FakeSidecar:
    def __init__(self, path):
        self.path = path
        self.delay_s = 0.0
        self.answer = b""      # what is sent; None: nothing, and the connection stays
        self.takes = False     # True: an attachment is answered "ok" at once
        self.reads = True      # False: what an attached client says stays in the buffer
        self.asked = []        # lines that came
        self.attached = []     # connections that have sent one
        self.ended = []        # those of them that the client has ended
        self._open = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @staticmethod
    def leader(token=1796157414879, valid_ms=300, ahead_ms=None):
        ahead = valid_ms if ahead_ms is None else ahead_ms
        return f"leader {token} {valid_ms} {boottime_ns() + ahead * 1_000_000}\n".encode()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            for line in connection.makefile("rb"):
                self.asked.append(line)
                answer = self.answer() if callable(self.answer) else self.answer
                if self.delay_s:
                    time.sleep(self.delay_s)
                if line.startswith(b"attach"):
                    self.attached.append(connection)
                    if self.takes:
                        connection.sendall(b"ok\n")
                while connection in self.attached and not self.reads:
                    time.sleep(0.01)
                if line.startswith(b"attach"):
                    continue
                if connection in self.attached:
                    pass
                elif answer is not None:
                    connection.sendall(answer)
                    connection.close()
                    return
        except OSError:
            pass
        if connection in self.attached:
            self.ended.append(connection)

    def close(self):
        self._listener.close()
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()
