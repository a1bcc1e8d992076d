"""Clocks that a test can move, for one process: a server's or a sidecar's."""

import os
import struct
import subprocess
import time

SOURCE = os.path.join(os.path.dirname(__file__), "clockshim.c")
CLOCKS = ("real", "monotonic", "boot")
IDS = {"real": time.CLOCK_REALTIME, "monotonic": time.CLOCK_MONOTONIC, "boot": time.CLOCK_BOOTTIME}
NAMES = iter(range(10**6))


class ClockShim:
    def __init__(self, folder):
        self.library = os.path.join(str(folder), "clockshim.so")
        self.path = os.path.join(str(folder), f"clockshim-{next(NAMES)}.page")
        if not os.path.exists(self.library):
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, SOURCE],
                           check=True)
        # How each clock differs from the true one: [anchor, offset, rate].
        self._moved = {clock: [0, 0, 1_000_000] for clock in CLOCKS}
        self._in_use = 0
        with open(self.path, "wb") as f:
            f.write(bytes(8 + 2 * 3 * 8 * len(CLOCKS)))
        self._write()

    @property
    def env(self):
        # A sanitizer wants to be the first library; for what we replace it need not be.
        options = os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": self.library, "CLOCKSHIM_FILE": self.path,
                "ASAN_OPTIONS": ":".join(filter(None, (options, "verify_asan_link_order=0")))}

    def step(self, seconds=0.0, monotonic=0.0, boot=0.0):
        """Sets the offsets from the true time: of the wall clock, and of the other two."""
        for clock, offset in zip(CLOCKS, (seconds, monotonic, boot)):
            self._moved[clock][1] = int(offset * 1e9)
        self._write()

    def rate(self, clock, factor):
        """From now on that clock runs so fast; 0: it stands still. Nothing jumps."""
        anchor, offset, old = self._moved[clock]
        now = time.clock_gettime_ns(IDS[clock])
        shown = anchor + (now - anchor) * old // 1_000_000 + offset
        self._moved[clock] = [now, shown - now, int(factor * 1_000_000)]
        self._write()

    def _write(self):
        spare = 1 - self._in_use
        fields = [n for clock in CLOCKS for n in self._moved[clock]]
        table = struct.pack("=9q", *fields)
        fd = os.open(self.path, os.O_RDWR)
        os.pwrite(fd, table, 8 + spare * len(table))
        os.pwrite(fd, struct.pack("=q", spare), 0)
        os.close(fd)
        self._in_use = spare
