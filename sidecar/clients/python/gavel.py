"""gavel for Python: does this replica lead now, and with which fencing token? One file to be copied;
the standard library of Python 3.9 or later, on Linux.

    gavel = Gavel()
    if gavel.is_leader(): ...           # ask before each effect; any doubt is False
    token = gavel.require_leader()      # or raises NotLeader; send the token along with the effect
    gavel.run(work)                     # attaches; work(leadership) runs while this replica leads

A yes is good for the answer's VALID_MS, counted from before the question was sent, less `margin`: by the
smaller remainder of CLOCK_BOOTTIME (never behind the monotonic clock) and CLOCK_REALTIME.
All methods may be called from any thread. A child made by fork() is not attached: it asks the sidecar.
"""

import os
import re
import socket
import threading
import time
import weakref

_AGAIN_S = 0.1  # between two attempts to reach the sidecar
_LOOK_S = 0.1   # no sleep is longer while something works: sleeps do not count a suspended host's time
_LEADER = re.compile(rb"leader ([0-9]{1,15}) ([0-9]{1,10}) ([0-9]{1,19})")
_LEASE = re.compile(rb"lease ([0-9]{1,15}) ([0-9]{1,10}) ([0-9]{1,19}) ([0-9]{1,10})")
_REVOKE = re.compile(rb"revoke ([0-9]{1,15}) [0-9]{1,10}")
_BEAT = re.compile(rb"beat ([0-9]{1,9})")
_MS = 1_000_000
_all = weakref.WeakSet()


class NotLeader(Exception):
    """This replica does not lead, or cannot be sure that it does."""


def _now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns()


class _Held:
    """What was promised: a token, and until when on each clock."""

    def __init__(self, token, since, valid_ns):
        self.token, self._ends = token, [clock + valid_ns for clock in since]

    def left_ns(self):
        return min(end - now for end, now in zip(self._ends, _now()))


def _pushed(token, valid_ms, deadline_ns):
    """From a line that came unasked: only its deadline counts, and only if it can be one of our
    clock. None: nothing is promised."""
    now = _now()
    left = deadline_ns - now[0]
    return _Held(token, now, left) if left <= valid_ms * _MS else None


