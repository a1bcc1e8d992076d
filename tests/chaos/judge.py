"""The judge of a whole history: what applications were told, what they wrote and what was accepted.

Answers come as runs: those that one application got in one way, one after the other, and that say
the same. Each answer was composed at some unknown moment between the question and its arrival, and
promises leadership until its deadline; so what is certain of a run is that the replica was trusted
from `begin`, the arrival of its first answer (or that one's deadline, if it came later than that),
until its latest deadline: a run ends where an answer comes later than that. Only what is certain is
held against anybody. All times are CLOCK_BOOTTIME in nanoseconds, read on this host.

What a history of an hour takes is a few ten thousand runs, not the millions of answers.
"""

import collections
import dataclasses

S = 1_000_000_000
TOLD = 20  # of each kind of violation; the first ones tell all
# Asked by the process that is attached, on a connection made after that. What is told there ends
# with the attachment's `done`, its `resign` and its end; what is told elsewhere runs its full time.
OF_ATTACHMENT = ("attached", "socket, attached")


@dataclasses.dataclass(slots=True)
class Run:
    replica: str
    life: int           # of the application: which of those that ran beside that replica, in turn
    way: str            # by which it asked: socket, attached, http, page
    said: str           # leader, or another state; "none": no answer
    token: int
    first_send: int
    begin: int
    first_receive: int
    last_send: int
    last_receive: int
    deadline: int       # the latest one
    late: int = 0       # by how much the worst answer's deadline was over when it was asked for
    count: int = 1

    def update(self, last_send, last_receive, deadline, late, count):
        self.last_send, self.last_receive = last_send, last_receive
        self.deadline, self.late, self.count = deadline, late, count


@dataclasses.dataclass(slots=True)
class Writes:
    """In a row, under one token, with one result."""
    replica: str
    life: int
    token: int
    accepted: bool
    trusted: bool       # answered while the validity was still running under which it was sent
    first_send: int
    first_receive: int
    last_send: int
    last_receive: int
    highest: int = 0    # refused: the token that the resource named, the lowest of them
    count: int = 1

    def update(self, last_send, last_receive, highest, count):
        self.last_send, self.last_receive = last_send, last_receive
        self.highest, self.count = highest, count


@dataclasses.dataclass(frozen=True)
class Violation:
    kind: str
    at: int
    text: str


@dataclasses.dataclass(frozen=True)
class _Claim:
    begin: int
    end: int
    replica: str
    token: int


