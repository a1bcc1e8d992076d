"""Speaks the line protocol of ../languages.py with the client for Python: program.py SOCKET ELECTION"""

import os
import sys
import threading
import time

sys.path.insert(0, os.environ["GAVEL_CLIENTS"] + "/python")
from gavel import Gavel, NotLeader  # noqa: E402

gavel = Gavel(sys.argv[1], sys.argv[2])
finish = threading.Event()
go = threading.Event()  # on_revoke may return
throws = "THROWS" in os.environ  # every callback fails
if throws:
    threading.excepthook = lambda args: say("failed")


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def say_and_throw(*words):
    say(*words)
    if throws:
        raise ValueError(words)


def revoked(token):
    say_and_throw("revoked", token, now_ns())
    if "SLOW" in os.environ:
        go.wait()


def churn():
    for _ in range(25):
        gavel.attach(revoked)
        gavel.detach()


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def require():
    try:
        return gavel.require_leader()
    except NotLeader:
        return "not-leader"


def work(leadership):
    say("started", leadership.token, now_ns())
    while not finish.is_set() and not leadership.wait(0.01):
        pass
    if leadership.cancelled():
        say("cancelled", leadership.token, now_ns())
    finish.wait()
    finish.clear()
    say("stopped", leadership.token, now_ns())


def run():
    gavel.run(work)
    say("returned")


for line in sys.stdin:
    verb = line.strip()
    if verb == "is_leader":
        say("is_leader", str(gavel.is_leader()).lower())
    elif verb == "token":
        say("token", gavel.token() or "-")
    elif verb == "require":
        say("require", require())
    elif verb == "watch":
        gavel.on_change(
            lambda leader, token: say_and_throw("change", str(leader).lower(), token or "-"))
    elif verb == "attach":
        try:
            gavel.attach(revoked)
        except RuntimeError:
            say("cannot")
    elif verb == "detach":
        gavel.detach()
        say("detached")
    elif verb == "run":
        threading.Thread(target=run, daemon=True).start()
    elif verb == "finish":
        finish.set()
    elif verb == "go":
        go.set()
    elif verb == "churn":
        threads = [threading.Thread(target=churn) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say("churned")
