"""The notice: its states, its claim and its outcome (DESIGN 3.2 to 3.4).

    absent ──claim──▶ pending ──▶ delivered      final: SES accepted it
                       ▲    ├───▶ suppressed     handled; gives way to delivered alone
                       │    └───▶ failed         with a next_attempt_at, or for good
                       └──claim──────┘

A *fact* ("SES accepted it") may be recorded by anyone at any time. An *opinion* ("this attempt failed") is written
only while its attempt is the latest claim and the notice is still pending. So results may come in any order and from
any number of senders. What that cannot rule out is a duplicate: two senders whose claims follow each other may both
send before either records. It never loses a notice: every item that is not handled has a `next_attempt_at`, or failed
for good with a reason.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum

from pynamodb.attributes import (
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.models import Model

from notices.codes import Code, code_of
from notices.database import CALL_SECONDS, ConditionFailed, DatabaseError, Table
from notices.jobs import Job

NOTICE_KEYS = ("job_id", "outcome")
ABANDONED_AFTER = timedelta(minutes=15)  # when the retry may take up a claim that came to nothing
CLAIM_TRIES = 5
WRITE_TRIES = 2  # each with the SDK's own attempts
WRITE_PAUSE_SECONDS = 0.1  # between them
OUTCOME_SECONDS = WRITE_TRIES * (CALL_SECONDS + WRITE_PAUSE_SECONDS)
LOG_LENGTH = 50
ERROR_LENGTH = 256

Clock = Callable[[], datetime]


class Status(StrEnum):
    """What is known of a notice. *Delivered* means accepted by SES; what became of it then is `feedback`."""

    PENDING = "pending"
    DELIVERED = "delivered"
    SUPPRESSED = "suppressed"
    FAILED = "failed"

    @property
    def handled(self) -> bool:
        """Delivered and suppressed notices may not be claimed again."""
        return self in (Status.DELIVERED, Status.SUPPRESSED)


class Attempt(MapAttribute[str, object]):
    """An entry of `attempt_log`: what one claim came to. `result` is a status, or `abandoned`."""

    attempt = NumberAttribute()
    claim_id = UnicodeAttribute()
    recorded_at = UTCDateTimeAttribute()
    result = UnicodeAttribute()
    reference = UnicodeAttribute(null=True)
    error = UnicodeAttribute(null=True)


ABANDONED = "abandoned"


class Feedback(MapAttribute[str, object]):
    """The gravest news that SES gave of a message after it accepted it (DESIGN 3.6)."""

    type = UnicodeAttribute()
    at = UTCDateTimeAttribute()
    detail = UnicodeAttribute(null=True)
    message_id = UnicodeAttribute(null=True)


class Notice(Model):
    """The item: one for each job and outcome."""

    job_id = UnicodeAttribute(hash_key=True)
    outcome = UnicodeAttribute(range_key=True)
    status = UnicodeAttribute()
    kind = UnicodeAttribute()
    tenant_id = UnicodeAttribute(null=True)
    requester_id = UnicodeAttribute(null=True)
    attempts = NumberAttribute()
    claim_id = UnicodeAttribute()
    claimed_at = UTCDateTimeAttribute()
    created_at = UTCDateTimeAttribute()
    settled_at = UTCDateTimeAttribute(null=True)
    handled_at = UTCDateTimeAttribute(null=True)
    provider_reference = UnicodeAttribute(null=True)
    error = UnicodeAttribute(null=True)
    next_attempt_at = UTCDateTimeAttribute(null=True)
    attempt_log = ListAttribute(of=Attempt)
    feedback = Feedback(null=True)  # type: ignore[no-untyped-call]
    revision = NumberAttribute()
    expires_at = NumberAttribute()


@dataclass(frozen=True, slots=True)
class Claim:
    """What its sender holds: the right to send, and to give an opinion while no later claim exists."""

    job_id: str
    outcome: str
    kind: str
    claim_id: str
    attempt: int
    settled_at: datetime | None = None


class NotClaimed(StrEnum):
    """Why a notice was left alone; in each case the event is done with."""

    HANDLED = "already_handled"
    IN_PROGRESS = "in_progress"
    OVERTAKEN = "retry_overtaken"


@dataclass(frozen=True, slots=True)
class Result:
    """What an attempt came to, to be recorded by `Notices.record`."""

    status: Status
    reference: str | None = None
    error: str | None = None
    next_attempt_at: datetime | None = None

    @classmethod
    def delivered(cls, reference: str) -> Result:
        """SES accepted the message under this id: a fact."""
        return cls(Status.DELIVERED, reference=reference)

    @classmethod
    def suppressed(cls) -> Result:
        """Everything but the send was done, outside production."""
        return cls(Status.SUPPRESSED)

    @classmethod
    def failed(cls, error: str, next_attempt_at: datetime | None) -> Result:
        """The attempt failed: an opinion. Without `next_attempt_at` it failed for good."""
        return cls(Status.FAILED, error=one_line(error), next_attempt_at=next_attempt_at)


class Recorded(StrEnum):
    """What became of a result."""

    WRITTEN = "written"
    KNOWN = "known"  # a result of this attempt is there already: feedback was faster
    LOST = "lost"  # another result stands; the log has ours
    SECOND_DELIVERY = "second_delivery"  # likewise, and ours was a mail too
    ITEM_GONE = "item_gone"


class NotRead(Enum):
    """Said instead of a notice (None: there is none) where nobody has looked."""

    NOT_READ = "not_read"


NOT_READ = NotRead.NOT_READ


class ClaimContended(Exception):
    """Others claimed the notice at every one of our tries; the event goes back to the queue."""


class Notices:
    """The notices table: the only place that writes it.

    Every method raises `DatabaseError` when a call fails for any other reason than its condition.
    """

    def __init__(
        self,
        table: Table,
        *,
        now: Clock,
        retention: timedelta,
        claim_lease: timedelta = timedelta(0),
        new_claim_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table = table
        self._now = now
        self._retention = retention
        self._claim_lease = claim_lease
        self._new_claim_id = new_claim_id
        self._sleep = sleep

    def get(self, job_id: str, outcome: str) -> Notice | None:
        """Return the notice, strongly consistent, or None."""
        return self._table.get(Notice, job_id, outcome)

    # -- claim: DESIGN 3.3 --------------------------------------------------------------------------------------

    def claim(
        self,
        job: Job,
        outcome: str,
        *,
        settled_at: datetime | None = None,
        retry: int | None = None,
        seen: Notice | NotRead | None = NOT_READ,
    ) -> Claim | NotClaimed:
        """Claim the job-and-outcome notice: one conditional put of the whole item.

        A first claim needs no read before it: when the put is refused, the stored item says why. The retry's own
        event (`retry` is the revision it names) claims at that revision or not at all, so it has to read first. `seen`
        is the notice as somebody has read it; it may be out of date, since the put's condition decides.

        Raises:
            ClaimContended: after five tries.
            DatabaseError: nothing is known to be claimed, although a pending claim may exist.
        """
        claim_id = self._new_claim_id()
        stored = None if seen is NOT_READ else seen
        if seen is NOT_READ and retry is not None:
            stored = self.get(job.job_id, outcome)
        for _ in range(CLAIM_TRIES):
            refusal = self._refusal(stored, retry)
            if refusal is not None:
                return refusal
            notice = self._claimed(stored, job, outcome, settled_at, claim_id)
            try:
                self._table.put(notice, _claimable(stored))
            except ConditionFailed as refused:
                stored = self._stored(refused, job.job_id, outcome)
                if stored is None or stored.claim_id != claim_id or stored.status != Status.PENDING:
                    continue
                notice = stored  # our own put had landed: the SDK lost the reply and tried again
            return Claim(job.job_id, outcome, job.kind, claim_id, int(notice.attempts), notice.settled_at)
        raise ClaimContended(f"{CLAIM_TRIES} tries")

    def _refusal(self, stored: Notice | None, retry: int | None) -> NotClaimed | None:
        if stored is None:
            return None if retry is None else NotClaimed.OVERTAKEN
        if Status(stored.status).handled:
            return NotClaimed.HANDLED
        if retry is not None and stored.revision != retry:
            return NotClaimed.OVERTAKEN
        if self._leased(stored, retry):
            return NotClaimed.IN_PROGRESS
        return None

    def _leased(self, stored: Notice, retry: int | None) -> bool:
        if not self._claim_lease:
            return False
        now = self._now()
        if stored.status == Status.PENDING:
            return now - stored.claimed_at < self._claim_lease
        return (
            retry is None
            and code_of(stored.error) is Code.PROVIDER_UNKNOWN
            and stored.next_attempt_at is not None
            and now < stored.next_attempt_at
        )

    def _claimed(
        self, stored: Notice | None, job: Job, outcome: str, settled_at: datetime | None, claim_id: str
    ) -> Notice:
        """Return the whole item to put. Of the stored one, a claim keeps its history and its feedback alone."""
        now = self._now()
        log: list[Attempt] = list(stored.attempt_log) if stored else []
        if stored is not None and stored.status == Status.PENDING:
            log.append(_entry(stored.attempts, stored.claim_id, now, ABANDONED))
        return Notice(
            job_id=job.job_id,
            outcome=outcome,
            status=Status.PENDING.value,
            kind=job.kind,
            tenant_id=job.tenant_id,
            requester_id=job.requester_id,
            attempts=(stored.attempts if stored else 0) + 1,
            claim_id=claim_id,
            claimed_at=now,
            created_at=stored.created_at if stored else now,
            settled_at=(stored.settled_at if stored else None) or settled_at,
            next_attempt_at=now + ABANDONED_AFTER,
            attempt_log=log[-LOG_LENGTH:],
            feedback=stored.feedback if stored else None,
            revision=(stored.revision if stored else 0) + 1,
            expires_at=self._expiry(now),
        )

    # -- outcome: DESIGN 3.4 ------------------------------------------------------------------------------------

    def record(self, claim: Claim, result: Result) -> Recorded:
        """Write a result if it still counts, else add it to the log alone. A fact always counts once.

        Tried again when the call fails, a few times.

        Raises:
            DatabaseError: when every try failed: the notice is still pending, and feedback or the retry settles it.
        """
        # made once, so that a try whose reply was lost is recognised by the next
        entry = _entry(claim.attempt, claim.claim_id, self._now(), result.status, result.reference, result.error)
        for tried in range(1, WRITE_TRIES + 1):
            try:
                return self._record(claim, result, entry)
            except DatabaseError as error:
                if error.lasting or tried == WRITE_TRIES:
                    raise
                self._sleep(WRITE_PAUSE_SECONDS)
        raise AssertionError("unreachable")

    def _record(self, claim: Claim, result: Result, entry: Attempt) -> Recorded:
        key = (claim.job_id, claim.outcome)
        try:
            self._table.update(key, self._outcome(result, entry), _counts(claim, result))
        except ConditionFailed as refused:
            stored = self._stored(refused, *key)
        else:
            return Recorded.WRITTEN
        while stored is not None:
            if _logged(stored, entry):
                return Recorded.WRITTEN  # it had landed: the SDK lost the reply and tried again
            if _known(stored, claim, result):
                self._add_reference(stored, result)
                return Recorded.KNOWN
            if result.status == Status.DELIVERED and stored.status != Status.DELIVERED:
                return self._record(claim, result, entry)  # the item had expired, and was claimed anew meanwhile
            # on condition of the revision, so that an SDK retry whose first try landed adds nothing twice
            try:
                self._table.update(key, _log(entry), _at(stored))
            except ConditionFailed as refused:
                stored = self._stored(refused, *key)
            else:
                second = result.status == Status.DELIVERED and stored.status == Status.DELIVERED
                return Recorded.SECOND_DELIVERY if second else Recorded.LOST
        return Recorded.ITEM_GONE

    def _add_reference(self, stored: Notice, result: Result) -> None:
        """Complete a delivery that feedback has recorded without SES's message id."""
        if result.reference is not None and stored.provider_reference is None:
            self._at_revision(stored, [Notice.provider_reference.set(result.reference), Notice.revision.add(1)])

    def _outcome(self, result: Result, entry: Attempt) -> list[Action]:
        actions = [
            Notice.status.set(result.status.value),
            Notice.handled_at.set(entry.recorded_at),
            Notice.expires_at.set(self._expiry(entry.recorded_at)),
            *_log(entry),
        ]
        if result.reference is not None:
            actions.append(Notice.provider_reference.set(result.reference))
        actions.append(Notice.error.set(result.error) if result.error else Notice.error.remove())
        actions.append(
            Notice.next_attempt_at.set(result.next_attempt_at)
            if result.next_attempt_at
            else Notice.next_attempt_at.remove()
        )
        return actions

    # -- the other writers: DESIGN 3.4 and 3.6 ------------------------------------------------------------------

    def close(self, notice: Notice, error: str) -> bool:
        """Fail a notice for good with this reason, at the revision read; return whether it was still at it."""
        result = Result.failed(error, None)
        entry = _entry(notice.attempts, notice.claim_id, self._now(), result.status, error=result.error)
        return self._at_revision(notice, self._outcome(result, entry), lambda stored: _logged(stored, entry))

    def reopen(self, notice: Notice, reason: str | None = None) -> bool:
        """Make a suppressed notice one that failed and is due now, at the revision read; return whether it was.

        An operator's decision (DESIGN 3.4), for what was suppressed by mistake. `reason` is theirs and is stored in
        the error, so it must name nobody.

        Raises:
            ValueError: the notice is not suppressed. A delivered one is never re-opened, and others need not be.
        """
        if notice.status != Status.SUPPRESSED:
            raise ValueError(f"a {notice.status} notice is not re-opened")
        now = self._now()
        result = Result.failed(f"{Code.REOPENED}: {reason}" if reason else Code.REOPENED, now)
        entry = _entry(notice.attempts, notice.claim_id, now, result.status, error=result.error)
        return self._at_revision(notice, self._outcome(result, entry), lambda stored: _logged(stored, entry))

    def move_on(self, notice: Notice) -> int | None:
        """Put off a due notice, at the revision read; return the new revision, or None if another was faster."""
        later = Notice.next_attempt_at.set(self._now() + ABANDONED_AFTER)
        moved = self._at_revision(notice, [later, Notice.revision.add(1)])
        return int(notice.revision) + 1 if moved else None

    def add_feedback(
        self,
        notice: Notice,
        *,
        feedback: Feedback | None,
        accepted: Attempt | None,
    ) -> bool:
        """Write SES's news, at the revision read; return whether it was still at it.

        `accepted` is the entry of a delivery that the news proves: it settles the notice as delivered, or joins the
        log alone where a delivery is recorded already.
        """
        if accepted is None:
            actions: list[Action] = [Notice.revision.add(1)]
        elif notice.status == Status.DELIVERED:
            actions = _log(accepted)
        else:
            actions = self._outcome(Result(Status.DELIVERED, reference=accepted.reference), accepted)
        if feedback is not None:
            actions.append(Notice.feedback.set(feedback))

        def landed(stored: Notice) -> bool:
            if accepted is not None:
                return _logged(stored, accepted)
            return bool(stored.feedback == feedback and stored.revision == notice.revision + 1)

        return self._at_revision(notice, actions, landed)

    def _at_revision(
        self,
        notice: Notice,
        actions: Sequence[Action],
        landed: Callable[[Notice], bool] = lambda _: False,  # for a move: taken for lost, it only delays the notice
    ) -> bool:
        """Update at the revision read. `landed` knows our own write, where the SDK lost its reply and tried again."""
        try:
            self._table.update((notice.job_id, notice.outcome), actions, _at(notice))
        except ConditionFailed as refused:
            stored = self._stored(refused, notice.job_id, notice.outcome)
            return stored is not None and landed(stored)
        return True

    def _stored(self, refused: ConditionFailed, job_id: str, outcome: str) -> Notice | None:
        """Return the item that refused a write; read it where the store did not send it along."""
        return Notice.from_raw_data(refused.item) if refused.item else self.get(job_id, outcome)

    def _expiry(self, now: datetime) -> int:
        return int((now + self._retention).timestamp())


