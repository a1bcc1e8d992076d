"""What `gavel exec` runs in tests: exec_child.py FILE [obeys|stubborn]

Writes "TOKEN PID NS" to FILE every few milliseconds, and so does a grandchild in a session of its
own that is orphaned at once and keeps no other descriptor. Stubborn ones ignore SIGTERM.
"""

import os
import signal
import sys
import time

path, manner = sys.argv[1], sys.argv[2]
out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
if manner == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)  # its child has no parent of ours any more
    os.closerange(0, out)
    os.closerange(out + 1, 1024)
while True:
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.write(out, f"{os.environ['GAVEL_TOKEN']} {os.getpid()} {now}\n".encode())
    time.sleep(0.004)
