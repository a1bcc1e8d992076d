"""The other end of sd_notify: collects what the sidecar says to its service manager."""

import os
import select
import socket

from kit.clock import S, boottime_ns


class NotifySocket:
    def __init__(self, folder):
        self.path = os.path.join(str(folder), "notify.sock")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self.lines = []

    def wait_for(self, line, timeout=5.0):
        """Waits for a datagram that has this line; returns its arrival."""
        end = boottime_ns() + int(timeout * S)
        while True:
            left = (end - boottime_ns()) / S
            ready, _, _ = select.select([self._socket], [], [], max(0, left))
            assert ready, f"no {line} within {timeout} s; so far {self.lines}"
            lines = self._socket.recv(4096).decode().split("\n")
            self.lines += lines
            if line in lines:
                return boottime_ns()

    def close(self):
        self._socket.close()
