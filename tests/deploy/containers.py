"""podman without a daemon, on the images that prepare.sh has built, with a store of its own."""

import json
import os
import subprocess

from kit.readme import ROOT

TOOLS = os.path.join(ROOT, "build", "tools")
BRIDGE = "10.88.0.1"  # this host, as containers on podman's default network see it


def read(name):
    try:
        with open(os.path.join(TOOLS, name), encoding="utf-8") as f:
            return f.read().strip()
    except FileNotFoundError:
        return None


def why_not():
    """Why there is no image here, or None."""
    if read("images"):
        return None
    return read("no-image") or "no image was built (sh tests/deploy/prepare.sh)"


def images():
    """(gavel, demo application)"""
    return read("images").splitlines()[1:]


def environment():
    cache = read("images").splitlines()[0]
    return {**os.environ, "CONTAINERS_CONF": cache + "/containers.conf",
            "CONTAINERS_STORAGE_CONF": cache + "/storage.conf"}


def podman(*arguments, check=True, program="podman", timeout=120, **kwargs):
    done = subprocess.run([program, *arguments], env=environment(), capture_output=True,
                          timeout=timeout, stdin=kwargs.pop("stdin", subprocess.DEVNULL), **kwargs)
    if check:
        assert done.returncode == 0, (arguments, (done.stdout + done.stderr).decode()[-3000:])
    return done


def output(*arguments, **kwargs):
    return podman(*arguments, **kwargs).stdout.decode().strip()


def inspect(kind, name):
    found = json.loads(output(kind, "inspect", name))
    return found[0] if isinstance(found, list) else found


def process_of(container):
    return inspect("container", container)["State"]["Pid"]


def memory_kib(pid):
    """{"RssAnon": KiB, "VmRSS": KiB} of a process."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return {line.split(":")[0]: int(line.split()[1]) for line in f
                if line.startswith(("RssAnon:", "VmRSS:"))}