class _Line:
    """A connection to the sidecar, read by lines."""

    def __init__(self, path, timeout):
        self._held = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def say(self, text):
        self._socket.sendall(text.strip().encode() + b"\n")

    def read(self, timeout):
        """The next line. TimeoutError: none has come by then. OSError: the connection is over."""
        end = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._held:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            try:
                got = self._socket.recv(4096)
            except socket.timeout:  # TimeoutError only since Python 3.10
                raise TimeoutError from None
            if not got or len(self._held) > 4096:
                raise ConnectionError("the sidecar has gone")
            self._held += got
        line, self._held = self._held.split(b"\n", 1)
        return line

    def is_open(self):
        return self._socket.fileno() >= 0

    def leave(self):
        """Closes what a child has of it; for the parent it goes on."""
        self._socket.close()

    def end(self):
        """Ends it for the thread that reads, too."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Leadership:
    """What work(leadership) is given: the token, and when to stop."""

    def __init__(self, gavel, held, grace_ns):
        self.token, self._gavel, self._grace_ns = held.token, gavel, grace_ns
        self._over = threading.Event()

    def cancelled(self):
        """True: stop now. It comes `grace` (a tenth to a fifth of ttl) before the end."""
        if not self._over.is_set() and self._gavel._left_ns(self.token) <= self._grace_ns:
            self._over.set()
        return self._over.is_set()

    def require(self):
        """The token, to be called before each effect. Raises NotLeader once it is cancelled; run()
        takes that for the end of work that was cancelled."""
        if self.cancelled():
            raise NotLeader("leadership is over")
        return self.token

    def wait(self, seconds):
        """Sleeps, at most until it is cancelled; returns cancelled()."""
        self._over.wait(seconds)
        return self.cancelled()


class Gavel:
    def __init__(self, path=None, election="", timeout=1.0, margin=0.02):
        """election: may be left out where the sidecar has one. timeout, margin: seconds."""
        self._path = path or os.environ.get("GAVEL_SOCKET", "/run/gavel/gavel.sock")
        self._election, self._timeout = election, timeout
        self._margin_ns = int(margin * 1e9)
        self._change = threading.Condition()
        self._closed = False
        self._watching = []
        # The attachment.
        self._follower = None   # the thread; None: not attached
        self._line = None       # its connection, while it is attached
        self._held = None       # what is held of the lease
        self._grace_ns = 0
        self._working = None    # the Leadership that run() has given to work
        self._runs = False
        self._revoked = 0       # the token that must not be used any more
        self._on_revoke = None
        self._stops = False     # on_revoke() is at it
        _all.add(self)

    # --- asking --------------------------------------------------------------------------------

    def is_leader(self):
        return self.token() is not None

    def require_leader(self):
        token = self.token()
        if token is None:
            raise NotLeader("this replica does not lead")
        return token

    def token(self):
        """The fencing token while this replica leads, else None. An attached application answers
        itself from the lease that it was told; else the sidecar is asked each time."""
        with self._change:
            held = self._held
            attached = self._follower is not None
        if not attached:
            held = self._ask()
        return held.token if held and held.left_ns() > self._margin_ns else None

    def _ask(self):
        since = _now()  # before it is sent
        try:
            with _Line(self._path, self._timeout) as line:
                line.say(f"check {self._election}")
                found = _LEADER.fullmatch(line.read(self._timeout))
        except (OSError, ValueError):
            return None
        return _Held(int(found[1]), since, int(found[2]) * _MS) if found else None

    # --- changes -------------------------------------------------------------------------------

    def on_change(self, callback):
        """callback(leader, token) is called in a thread of its own: now, and at each change."""
        threading.Thread(target=self._watch, args=(callback,), daemon=True).start()

    def _watch(self, callback):
        told = ()

        def tell(held):
            nonlocal told
            token = held.token if held and held.left_ns() > self._margin_ns else None
            if told != (token,) and not self._closed:
                told = (token,)
                callback(token is not None, token)
        while not self._closed:
            try:
                with _Line(self._path, self._timeout) as line:
                    with self._change:
                        self._watching = [x for x in self._watching if x.is_open()] + [line]
                    self._watch_line(line, tell)
            except OSError:
                pass
            tell(None)
            time.sleep(_AGAIN_S)

    def _watch_line(self, line, tell):
        line.say(f"watch {self._election}")
        held, timeout = None, self._timeout
        while not self._closed:
            try:
                found = _LEADER.fullmatch(line.read(timeout))
                held = _pushed(*map(int, found.groups())) if found else None
            except TimeoutError:
                if timeout == self._timeout and held is None:
                    raise
                held = None
            tell(held)
            timeout = None if held is None else \
                max((held.left_ns() - self._margin_ns) / 1e9, 0.001)

    # --- the attachment ------------------------------------------------------------------------

    def attach(self, on_revoke=None):
        """From now on this object stands for the whole application: the sidecar leads only while
        it is attached, and gives leadership away when the process ends. It is attached again after
        the sidecar was restarted, and does not lead meanwhile. on_revoke(token) is called in a
        thread of its own when leadership is about to end: it must stop all work and then return,
        after which the sidecar is told that it is done. Returns at once."""
        with self._change:
            self._on_revoke = on_revoke or self._on_revoke
            if self._follower is None:
                self._follower = threading.Thread(target=self._follow, daemon=True)
                self._follower.start()

    def detach(self):
        """Ends the attachment: all work must have ended. Leadership is given away at once."""
        with self._change:
            follower, self._follower = self._follower, None
            self._held = None
            if self._line:
                self._line.end()
            self._change.notify_all()
        if follower and follower is not threading.current_thread():
            follower.join()

    def close(self):
        """Ends everything. Work that runs is cancelled; run() then returns None."""
        self._closed = True
        with self._change:
            for line in self._watching:
                line.end()
            self._cancel()
            runs = self._runs
            self._change.notify_all()
        if not runs:  # else run() detaches when the work has ended
            self.detach()

    def run(self, work):
        """Attaches, and calls work(leadership) each time that this replica leads, in this thread.
        Work has to look at leadership.cancelled() and to return soon after it is True: it cannot
        be killed (`gavelctl exec` can). When it returns by itself, leadership is given away and
        its result is returned; an exception does the same."""
        self._runs = True
        self.attach()
        try:
            while True:
                leadership = self._next()
                if leadership is None:
                    return None
                try:
                    result = work(leadership)
                except NotLeader:
                    if not leadership.cancelled():
                        raise
                lost = leadership.cancelled()
                self._work_ended()
                if not lost:
                    return result
        finally:
            self._working, self._runs = None, False
            self.detach()

    def _next(self):
        with self._change:
            while not self._closed:
                least = self._grace_ns + self._margin_ns
                if self._held and self._held.left_ns() > least:
                    self._working = Leadership(self, self._held, self._grace_ns)
                    return self._working
                self._change.wait()
            return None

    def _work_ended(self):
        with self._change:
            self._working = None
            self._done()
            self._change.notify_all()

    def _left_ns(self, token):
        held = self._held
        return held.left_ns() if held and held.token == token else 0

    def _cancel(self):
        if self._working:
            self._working._over.set()

    def _done(self):
        """Says so, if it is owed and nothing works any more."""
        if self._revoked and not self._working and not self._stops and self._line:
            try:
                self._line.say(f"done {self._revoked}")
            except OSError:
                pass

    def _follow(self):
        mine = threading.current_thread()
        while self._follower is mine:
            try:
                with _Line(self._path, self._timeout) as line:
                    self._converse(line, mine)
            except (OSError, ValueError):
                pass
            with self._change:
                self._line = self._held = None
                self._revoked = 0
                self._cancel()
                while self._working or (self._stops and self._follower is mine):
                    self._change.wait()  # a new attachment would vouch for it
                if self._follower is mine:
                    self._change.wait(_AGAIN_S)

    def _converse(self, line, mine):
        line.say(f"attach {self._election}")
        if line.read(self._timeout) != b"ok":
            return
        with self._change:
            if self._follower is not mine:
                return
            self._line = line
            line.say("lease")
        beat_every, beat_at = None, 0.0
        while self._follower is mine:
            wait = 1.0 if beat_every is None else min(1.0, beat_at - time.monotonic())
            try:
                words = line.read(max(self._until_cancel_s(wait), 0.001))
            except TimeoutError:
                words = b""
            beat = _BEAT.fullmatch(words)
            if beat:
                beat_every = max(int(beat[1]), 4) / 4000
            elif words:
                self._hear(words)
            if self._working:
                self._working.cancelled()
            if beat_every is not None and time.monotonic() >= beat_at:
                beat_at = time.monotonic() + beat_every
                with self._change:
                    line.say("beat")

    def _until_cancel_s(self, most):
        working, held = self._working, self._held
        if working is None or held is None or working._over.is_set():
            return most
        return min(most, _LOOK_S, (held.left_ns() - working._grace_ns) / 1e9)

    def _hear(self, words):
        lease, revoke = _LEASE.fullmatch(words), _REVOKE.fullmatch(words)
        with self._change:
            if lease and int(lease[1]) != self._revoked:
                self._held = _pushed(*map(int, lease.groups()[:3]))
                ttl_ns = int(lease[4]) * _MS
                self._grace_ns = min(max(ttl_ns // 10, 1_000_000_000), ttl_ns // 5)
                if self._working and self._working.token != int(lease[1]):
                    self._cancel()
                self._change.notify_all()
            elif revoke:
                self._revoked, self._held = int(revoke[1]), None
                self._cancel()
                if self._on_revoke and not self._stops:
                    self._stops = True
                    threading.Thread(target=self._stop, args=(self._revoked,)).start()
                elif self._runs:
                    self._done()

    def _stop(self, token):
        """An error of on_revoke() is no `done`: the lease then runs out."""
        stopped = False
        try:
            self._on_revoke(token)
            stopped = True
        finally:
            with self._change:
                self._stops = False
                if self._revoked == token:
                    if stopped:
                        self._done()
                elif self._revoked:  # another one was revoked meanwhile
                    self._stops = True
                    threading.Thread(target=self._stop, args=(self._revoked,)).start()
                self._change.notify_all()

    def _forked(self):
        """In the child. The attachment is the parent's; the lock may be held by a thread that is
        not here."""
        self._change = threading.Condition()
        for line in [*self._watching, self._line]:
            if line:
                line.leave()
        self._follower = self._line = self._held = self._working = None
        self._watching, self._runs, self._stops, self._revoked = [], False, False, 0


def _forked():
    for gavel in list(_all):
        gavel._forked()


os.register_at_fork(after_in_child=_forked)
