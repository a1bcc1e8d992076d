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
import select
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
        self._over = False

    def left_ns(self):
        """Once one of them has used it up it is over, although the wall clock may be set back."""
        left = 0 if self._over else min(end - now for end, now in zip(self._ends, _now()))
        if left <= 0:
            self._over = True
        return left


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
        self._ended = self.gone = False  # by end(); by the sidecar
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(path)
            self._socket.setblocking(False)
            self._readable = select.poll()
            self._readable.register(self._socket, select.POLLIN)
        except OSError:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def say(self, text):
        """One that is not taken is as if it had not been said: there are hundreds before it that
        the sidecar has not read, and the end of an attachment would say that all work has stopped."""
        try:
            # So short a line is taken, or not.
            self._socket.send(text.strip().encode() + b"\n", socket.MSG_NOSIGNAL)
        except BlockingIOError:
            pass
        except OSError:
            self.gone = True
            raise

    def read(self, timeout):
        """The next line. TimeoutError: none has come by then. OSError: the connection is over."""
        end = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._held:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            if not self._readable.poll(None if left is None else int(min(left, 3600) * 1000) + 1):
                continue
            try:
                got = self._socket.recv(4096)
            except BlockingIOError:
                continue
            except OSError:
                got = b""
            if not got:
                self.gone = not self._ended
                raise ConnectionError("the sidecar has gone")
            self._held += got
            if len(self._held) > 4096 and b"\n" not in self._held:
                raise ConnectionError("this is no sidecar")
        line, self._held = self._held.split(b"\n", 1)
        return line

    def is_open(self):
        return self._socket.fileno() >= 0

    def close(self):
        """By the thread that reads. Or in a child: for the parent it goes on."""
        self._socket.close()

    def end(self):
        """From any thread: ends it for the one that reads, too."""
        self._ended = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _report(error):
    """As if the thread had ended with it, which goes on."""
    try:
        threading.excepthook(threading.ExceptHookArgs(
            (type(error), error, error.__traceback__, threading.current_thread())))
    except Exception:
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
        self._last = None       # ... or the one that still waits for work to end
        self._stopper = None    # the thread that calls on_revoke()
        self._line = None       # its connection, while it is attached
        self._open = None       # ... for as long as it is open
        self._held = None       # what is held of the lease
        self._told = None       # the last of it, by which something may still work
        self._grace_ns = 0
        self._working = None    # the Leadership that run() has given to work
        self._runs = None       # of run(); None: of none, or it was detached meanwhile
        self._revoked = 0       # the token that must not be used any more
        self._on_revoke = None
        self._stops = 0         # the token for which on_revoke() is at it
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
        """callback(leader, token) is called in a thread of its own: now, and at each change.
        RuntimeError: no thread can be had."""
        threading.Thread(target=self._watch, args=(callback,), daemon=True).start()

    def _watch(self, callback):
        told = ()

        def tell(held):
            nonlocal told
            token = held.token if held and held.left_ns() > self._margin_ns else None
            if told != (token,) and not self._closed:
                told = (token,)
                try:
                    callback(token is not None, token)
                except BaseException as error:
                    _report(error)
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
        after which the sidecar is told that it is done. Returns at once. RuntimeError: no thread
        can be had, and nothing has changed."""
        with self._change:
            before, self._on_revoke = self._on_revoke, on_revoke or self._on_revoke
            try:
                self._start()
            except BaseException:
                self._on_revoke = before
                raise

    def _start(self):
        """All threads that will be needed: at the moment of a revocation there may be none to be
        had, and nobody would be told."""
        last, attached = self._last, self._follower is not None
        if not attached:
            self._follower = self._last = threading.Thread(
                target=self._follow, args=(last,), daemon=True)
        try:
            if self._on_revoke and not self._stopper:
                stopper = threading.Thread(target=self._serve, daemon=True)
                stopper.start()
                self._stopper = stopper
            if not attached:
                self._follower.start()
        except BaseException:
            if not attached:
                self._follower, self._last = None, last
                self._change.notify_all()  # the other thread ends
            raise

    def detach(self):
        """Ends the attachment, and gives leadership away at once: all work must have ended. If
        run() or on_revoke() still work, that is done when they have returned, and not waited for."""
        with self._change:
            follower, self._follower = self._follower, None
            self._held = self._runs = None
            self._cancel()
            works = self._working or self._stops
            if self._line and not works:
                self._line.end()
            self._change.notify_all()
        if follower and not works and follower is not threading.current_thread():
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
        its result is returned; an exception does the same. detach() and close() end it: it then
        returns None. RuntimeError: no thread can be had, or another run() is not over."""
        mine = object()
        with self._change:
            if self._runs or self._working:
                raise RuntimeError("run() runs already")
            self.attach()
            self._runs = mine
        try:
            while True:
                leadership = self._next(mine)
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
            with self._change:
                self._working = None
                own = self._runs is mine
                self._change.notify_all()
            if own:
                self.detach()

    def _next(self, mine):
        with self._change:
            while self._runs is mine and not self._closed:
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
                self._told = None
            except OSError:
                pass

    def _follow(self, before):
        mine = threading.current_thread()
        if before:
            before.join()  # something still works by what that was told
        while self._follower is mine:
            line = None
            try:
                line = self._open = _Line(self._path, self._timeout)
                self._converse(line, mine)
            except Exception as error:  # whatever it is: not leader
                if not isinstance(error, (OSError, ValueError)):
                    _report(error)
            with self._change:
                self._line = self._held = None
                self._revoked = 0
                self._cancel()
                # The end of a connection says that nothing works any more, and a new one would
                # vouch for what does: neither before that is so, whatever has gone wrong.
                while self._may_work(line, mine):
                    self._change.wait(_LOOK_S)
                self._told = self._open = None
            if line:
                line.close()
            with self._change:
                if self._follower is mine:
                    self._change.wait(_AGAIN_S)

    def _may_work(self, line, mine):
        """By what was told on this connection. run() knows of its own work; of what else there is
        we know only that it was told of the lease."""
        if self._working or self._stops:
            return True
        if self._follower is not mine or line is None or line.gone:
            return False
        knows = self._runs and not self._on_revoke
        return not knows and self._told is not None and self._told.left_ns() > 0

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
                self._hear(words, mine)
            working = self._working
            if working:
                working.cancelled()
            if beat_every is not None and time.monotonic() >= beat_at:
                beat_at = time.monotonic() + beat_every
                with self._change:
                    line.say("beat")

    def _until_cancel_s(self, most):
        working, held = self._working, self._held
        if held is None:
            return most
        if working is None or working._over.is_set():
            return min(most, _LOOK_S)  # work may begin while we sleep
        return min(most, _LOOK_S, (held.left_ns() - working._grace_ns) / 1e9)

    def _hear(self, words, mine):
        lease, revoke = _LEASE.fullmatch(words), _REVOKE.fullmatch(words)
        with self._change:
            if self._follower is not mine:
                return
            if lease and int(lease[1]) != self._revoked:
                self._held = self._told = _pushed(*map(int, lease.groups()[:3]))
                ttl_ns = int(lease[4]) * _MS
                self._grace_ns = min(max(ttl_ns // 10, 1_000_000_000), ttl_ns // 5)
                if self._working and self._working.token != int(lease[1]):
                    self._cancel()
                self._change.notify_all()
            elif revoke:
                self._revoked, self._held = int(revoke[1]), None
                self._cancel()
                if self._stopper and not self._stops:
                    self._stops = self._revoked
                    self._change.notify_all()
                elif self._runs:
                    self._done()

    def _serve(self):
        with self._change:
            while self._follower or self._stops:
                if self._stops:
                    self._stop(self._stops)
                else:
                    self._change.wait()
            self._stopper = None

    def _stop(self, token):
        """The lock is held, but not meanwhile. An error of on_revoke() is no `done`: the lease
        then runs out."""
        stopped = False
        self._change.release()
        try:
            self._on_revoke(token)
            stopped = True
        except BaseException as error:
            _report(error)
        finally:
            self._change.acquire()
        # Again if another one was revoked meanwhile.
        self._stops = self._revoked if self._revoked != token else 0
        if stopped:
            self._done()
        self._change.notify_all()

    def _forked(self):
        """In the child. The attachment is the parent's; the lock may be held by a thread that is
        not here."""
        self._change = threading.Condition()
        for line in [*self._watching, self._open]:
            if line:
                line.close()
        self._follower = self._last = self._stopper = None
        self._line = self._open = self._held = self._told = self._working = None
        self._watching, self._runs, self._stops, self._revoked = [], None, 0, 0


def _forked():
    for gavel in list(_all):
        gavel._forked()


os.register_at_fork(after_in_child=_forked)
