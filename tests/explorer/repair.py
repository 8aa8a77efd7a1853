"""What runs after a schedule until nothing is left to do: the queues bring back, SES's events come, the retry runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from explorer.invariants import SUPPRESSED, Invariant, Violated, check_rest, logged_mails
from explorer.process import Process, Settings
from explorer.schedules import Search, State
from explorer.shared import send_event
from fakes.clock import START

VISIBILITY = timedelta(minutes=12)  # of the job.settled queue, in template.yaml
FEEDBACK_VISIBILITY = timedelta(minutes=6)
MOST_ROUNDS = 200


class Events(StrEnum):
    """When SES's own events arrive."""

    FIRST = "before the redelivery"
    LAST = "after the redelivery"
    NEVER = "never"


class Repaired(NamedTuple):
    """What was left, and who brought the notice to rest, how long after the schedule began (None: it was at rest)."""

    state: State
    by: str | None
    at: timedelta


class Repair:
    """Repairs each different end once, with SES's events early, late and lost."""

    def __init__(self, search: Search, settings: Settings, since: timedelta) -> None:
        """`since` is when the processes of the schedule began."""
        self._search = search
        self._settings = settings
        self._since = since
        self._done: set[State] = set()

    def __call__(self, state: State) -> None:
        """Repair, and check what is left. Raises Violated."""
        end = state._replace(nodes=(), faults_left=0, last=-1, switches_left=None)
        if end in self._done:
            return
        self._done.add(end)
        for events in Events:
            mark = len(self._search.path)
            self._search.path.append(f"then SES's events come {events}")
            self.run(end, events)
            del self._search.path[mark:]

    def run(self, state: State, events: Events) -> Repaired:
        """Let everything that repairs do its work, and return what it leaves and who did it."""
        rounds = _Rounds(self._search, self._settings, state, self._since)
        try:
            rounds.until_rest(events)
        except Violated as violated:
            raise Violated(violated.invariant, violated.detail, violated.path or self._search.path) from None
        return Repaired(rounds.state, rounds.by, rounds.at)


class _Rounds:
    def __init__(self, search: Search, settings: Settings, state: State, since: timedelta) -> None:
        self.state = state
        self._search = search
        self._settings = settings
        self.by: str | None = None
        self.at = timedelta(0)
        self._number = 0
        self._since = since
        self._clock = since + timedelta(minutes=1)

    def until_rest(self, events: Events) -> None:
        for _ in range(MOST_ROUNDS):
            if events is Events.FIRST:
                self._tell_events()
            self._redeliver()
            if events is Events.LAST:
                self._tell_events()
            if not self.state.shared.queued and not self.state.back and not self._wait_until_due():
                break
        else:
            raise Violated(Invariant.NOT_LOST, "it never comes to rest", self._search.path)
        shared, notice = self.state.shared, self._search.notice(self.state)
        endings = {"gave_up", SUPPRESSED} | ({"provider_refused"} if shared.refused else set())
        check_rest(notice, [reference for reference, _ in shared.accepted], told=sorted(shared.told), endings=endings)
        if notice is not None and not shared.told <= set(logged_mails(notice)):
            raise Violated(Invariant.MAILS_ARE_LOGGED, "SES told of a mail that the log does not have")

    def _tell_events(self) -> None:
        shared = self.state.shared
        new = [mail for mail in shared.accepted if mail[0] not in shared.told]
        for mail in new:
            self.state = self.state._replace(shared=self.state.shared._replace(told=self.state.shared.told | {mail[0]}))
            self._run("feedback", send_event(mail))

    def _redeliver(self) -> None:
        back, self.state = self.state.back, self.state._replace(back=())
        queued, shared = self.state.shared.queued, self.state.shared._replace(queued=())
        self.state = self.state._replace(shared=shared)
        for kind, body in back:
            if kind == "feedback":
                self._clock = max(self._clock, self._since + FEEDBACK_VISIBILITY)
                self._run(kind, body, by="feedback queue")
        if any(kind == "sender" for kind, _ in back):
            self._clock = max(self._clock, self._since + VISIBILITY)
        for body in [body for kind, body in back if kind == "sender"] + list(queued):
            self._run("sender", body)

    def _wait_until_due(self) -> bool:
        """Let time pass until the notice is due, and run the retry; return whether it was to be due at all."""
        notice = self._search.notice(self.state)
        if notice is None or "next_attempt_at" not in notice:
            return False
        due = datetime.strptime(notice["next_attempt_at"]["S"], "%Y-%m-%dT%H:%M:%S.%f%z") - START
        self._clock = max(self._clock, due + timedelta(seconds=1))
        self._run("retry")
        return True

    def _rests(self) -> bool:
        notice = self._search.notice(self.state)
        return notice is not None and "next_attempt_at" not in notice

    def _run(self, kind: str, body: str = "", by: str = "") -> None:
        self._number += 1
        process = Process(f"repair{self._number}-", kind, body, self._clock, self._settings)
        rested = self._rests()
        self.state = self._search.alone(self.state, process)
        if self._rests() and not rested:
            self.by, self.at = by or ("retry" if '"retry"' in body else kind), self._clock - self._since
        self._clock += timedelta(seconds=1)
