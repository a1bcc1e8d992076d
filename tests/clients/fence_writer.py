"""A leader that writes: fence_writer.py FENCE PLACE SOCKET ELECTION

    pause ROUND -> has 50 writes checked, says `checked`, and stops itself (SIGSTOP). When it goes on
                   it writes all of them: wrote ACCEPTED REFUSED LOWEST_TOKEN HIGHEST_TOKEN
    write ROUND -> checks and writes the same, without a pause
"""

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [TESTS, os.path.join(TESTS, "..", "sidecar", "clients", "python")]
from clients.fences import FENCES  # noqa: E402
from gavel import Gavel, NotLeader  # noqa: E402

WRITES = 50
CONNECTIONS = 10
UNGUARDED = 5  # so many of them write to an unguarded place as well

fence = FENCES[sys.argv[1]](sys.argv[2])
gavel = Gavel(sys.argv[3], sys.argv[4], margin=0.002)


def check():
    while True:
        try:
            return gavel.require_leader()
        except NotLeader:
            time.sleep(0.01)


def write(n, token, prepared):
    accepted = fence.write(prepared, token, n, True)
    if n < UNGUARDED:
        fence.write(None, token, n, False)
    return accepted


with ThreadPoolExecutor(CONNECTIONS) as pool:
    for line in sys.stdin:
        verb, number = line.split()
        fence.round = int(number)
        tokens = [check() for _ in range(WRITES)]
        prepared = [None] * WRITES
        if verb == "pause":
            prepared = [fence.prepare(token) for token in tokens]
            os.write(1, b"checked\n")
            os.kill(os.getpid(), signal.SIGSTOP)
        accepted = sum(pool.map(write, range(WRITES), tokens, prepared))
        os.write(1, b"wrote %d %d %d %d\n" % (accepted, WRITES - accepted, min(tokens),
                                             max(tokens)))
