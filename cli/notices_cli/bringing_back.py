"""What `notices retry` does with a notice, decided from what was read and done on condition that it still holds.

A notice that may be tried again is brought back as the retry does it: moved on at the revision read, then queued as a
`job.settled` event that names the new revision (DESIGN 3.6). So an event queued earlier for the same notice is void,
and a command that was interrupted can be repeated: of several events for a notice one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from notices.codes import NOBODY_TO_TELL, Code
from notices.database import DatabaseError
from notices.queues import BATCH, JobSettledQueue, QueueError, Retry
from notices.record import Notice, Notices, Status
from notices_cli.codes import CODES, code_of
from notices_cli.words import when


class Act(StrEnum):
    """What is to be done with a notice."""

    QUEUE = "queue"
    REOPEN = "reopen"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Plan:
    """A notice, what is to be done with it and why."""

    notice: Notice
    act: Act
    why: str


def plan(notice: Notice, now: datetime, *, suppressed: bool, force: bool, named: bool) -> Plan:
    """Decide over one notice. `named`: it was asked for by name, and not chosen among many."""
    match Status(notice.status):
        case Status.DELIVERED:
            return Plan(notice, Act.LEAVE, "delivered is final: it is never sent again")
        case Status.SUPPRESSED if suppressed:
            return Plan(notice, Act.REOPEN, "suppressed outside production")
        case Status.SUPPRESSED:
            return Plan(notice, Act.LEAVE, "suppressed: to re-open it takes --suppressed and a --reason")
        case _ if suppressed:
            return Plan(notice, Act.LEAVE, f"not suppressed but {notice.status}: retry it without --suppressed")
        case Status.PENDING if notice.next_attempt_at and now < notice.next_attempt_at and not force:
            due = when(notice.next_attempt_at, now)
            return Plan(notice, Act.LEAVE, f"an attempt may be sending it; left to the retry at {due}")
    code = code_of(notice.error)
    if code == Code.PROVIDER_UNKNOWN and notice.next_attempt_at and now < notice.next_attempt_at and not force:
        due = when(notice.next_attempt_at, now)
        return Plan(notice, Act.LEAVE, f"SES may have it; left to SES's events, then to the retry at {due}")
    if code in NOBODY_TO_TELL and not named:
        return Plan(notice, Act.LEAVE, f"closed: {CODES[code].says}; name the job to send it all the same")
    return Plan(notice, Act.QUEUE, notice.error or "its attempt came to nothing")


@dataclass(slots=True)
class Done:
    """What became of the plans."""

    queued: int = 0
    reopened: int = 0
    moved_on: int = 0  # something else was faster: a claim, a result, another operator
    not_queued: int = 0  # moved on, but the queue did not take the event: due again in 15 minutes
    failed: int = 0  # a call failed; nothing is known to have changed

    @property
    def looked_at(self) -> int:
        """How many plans were carried out, one way or another."""
        return self.queued + self.reopened + self.moved_on + self.not_queued + self.failed


@dataclass(frozen=True, slots=True)
class BringBack:
    """Carries plans out."""

    notices: Notices
    queue: JobSettledQueue
    reason: str | None = None
    progress: Callable[[int], None] = lambda _done: None

    def __call__(self, plans: Sequence[Plan], done: Done) -> None:
        """Carry out the plans, ten at a time, and count in `done` what became of them, also when interrupted.

        Raises:
            DatabaseError: a call failed in a way that it would for the others too: access denied, no such table.
        """
        waiting: list[Retry] = []
        try:
            for each in plans:
                self._one(each, waiting, done)
                if len(waiting) == BATCH:
                    self._send(waiting, done)
                self.progress(done.looked_at + len(waiting))
        finally:
            self._send(waiting, done)
            self.progress(done.looked_at)

    def _one(self, each: Plan, waiting: list[Retry], done: Done) -> None:
        notice = each.notice
        try:
            if each.act is Act.REOPEN:
                if self.notices.reopen(notice, self.reason):
                    done.reopened += 1
                else:
                    done.moved_on += 1
            elif each.act is Act.QUEUE:
                revision = self.notices.move_on(notice)
                if revision is None:
                    done.moved_on += 1
                else:
                    waiting.append(Retry(notice.job_id, notice.outcome, revision))
        except DatabaseError as error:
            if error.lasting:
                raise
            done.failed += 1

    def _send(self, waiting: list[Retry], done: Done) -> None:
        retries = list(waiting)
        waiting.clear()
        if not retries:
            return
        try:
            sent = self.queue.send(retries)
        except QueueError:
            sent = 0
        done.queued += sent
        done.not_queued += len(retries) - sent
