"""Tell the requester: the four hops (DESIGN 3.5).

    1 find the kind and the job   2 claim the notice   3 resolve the address, render, send   4 record the outcome

What goes wrong before the claim goes back to the queue, by raising. After it the record is responsible: nothing that
happens to the delivery raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from notices.backoff import Backoff
from notices.database import CALL_SECONDS, DatabaseError
from notices.event import JobSettled, Unprocessable
from notices.jobs import Job, Jobs, Requester, Requesters
from notices.kinds import Catalogue, Kind
from notices.mail import (
    CONNECT_SECONDS,
    READ_SECONDS,
    AddressError,
    Answer,
    Letter,
    Mail,
    Verdict,
    notice_tags,
    usable_address,
)
from notices.message import BaseUrls, MessageError, render
from notices.record import OUTCOME_SECONDS, Claim, Clock, NotClaimed, Notices, Recorded, Result, Status
from notices.telemetry import Telemetry, fault

# The worst case of one record: every call takes its time-outs to the end (the job, the notice where it is read, the
# claim, the requester, the outcome as often as it is tried; and the mail). A record is started only while this much
# time is left.
WORST_CASE_SECONDS = 4 * CALL_SECONDS + OUTCOME_SECONDS + CONNECT_SECONDS + READ_SECONDS


class Skip(StrEnum):
    """Why nobody is told: ordinary results, without a record. The values are the codes that close a retried notice."""

    UNDECLARED = "undeclared"
    JOB_REMOVED = "job_removed"
    NO_REQUESTER = "no_requester"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A job that nobody is told of, with its kind where that is one we know."""

    why: Skip
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one event, for its log line."""

    result: str  # a status, `skipped`, or why the notice was left alone
    kind: str | None = None
    attempt: int | None = None
    reason: str | None = None  # of a skip
    error: str | None = None
    recorded: str | None = None  # what became of the result, where it was not simply written


@dataclass(frozen=True, slots=True)
class Tell:
    """The workflow, with everything that it talks to."""

    kinds: Catalogue
    jobs: Jobs
    requesters: Requesters
    notices: Notices
    mail: Mail
    base_urls: BaseUrls
    sends_mail: bool  # production alone
    backoff: Backoff
    telemetry: Telemetry
    now: Clock

    def __call__(self, event: JobSettled) -> Told:
        """Tell the requester of a settled job and return what became of it.

        Raises:
            Unprocessable: `kind_mismatch`, the event contradicts the job.
            DatabaseError, ClaimContended: nothing is known to be claimed; the event belongs back on the queue.
        """
        found = self.find(event)
        if isinstance(found, Skipped):
            return self._skip(event, found)
        kind, job = found
        claim = self.notices.claim(job, event.outcome, settled_at=event.settled_at, retry=event.retry)
        if isinstance(claim, NotClaimed):
            self.telemetry.count(_LEFT_ALONE[claim], kind.name)
            return Told(claim.value, kind.name)
        result = self.attempt(claim, kind, job)
        return self._record(claim, result)

    # -- hop 1 --------------------------------------------------------------------------------------------------

    def find(self, event: JobSettled) -> tuple[Kind, Job] | Skipped:
        """Return the kind and the job, or why nobody is told. Of an event that is no retry, it only reads.

        Raises:
            Unprocessable: `kind_mismatch`.
            DatabaseError: a look-up failed.
        """
        if event.kind is not None and self.kinds.get(event.kind) is None:
            return Skipped(Skip.UNDECLARED)  # without a look-up
        job = self.jobs.get(event.job_id)
        if job is None:
            return Skipped(Skip.JOB_REMOVED, self.kinds.get(event.kind or ""))
        kind = self.kinds.get(job.kind)
        if job.removed:
            return Skipped(Skip.JOB_REMOVED, kind)
        if event.kind not in (None, job.kind):
            self._close_retried(event, "kind_mismatch")
            raise Unprocessable("kind_mismatch", "kind")
        if kind is None or not kind.tells(event.outcome):
            return Skipped(Skip.UNDECLARED, kind)
        if job.requester_id is None:
            return Skipped(Skip.NO_REQUESTER, kind)
        return kind, job

    def _skip(self, event: JobSettled, skipped: Skipped) -> Told:
        self._close_retried(event, skipped.why.value)
        kind = skipped.kind.name if skipped.kind else None
        self.telemetry.count("NoticeSkipped", kind)
        return Told("skipped", kind, reason=skipped.why.value)

    def _close_retried(self, event: JobSettled, reason: str) -> None:
        """Close the notice of a retried event that can come to nothing, or the retry would bring it for ever."""
        if event.retry is None:
            return
        notice = self.notices.get(event.job_id, event.outcome)
        if notice is not None and notice.revision == event.retry and not Status(notice.status).handled:
            self.notices.close(notice, reason)

    # -- hop 3 --------------------------------------------------------------------------------------------------

    def attempt(self, claim: Claim, kind: Kind, job: Job) -> Result:
        """Deliver, whatever happens: the claim exists, so an error of any sort is a failed attempt."""
        try:
            requester = self.requesters.get(job.requester_id or "")
            if requester is None:
                return self._failed(claim, "requester_missing")
            return self._deliver(claim, kind, job, requester)
        except DatabaseError as error:
            return self._failed(claim, "internal_error", f"internal_error: {error}")
        except Exception as error:  # noqa: BLE001 - the promise of DESIGN 2: delivery errors never reach the job
            self.telemetry.error("unforeseen error", job_id=claim.job_id, fault=fault(error))
            return self._failed(claim, "internal_error", f"internal_error: {type(error).__name__}")

    def _deliver(self, claim: Claim, kind: Kind, job: Job, requester: Requester) -> Result:
        if requester.audience != "staff" and (not job.tenant_id or requester.tenant_id != job.tenant_id):
            self.telemetry.count("TenantMismatch", kind.name)
            return _failed_for_good("tenant_mismatch")
        try:
            recipient = usable_address(requester.email)
        except AddressError as error:
            return _failed_for_good(error.code)
        try:
            message = render(kind, claim.outcome, job, requester, self.base_urls)
        except MessageError as error:
            self.telemetry.count("MailMisconfigured", kind.name)
            return self._failed(claim, "template_error", f"template_error: {error}")
        if not self.sends_mail:
            return Result.suppressed()
        letter = Letter(
            recipient=recipient,
            subject=message.subject,
            text=message.text,
            html=message.html,
            tags=notice_tags(claim.job_id, claim.outcome, claim.claim_id),
        )
        return self._answered(claim, self.mail.send(letter))

    def _answered(self, claim: Claim, answer: Answer) -> Result:
        code = answer.code or "internal_error"
        match answer.verdict:
            case Verdict.ACCEPTED:
                return Result.delivered(answer.reference or "")
            case Verdict.REFUSED:
                return _failed_for_good(code, answer.error)
            case Verdict.MISCONFIGURED:
                self.telemetry.count("MailMisconfigured", claim.kind)
        return self._failed(claim, code, answer.error)

    def _failed(self, claim: Claim, code: str, error: str | None = None) -> Result:
        return Result.failed(error or code, self.backoff.next_attempt_at(self.now(), claim.attempt, code))

    # -- hop 4 --------------------------------------------------------------------------------------------------

    def _record(self, claim: Claim, result: Result) -> Told:
        try:
            recorded = self.notices.record(claim, result)
        except DatabaseError as error:
            self._not_recorded(claim, result, str(error))
            return _told(claim, result, "not_recorded")
        except Exception as error:  # noqa: BLE001 - the mail may be out: the event must not come back for it
            self._not_recorded(claim, result, fault(error))
            return _told(claim, result, "not_recorded")
        match recorded:
            case Recorded.WRITTEN:
                self._count(claim, result)
            case Recorded.SECOND_DELIVERY:
                self.telemetry.count("DuplicateDelivery", claim.kind)
                self.telemetry.warning(
                    "delivered twice",
                    job_id=claim.job_id,
                    outcome=claim.outcome,
                    provider_reference=result.reference,
                )
            case Recorded.ITEM_GONE:
                self._not_recorded(claim, result, "the notice is gone")
        return _told(claim, result, None if recorded is Recorded.WRITTEN else recorded.value)

    def _not_recorded(self, claim: Claim, result: Result, why: str) -> None:
        self.telemetry.count("OutcomeNotRecorded", claim.kind)
        self.telemetry.error(
            "outcome not recorded",
            job_id=claim.job_id,
            outcome=claim.outcome,
            result=result.status.value,
            attempt=claim.attempt,
            provider_reference=result.reference,
            error=why,
        )

    def _count(self, claim: Claim, result: Result) -> None:
        kind = claim.kind
        match result.status:
            case Status.DELIVERED:
                self.telemetry.count("NoticeDelivered", kind)
                if claim.settled_at is not None:
                    seconds = (self.now() - claim.settled_at).total_seconds()
                    self.telemetry.count("SecondsToTell", kind, max(0.0, seconds))
            case Status.SUPPRESSED:
                self.telemetry.count("NoticeSuppressed", kind)
            case Status.FAILED:
                self.telemetry.count("NoticeFailed", kind)
                if result.next_attempt_at is None:
                    self.telemetry.count("NoticeFailedForGood", kind)


_LEFT_ALONE = {
    NotClaimed.HANDLED: "NoticeAlreadyHandled",
    NotClaimed.IN_PROGRESS: "NoticeInProgress",
    NotClaimed.OVERTAKEN: "RetryOvertaken",
}


def _failed_for_good(code: str, error: str | None = None) -> Result:
    return Result.failed(error or code, None)


def _told(claim: Claim, result: Result, recorded: str | None) -> Told:
    return Told(result.status.value, claim.kind, attempt=claim.attempt, error=result.error, recorded=recorded)
