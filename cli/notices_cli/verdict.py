"""What would become of a parked message if it were put back: decided by reading it again, and the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from notices.event import JobSettled, Unprocessable
from notices.record import Notice, Status
from notices_cli.dead_letters import Parked
from notices_cli.rehearsal import Rehearsal
from notices_cli.spoilt import SpoiltNotice


class Fate(StrEnum):
    """What would become of it."""

    READY = "ready"  # it would be handled
    BROKEN = "broken"  # it would be parked again
    SKIPPED = "skipped"  # nobody would be told
    HANDLED = "handled"  # the notice is delivered or suppressed already
    VOID = "void"  # a retry whose notice has moved on


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fate and why, in words."""

    fate: Fate
    why: str


REASONS = {
    "not_json": "its body is not JSON",
    "not_an_object": "its body is not a JSON object",
    "unknown_type": "it is not a job.settled event",
    "unsupported_version": "its version is not supported",
    "invalid_field": "a field is missing or malformed",
    "kind_mismatch": "it contradicts the job's kind",
}


def why_parked(message: Parked) -> str:
    """Return why a message is on the dead-letter queue, in words."""
    if message.reason is None:
        return "it was received ten times without success (an outage, say)"
    return REASONS.get(message.reason, message.reason)


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides over messages; for one that can be read it looks at its job, requester and notice."""

    rehearse: Callable[[JobSettled], Rehearsal]
    notice: Callable[[str, str], Notice | None]

    def __call__(self, message: Parked) -> Verdict:
        """Return what would become of a message. Raises DatabaseError when a look-up fails."""
        event = message.event
        if event is None:
            field = (message.fault or "").partition(": ")[2]
            code = (message.fault or "").partition(":")[0]
            what = REASONS.get(code, code) + (f" ({field})" if field else "")
            return Verdict(Fate.BROKEN, f"it would be parked again: {what}")
        try:
            rehearsal = self.rehearse(event)
        except Unprocessable as refused:
            return Verdict(Fate.BROKEN, f"it would be parked again: {REASONS[refused.reason]}")
        if rehearsal.skip is not None:
            return Verdict(Fate.SKIPPED, f"nobody would be told ({rehearsal.skip.value})")
        try:
            notice = self.notice(event.job_id, event.outcome)
        except SpoiltNotice as spoilt:
            return Verdict(Fate.BROKEN, f"it would come back: {spoilt}")
        if notice is not None and Status(notice.status).handled:
            return Verdict(Fate.HANDLED, f"the notice is {notice.status} already")
        if event.retry is not None and (notice is None or notice.revision != event.retry):
            return Verdict(Fate.VOID, "a retry whose notice has moved on")
        if rehearsal.code is not None:
            return Verdict(Fate.READY, f"it would be handled, and its notice fail with {rehearsal.code}")
        return Verdict(Fate.READY, "it would be handled")
