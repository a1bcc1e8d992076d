"""The judge: reads answers in the order in which they arrived and says what they break.

An answer was composed at some unknown moment between `send` and `receive`, and promises leadership
from that moment until `deadline`. So two answers of different replicas overlap for certain when
each of them was received before the deadline of the other: only what is certain is reported.
All times are CLOCK_BOOTTIME in nanoseconds, read on this host.
"""

import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class Answer:
    replica: str
    send: int
    receive: int
    leader: bool
    token: int = 0
    deadline: int = 0  # the earliest moment at which the validity can end


@dataclasses.dataclass
class Grant:
    replica: str
    token: int
    first_send: int
    first_receive: int
    last_receive: int = 0
    latest_deadline: int = 0
    # Answers that may still collide with one that arrives later.
    live: collections.deque = dataclasses.field(default_factory=collections.deque)


class History:
    def __init__(self):
        self.grants = {}  # token -> Grant, in order of first arrival
        self.violations = []
        self.answers = 0
        self.leader_answers = 0
        self._now = 0
        self._stopped = set()
        self._reported = collections.Counter()

    def add(self, answer):
        """Takes one answer; they must come ordered by `receive`."""
        assert answer.receive >= self._now, "answers must come in the order of their arrival"
        self._now = answer.receive
        self.answers += 1
        if not answer.leader:
            return
        self.leader_answers += 1
        if answer.deadline < answer.send:
            self._report("late answer",
                         f"{answer.replica} answered leader {answer.token}, its deadline was "
                         f"over {answer.send - answer.deadline} ns before it was asked")
        grant = self._grant_of(answer)
        if answer.replica in self._stopped:
            answer = dataclasses.replace(answer, deadline=min(answer.deadline, answer.receive))
        self._check_overlap(answer)
        self._check_older(answer)
        grant.last_receive = answer.receive
        grant.latest_deadline = max(grant.latest_deadline, answer.deadline)
        if answer.deadline > answer.receive:
            grant.live.append(answer)

    def stop_readers(self, replica, at):
        """The application beside that replica has ended: what was promised to it no longer counts,
        and what is answered from now on is good for the moment of the answer only."""
        self._stopped.add(replica)
        for grant in self.grants.values():
            if grant.replica == replica:
                grant.latest_deadline = min(grant.latest_deadline, at)
                grant.live.clear()

    def resume_readers(self, replica):
        self._stopped.discard(replica)

    def _report(self, kind, text):
        self._reported[kind] += 1
        if self._reported[kind] <= 25:  # the first ones tell all
            self.violations.append(f"{kind}: {text}")

    def _grant_of(self, answer):
        grant = self.grants.get(answer.token)
        if grant is None:
            grant = Grant(answer.replica, answer.token, answer.send, answer.receive)
            self.grants[answer.token] = grant
        elif grant.replica != answer.replica:
            self._report("shared token",
                         f"{answer.token} came from {grant.replica} and {answer.replica}")
        return grant

    def _check_overlap(self, answer):
        for other in self.grants.values():
            if other.replica == answer.replica or other.latest_deadline <= answer.receive:
                continue
            while other.live and other.live[0].deadline <= answer.receive:
                other.live.popleft()
            for older in other.live:
                if older.deadline > answer.receive and older.receive < answer.deadline:
                    self._report(
                        "two leaders", f"{older.replica} ({older.token}) answered at "
                        f"{older.receive}, valid until {older.deadline}; {answer.replica} "
                        f"({answer.token}) answered at {answer.receive}, valid until "
                        f"{answer.deadline}")
                    break

    def _check_older(self, answer):
        """Tokens rise: nobody hears an older one in answer to a question asked later."""
        for other in self.grants.values():
            if other.token > answer.token and other.first_receive < answer.send:
                self._report("tokens fell",
                             f"{answer.replica} answered {answer.token} after "
                             f"{other.replica} had answered {other.token}")
                return

    def check(self):
        assert not self.violations, "\n".join(self.violations[:10])
