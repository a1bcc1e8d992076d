"""An application that attaches: application_main.py SOCKET BEAT_MS DONE_MS

Says on stdout what it hears, each line with its moment of CLOCK_BOOTTIME. It watches on a second
connection of the same process. BEAT_MS 0: no beats. DONE_MS: how long it takes to stop; -1: never.
"""

import os
import select
import socket
import sys
import time

path, beat_ms, done_ms = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def connect(verb):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    while True:
        try:
            s.connect(path)
            break
        except OSError:
            time.sleep(0.01)
            s.close()
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.sendall(verb + b"\n")
    return s


attached = connect(b"attach")
reply = attached.recv(100)
say("attached" if reply == b"ok\n" else reply.decode().strip(), now_ns())
watching = connect(b"watch")
held = {attached: b"", watching: b""}
beat_at = now_ns()
done = []  # (when, token)
while True:
    if beat_ms and now_ns() >= beat_at:
        attached.sendall(b"beat\n")
        beat_at = now_ns() + beat_ms * 1_000_000
    for item in [d for d in done if d[0] <= now_ns()]:
        done.remove(item)
        at_ns = now_ns()  # before it is sent: another may lead before this one runs again
        attached.sendall(b"done %d\n" % item[1])
        say("done", item[1], at_ns)
    for s in select.select(list(held), [], [], 0.005)[0]:
        got = s.recv(4096)
        if not got:
            say("ended", now_ns())
            sys.exit(0)
        *lines, held[s] = (held[s] + got).split(b"\n")
        for line in lines:
            text = line.decode()
            say(text, now_ns())
            if text.startswith("revoke ") and done_ms >= 0:
                done.append((now_ns() + done_ms * 1_000_000, int(text.split()[1])))
