"""A fence for a file: each version is a file of its own that link(2) makes only if it is not there
yet, and its name carries the number. A writer that was overtaken finds its number taken, compares
again, and sees the newer leader's token.

    fence = FileFence("/srv/report")
    fence.write(b"...", token)       # Stale: a newer leader has written
    fence.read()                     # (b"...", token)

For one host, or a network file system whose link(2) is atomic (NFS is). Readers take the last version.
tidy() removes old ones; a writer that was paused for longer than that may be told that it has written,
but what it wrote is below the last version and never read.
"""

import os
import time

TOKEN_MOST = 10**14  # and 0 is what clients give who do not lead


def _sync(folder):
    """A name that a power cut takes back would be a token that is forgotten."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Stale(Exception):
    """Another leader, with a greater token, has written."""


class FileFence:
    def __init__(self, folder):
        self._folder = folder
        os.makedirs(folder, exist_ok=True)

    def _versions(self):
        return sorted(int(n[1:]) for n in os.listdir(self._folder) if n[0] == "v")

    def look(self):
        """(number, token) of the last version; (0, 0): there is none."""
        versions = self._versions()
        if not versions:
            return 0, 0
        try:
            with open(f"{self._folder}/v{versions[-1]}", "rb") as f:
                return versions[-1], int(f.readline())
        except FileNotFoundError:
            return self.look()  # tidied away: there is a later one

    def read(self):
        with open(f"{self._folder}/v{self._versions()[-1]}", "rb") as f:
            token = int(f.readline())
            return f.read(), token

    def write(self, content, token):
        if not 1 <= token <= TOKEN_MOST:
            raise ValueError(f"no fencing token: {token}")
        while True:
            number, highest = self.look()
            if highest > token:
                raise Stale(self._folder)
            if self.write_after(number, content, token):
                return

    def write_after(self, number, content, token):
        """False: another version has come since."""
        name = f"{self._folder}/.{token}.{os.getpid()}.{os.urandom(6).hex()}"
        with open(name, "wb") as f:
            f.write(b"%d\n" % token + content)
            f.flush()
            os.fsync(f.fileno())
        try:
            os.link(name, f"{self._folder}/v{number + 1}")
        except FileExistsError:
            return False
        finally:
            os.unlink(name)
        _sync(self._folder)
        return True

    def tidy(self, older_than_s=86400.0):
        """Removes versions of that age, but for the last one."""
        for number in self._versions()[:-1]:
            path = f"{self._folder}/v{number}"
            try:
                if time.time() - os.stat(path).st_mtime > older_than_s:
                    os.unlink(path)
            except FileNotFoundError:
                pass  # another one tidies too