def utc_now() -> datetime:
    """Return the time, aware, UTC."""
    return datetime.now(UTC)


def one_line(error: str) -> str:
    """Return an error as it is stored: one line, at most 256 characters."""
    return " ".join(error.split())[:ERROR_LENGTH]


def _claimable(stored: Notice | None) -> Condition:
    """Absent, or pending or failed at the revision that was read, so that nothing written in between is lost."""
    absent = Notice.job_id.does_not_exist()
    if stored is None:
        return absent
    unhandled = Notice.status.is_in(Status.PENDING.value, Status.FAILED.value)
    claimable: Condition = absent | (unhandled & (Notice.revision == stored.revision))
    return claimable


def _counts(claim: Claim, result: Result) -> Condition:
    """The table of DESIGN 3.4: when a result is written, and not only logged."""
    counts: Condition
    match result.status:
        case Status.DELIVERED:
            counts = Notice.job_id.exists() & (Notice.status != Status.DELIVERED.value)
        case Status.SUPPRESSED:
            counts = Notice.status.is_in(Status.PENDING.value, Status.FAILED.value)
        case _:
            counts = (Notice.status == Status.PENDING.value) & (Notice.claim_id == claim.claim_id)
    return counts


def _known(stored: Notice, claim: Claim, result: Result) -> bool:
    """Whether the log has a result of this attempt, by its claim or by its reference.

    A delivery counts as known by a delivery alone: that the retry closed the notice in between says nothing of it.
    """
    results = [entry for entry in stored.attempt_log if entry.result != ABANDONED]
    if result.status == Status.DELIVERED:
        results = [entry for entry in results if entry.result == Status.DELIVERED]
    return any(
        entry.claim_id == claim.claim_id or (entry.reference is not None and entry.reference == result.reference)
        for entry in results
    )


def _logged(stored: Notice, entry: Attempt) -> bool:
    """Whether the log has this very entry."""
    return any(
        (other.claim_id, other.result, other.recorded_at) == (entry.claim_id, entry.result, entry.recorded_at)
        for other in stored.attempt_log
    )


def _at(notice: Notice) -> Condition:
    unchanged: Condition = Notice.job_id.exists() & (Notice.revision == notice.revision)
    return unchanged


def _log(entry: Attempt) -> list[Action]:
    return [Notice.attempt_log.set(Notice.attempt_log.append([entry])), Notice.revision.add(1)]


def _entry(
    attempt: float,
    claim_id: str,
    recorded_at: datetime,
    result: str,
    reference: str | None = None,
    error: str | None = None,
) -> Attempt:
    return Attempt(  # type: ignore[no-untyped-call]
        attempt=attempt,
        claim_id=claim_id,
        recorded_at=recorded_at,
        result=str(result),
        reference=reference,
        error=error,
    )
