"""A wall clock that a test can step, for one server process."""

import os
import struct
import subprocess

SOURCE = os.path.join(os.path.dirname(__file__), "clockshim.c")


class ClockShim:
    def __init__(self, folder):
        self.library = os.path.join(str(folder), "clockshim.so")
        self.path = os.path.join(str(folder), "clockshim.offset")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, SOURCE], check=True)
        self.step(0)

    @property
    def env(self):
        return {"LD_PRELOAD": self.library, "CLOCKSHIM_FILE": self.path}

    def step(self, seconds):
        """Sets the offset from the true time."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(fd, struct.pack("=q", int(seconds * 1e6)), 0)
        os.close(fd)
