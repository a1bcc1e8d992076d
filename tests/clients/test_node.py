"""What only the client for Node can meet: its clock is a file."""

import os
import resource
import signal
import subprocess

import pytest

from clients.languages import CLIENTS, LANGUAGES, PROGRAMS
from kit.clock import wait_until
from kit.sidecar import clean_env

pytestmark = pytest.mark.skipif("node" not in LANGUAGES, reason="no node here")


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))


class Working:
    def __init__(self, socket_path):
        self.process = subprocess.Popen(
            ["node", os.path.join(PROGRAMS, "descriptors.mjs"), socket_path], text=True,
            stdout=subprocess.PIPE, env=clean_env({"GAVEL_CLIENTS": CLIENTS}),
            preexec_fn=few_descriptors)

    def says(self):
        return self.process.stdout.readline().split()

    def close(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()


def test_work_that_has_used_up_its_descriptors_is_cancelled(start, closing):
    pod = start("pod-a", "--ttl", "2s", "--mode", "efficiency", "--require-app")
    working = closing(Working(pod.socket_path))
    assert working.says() == ["working", "EMFILE"]
    pod.signal(signal.SIGSTOP)  # nobody tells it any more
    try:
        wait_until(lambda: working.process.poll() is not None, 20, "it was cancelled")
    finally:
        pod.thaw()
    assert working.says() == ["cancelled", "NotLeader"]
