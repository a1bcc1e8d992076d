"""A fence for a file: each version is a file of its own that link(2) makes only if it is not there
yet, and its name carries the number. A writer that was overtaken finds its number taken, compares
again, and sees the newer leader's token.

    fence = FileFence("/srv/report")
    fence.write(b"...", token)       # Stale: a newer leader has written
    fence.read()                     # (b"...", token); FileNotFoundError: nothing is written yet

What is written depends on what was read? Then number, _ = look() before read(), and
write_after(number, ...): False if anything was written in between; read again.

For one host, or a network file system whose link(2) is atomic (NFS is). Readers take the last version.
tidy() removes old ones; a writer that was paused for longer than that may be told that it has written,
but what it wrote is below the last version and never read.
"""

import contextlib
import os
import re
import time

TOKEN_MOST = 10**14  # and 0 is what clients give who do not lead
VERSION = re.compile("v([1-9][0-9]*)")
UNFINISHED = re.compile(r"\.[0-9]+\.[0-9]+\.[0-9a-f]{12}")


def _sync(folder):
    """A name that a power cut takes back would be a token that is forgotten."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _check(token):
    if not 1 <= token <= TOKEN_MOST:
        raise ValueError(f"no fencing token: {token}")


class Stale(Exception):
    """Another leader, with a greater token, has written."""


class FileFence:
    def __init__(self, folder):
        self._folder = folder
        os.makedirs(folder, exist_ok=True)

    def _versions(self):
        found = map(VERSION.fullmatch, os.listdir(self._folder))
        return sorted(int(x[1]) for x in found if x)

    def _open_last(self):
        """The number of the last version, and its file. (0, None): there is none."""
        while True:
            versions = self._versions()
            if not versions:
                return 0, None
            try:
                return versions[-1], open(f"{self._folder}/v{versions[-1]}", "rb")
            except FileNotFoundError:
                pass  # tidied away: there is a later one

    def look(self):
        """(number, token) of the last version; (0, 0): there is none."""
        number, file = self._open_last()
        if file is None:
            return 0, 0
        with file:
            return number, int(file.readline())

    def read(self):
        _, file = self._open_last()
        if file is None:
            raise FileNotFoundError(f"{self._folder}: nothing is written yet")
        with file:
            token = int(file.readline())
            return file.read(), token

    def write(self, content, token):
        _check(token)
        while True:
            number, highest = self.look()
            if highest > token:
                raise Stale(self._folder)
            if self.write_after(number, content, token):
                return

    def write_after(self, number, content, token):
        """False: another version has come since. The token of that number must not be greater."""
        _check(token)
        name = f"{self._folder}/.{token}.{os.getpid()}.{os.urandom(6).hex()}"
        with open(name, "wb") as f:
            f.write(b"%d\n" % token + content)
            f.flush()
            os.fsync(f.fileno())
        try:
            os.link(name, f"{self._folder}/v{number + 1}")
        except (FileExistsError, FileNotFoundError):  # the latter: paused so long, it was tidied away
            return False
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
        _sync(self._folder)
        return True

    def tidy(self, older_than_s=86400.0):
        """Removes versions of that age, but for the last one, and what killed writers have left."""
        unfinished = [x for x in os.listdir(self._folder) if UNFINISHED.fullmatch(x)]
        for name in [f"v{number}" for number in self._versions()[:-1]] + unfinished:
            path = f"{self._folder}/{name}"
            with contextlib.suppress(FileNotFoundError):  # another one tidies too
                if time.time() - os.stat(path).st_mtime > older_than_s:
                    os.unlink(path)
