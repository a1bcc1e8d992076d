"""A name server of a test's own, for one sidecar: the name redis.test."""

import os
import subprocess

SOURCE = os.path.join(os.path.dirname(__file__), "nameshim.c")


class NameShim:
    def __init__(self, folder, *addresses):
        self.library = os.path.join(str(folder), "nameshim.so")
        self.path = os.path.join(str(folder), "nameshim.names")
        self.log = os.path.join(str(folder), "nameshim.log")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, SOURCE], check=True)
        open(self.log, "wb").close()
        self.answer(*addresses)

    def url(self, port):
        return f"redis://redis.test:{port}"

    @property
    def env(self):
        options = os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": self.library, "NAMESHIM_FILE": self.path, "NAMESHIM_LOG": self.log,
                "ASAN_OPTIONS": options + ":verify_asan_link_order=0"}

    def answer(self, *addresses):
        """What look-ups say from now on. No address: not known."""
        with open(self.path + ".new", "w") as f:
            f.write(" ".join(addresses) + "\n")
        os.replace(self.path + ".new", self.path)

    def hang(self):
        """Look-ups wait until there is an answer again."""
        self.answer("hang")

    def lookups(self):
        """(begun, under way, the most that were ever under way at a time)"""
        with open(self.log, "rb") as f:
            marks = f.read()
        under_way = most = 0
        for mark in marks:
            under_way += 1 if mark == ord("+") else -1
            most = max(most, under_way)
        return marks.count(b"+"), under_way, most