class Judge:
    def __init__(self):
        self.runs = []
        self.writes = []
        self.excuses = []     # (start, end): there were two masters
        self.healings = []    # (when all was well again, when one led or None, by when one had to)
        self._ended = {}      # (replica, life) -> moments at which the attached one had stopped
        self._started = {}    # replica -> moments at which its sidecar began anew, the old one dead
        self._direct = []     # violations that need nobody else
        self._highest = 0     # accepted, in the order of the resource
        self._writers = {}    # token -> replica
        self.accepted = 0

    # Taking down.
    def stopped(self, replica, life, at):
        """That application had stopped to work under what it was told as the attached one: it said
        `done` or `resign`, or it was killed. What others were told, by HTTP and on the page too,
        holds all the same."""
        self._ended.setdefault((replica, life), []).append(at)

    def started(self, replica, at):
        self._started.setdefault(replica, []).append(at)

    def contradiction(self, replica, at, text):
        self.direct("contradiction", at, f"{replica}: {text}")

    def direct(self, kind, at, text):
        """What is wrong by itself."""
        if sum(v.kind == kind for v in self._direct) < TOLD:
            self._direct.append(Violation(kind, at, text))

    def accepted_next(self, replica, token, at):
        """The next write in the order in which the resource took them; `at`: read there."""
        self.accepted += 1
        if token < self._highest:
            self.direct("stale write", at, f"the resource took {token} of {replica} after "
                                           f"{self._highest}")
        self._highest = max(self._highest, token)
        other = self._writers.setdefault(token, replica)
        if other != replica:
            self.direct("shared token", at, f"{other} and {replica} wrote under {token}")

    def excuse(self, start, end):
        """Two masters answered: no client can exclude two leaders then. Tokens still differ."""
        self.excuses.append((start, end))

    def healed(self, at, led_at, until):
        self.healings.append((at, led_at, until))

    # Judging.
    def verdict(self):
        """All violations, in the order of time."""
        found = list(self._direct)
        leaders = [r for r in self.runs if r.said == "leader"]
        for check in (self._late, self._overlaps, self._shared, self._shared_by_lives, self._fell):
            found += check(leaders)
        for check in (self._stale, self._refused, self._healing):
            found += check()
        return sorted(found, key=lambda v: v.at)

    def excused(self):
        """How many violations the excuses cover."""
        kept, self.excuses = self.excuses, []
        all_of_them = len(self.verdict())
        self.excuses = kept
        return all_of_them - len(self.verdict())

    def _is_excused(self, start, end):
        return any(s <= start and end <= e for s, e in self.excuses)

    @staticmethod
    def _late(leaders):
        return [Violation("late answer", r.last_receive, f"{r.replica} ({r.way}) answered leader "
                          f"{r.token}, its deadline was over {r.late} ns before it was asked")
                for r in leaders if r.late > 0][:TOLD]

    def _claims(self, leaders):
        for r in leaders:
            end = min([r.deadline] + [at for at in self._ended.get((r.replica, r.life), ())
                                      if r.way in OF_ATTACHMENT and r.last_send <= at])
            # What came after the deadline was composed in it: a moment before its end.
            begin = min(r.begin, end - 1)
            if r.first_send < end:
                yield _Claim(begin, end, r.replica, r.token)

    def _overlaps(self, leaders):
        latest, found, seen = {}, [], set()
        for claim in sorted(self._claims(leaders), key=lambda c: c.begin):
            for other in latest.values():
                pair = other.replica, other.token, claim.replica, claim.token
                end = min(other.end, claim.end)
                if other.replica == claim.replica or other.end <= claim.begin or pair in seen \
                        or self._is_excused(claim.begin, end):
                    continue
                seen.add(pair)
                found.append(Violation(
                    "two leaders", claim.begin, f"{other.replica} ({other.token}) is trusted until "
                    f"{other.end}, {claim.replica} ({claim.token}) from {claim.begin} on: both for "
                    f"{(end - claim.begin) / 1e6:.3f} ms"))
            known = latest.get(claim.replica)
            if known is None or known.end < claim.end:
                latest[claim.replica] = claim
        return found[:TOLD]

    @staticmethod
    def _shared(leaders):
        owners, found = {}, []
        for r in leaders:
            other = owners.setdefault(r.token, r)
            if other.replica != r.replica:
                found.append(Violation("shared token", r.begin, f"{r.token} came from "
                                       f"{other.replica} and {r.replica}"))
        return found[:TOLD]

    def _shared_by_lives(self, leaders):
        """One token, two lives of one sidecar. A page of the dead one can be read after its end, so
        that only what a process answered says that it was the later one."""
        first, last, found = {}, {}, []
        for r in leaders:
            key = r.replica, r.token
            first[key] = min(first.get(key, r.first_receive), r.first_receive)
            if r.way != "page":
                last[key] = max(last.get(key, r.last_send), r.last_send)
        for (replica, token), end in last.items():
            found += [Violation("shared token", at, f"{token} came from {replica} before and after "
                                "its sidecar had ended and started anew")
                      for at in self._started.get(replica, ())
                      if first[replica, token] < at < end]
        return found[:TOLD]

    def _fell(self, leaders):
        """Nobody hears an older token in answer to a question asked after a newer one came."""
        return self._falling(leaders, "tokens fell", "{0} answered {1} to a question asked {2:.3f} "
                             "ms after {3} had answered {4}")

    def _stale(self):
        """The same for writes: by the times of those who wrote, whatever the resource says."""
        return self._falling([w for w in self.writes if w.accepted], "stale write",
                             "a write of {0} under {1} was accepted that was sent {2:.3f} ms after "
                             "one of {3} under {4}")

    def _falling(self, things, kind, text):
        first, last = {}, {}
        for t in things:
            if t.token not in first or t.first_receive < first[t.token].first_receive:
                first[t.token] = t
            if t.token not in last or t.last_send > last[t.token].last_send:
                last[t.token] = t
        found, newer = [], None
        for token in sorted(first, reverse=True):
            older = last[token]
            if newer is not None and newer.first_receive < older.last_send \
                    and not self._is_excused(newer.first_receive, older.last_send):
                found.append(Violation(kind, older.last_send, text.format(
                    older.replica, token, (older.last_send - newer.first_receive) / 1e6,
                    newer.replica, newer.token)))
            if newer is None or first[token].first_receive < newer.first_receive:
                newer = first[token]
        return found[:TOLD]

    def _refused(self):
        found = []
        for w in self.writes:
            if w.accepted:
                continue
            if w.highest <= w.token:
                found.append(Violation("refused without reason", w.last_receive, f"{w.replica} "
                                       f"wrote under {w.token}, the resource names {w.highest}"))
            elif w.trusted and not self._is_excused(w.first_send, w.last_receive):
                found.append(Violation("refused leader", w.last_receive, f"{w.replica} wrote under "
                                       f"{w.token} within its validity, {w.highest} was newer"))
        return found[:TOLD]

    def _healing(self):
        return [Violation("nobody leads", until, "nobody led within "
                          f"{(until - at) / S:.1f} s after all faults were over")
                for at, led, until in self.healings if led is None or led > until]

    # Telling.
    def numbers(self):
        counts = collections.Counter()
        for r in self.runs:
            counts["answers"] += r.count
            counts["leader answers"] += r.count * (r.said == "leader")
            counts["answers by " + r.way] += r.count
        for w in self.writes:
            counts["writes accepted" if w.accepted else "writes refused"] += w.count
        counts["grants"] = len({r.token for r in self.runs if r.said == "leader"})
        return dict(counts)

    def around(self, at, reach=2 * S):
        """The piece of the history around that moment, as lines."""
        lines = []
        for r in self.runs:
            end = r.deadline if r.said == "leader" else r.last_receive
            if r.first_send < at + reach and end > at - reach:
                until = f", trusted until {(r.deadline - at) / 1e6:+.3f}" if r.said == "leader" else ""
                lines.append((r.first_send, f"{(r.first_send - at) / 1e6:+.3f} … "
                              f"{(r.last_receive - at) / 1e6:+.3f} ms  {r.replica} {r.way}: {r.said}"
                              f" {r.token or ''} ({r.count}{until})"))
        for w in self.writes:
            if w.first_send < at + reach and w.last_receive > at - reach:
                what = "accepted" if w.accepted else f"refused by {w.highest}"
                lines.append((w.first_send, f"{(w.first_send - at) / 1e6:+.3f} … "
                              f"{(w.last_receive - at) / 1e6:+.3f} ms  {w.replica} writes {w.token}: "
                              f"{what} ({w.count})"))
        for (replica, life), moments in self._ended.items():
            lines += [(m, f"{(m - at) / 1e6:+.3f} ms  the application {life} of {replica} stops")
                      for m in moments if abs(m - at) < reach]
        for replica, moments in self._started.items():
            lines += [(m, f"{(m - at) / 1e6:+.3f} ms  the sidecar of {replica} starts anew")
                      for m in moments if abs(m - at) < reach]
        return lines
