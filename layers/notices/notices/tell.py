"""Tell the requester: the four hops (DESIGN 3.5).

    1 find the kind and the job   2 claim the notice   3 resolve the address, render, send   4 record the outcome

What goes wrong before the claim goes back to the queue, by raising. After it the record is responsible: nothing that
happens to the delivery raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from notices.backoff import Backoff
from notices.codes import Code
from notices.database import CALL_SECONDS, DatabaseError
from notices.event import JobSettled, Unprocessable
from notices.jobs import Job, Requester
from notices.kinds import AnyKind, Catalogue
from notices.lookups import FindJob, FindRequester, Lookups
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
from notices.pace import PATIENCE_SECONDS
from notices.record import (
    NOT_READ,
    OUTCOME_SECONDS,
    Claim,
    Clock,
    NotClaimed,
    Notice,
    Notices,
    NotRead,
    Recorded,
    Result,
    Status,
)
from notices.telemetry import Telemetry, delivered, delivered_twice, fault

# The worst case of one record: every call takes its time-outs to the end (the job, the notice where it is read, the
# claim, the requester, the outcome as often as it is tried; and the mail, once its turn has come). A record is started
# only while this much time is left.
WORST_CASE_SECONDS = 4 * CALL_SECONDS + OUTCOME_SECONDS + CONNECT_SECONDS + READ_SECONDS + PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Skipped:
    """A job that nobody is told of: an ordinary result, without a record. With its kind where that is one we know.

    `why` is also the code that closes a retried notice.
    """

    why: Code
    kind: AnyKind | None = None


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
    jobs: FindJob
    requesters: FindRequester
    notices: Notices
    mail: Mail
    base_urls: BaseUrls
    sends_mail: bool  # production alone
    backoff: Backoff
    telemetry: Telemetry
    now: Clock
    seen: Callable[[str, str], Notice | NotRead | None] = lambda *_: NOT_READ  # a notice that was read with the jobs

    def with_lookups(self, lookups: Lookups) -> Tell:
        """Return the workflow with the look-ups of one batch."""
        return replace(self, jobs=lookups.jobs, requesters=lookups.requesters, seen=lookups.seen)

    def may_notify(self, event: JobSettled) -> bool:
        """Whether the event needs a look-up: not when it names a kind that does not notify."""
        return event.kind is None or self.kinds.get(event.kind) is not None

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
        seen = self.seen(event.job_id, event.outcome)
        claim = self.notices.claim(job, event.outcome, settled_at=event.settled_at, retry=event.retry, seen=seen)
        if isinstance(claim, NotClaimed):
            self.telemetry.count(_LEFT_ALONE[claim], kind.name)
            return Told(claim.value, kind.name)
        result = self.attempt(claim, kind, job)
        return self._record(claim, result)

    # -- hop 1 --------------------------------------------------------------------------------------------------

    def find(self, event: JobSettled) -> tuple[AnyKind, Job] | Skipped:
        """Return the kind and the job, or why nobody is told. Of an event that is no retry, it only reads.

        Raises:
            Unprocessable: `kind_mismatch`.
            DatabaseError: a look-up failed.
        """
        if not self.may_notify(event):
            return Skipped(Code.UNDECLARED)
        job = self.jobs.get(event.job_id)
        if job is None:
            return Skipped(Code.JOB_REMOVED, self.kinds.get(event.kind or ""))
        kind = self.kinds.get(job.kind)
        if job.removed:
            return Skipped(Code.JOB_REMOVED, kind)
        if event.kind not in (None, job.kind):
            self._close_retried(event, Code.KIND_MISMATCH)
            raise Unprocessable("kind_mismatch", "kind")
        if kind is None or not kind.tells(event.outcome):
            return Skipped(Code.UNDECLARED, kind)
        if job.requester_id is None:
            return Skipped(Code.NO_REQUESTER, kind)
        return kind, job

    def _skip(self, event: JobSettled, skipped: Skipped) -> Told:
        self._close_retried(event, skipped.why)
        kind = skipped.kind.name if skipped.kind else None
        self.telemetry.count("NoticeSkipped", kind)
        return Told("skipped", kind, reason=skipped.why.value)

    def _close_retried(self, event: JobSettled, reason: Code) -> None:
        """Close the notice of a retried event that can come to nothing, or the retry would bring it for ever."""
        if event.retry is None:
            return
        notice = self.notices.get(event.job_id, event.outcome)
        if notice is not None and notice.revision == event.retry and not Status(notice.status).handled:
            self.notices.close(notice, reason)

    # -- hop 3 --------------------------------------------------------------------------------------------------

    def attempt(self, claim: Claim, kind: AnyKind, job: Job) -> Result:
        """Deliver, whatever happens: the claim exists, so an error of any sort is a failed attempt."""
        try:
            requester = self.requesters.get(job.requester_id or "")
            if requester is None:
                return self._failed(claim, Code.REQUESTER_MISSING)
            return self._deliver(claim, kind, job, requester)
        except DatabaseError as error:
            return self._failed(claim, Code.INTERNAL_ERROR, f"{Code.INTERNAL_ERROR}: {error}")
        except Exception as error:  # noqa: BLE001 - the promise of DESIGN 2: delivery errors never reach the job
            self.telemetry.error("unforeseen error", job_id=claim.job_id, fault=fault(error))
            return self._failed(claim, Code.INTERNAL_ERROR, f"{Code.INTERNAL_ERROR}: {type(error).__name__}")

    def _deliver(self, claim: Claim, kind: AnyKind, job: Job, requester: Requester) -> Result:
        if requester.audience != "staff" and (not job.tenant_id or requester.tenant_id != job.tenant_id):
            self.telemetry.count("TenantMismatch", kind.name)
            return _failed_for_good(Code.TENANT_MISMATCH)
        try:
            recipient = usable_address(requester.email)
        except AddressError as error:
            return _failed_for_good(error.code)
        try:
            message = render(kind, claim.outcome, job, requester, self.base_urls)
        except MessageError as error:
            self.telemetry.count("MailMisconfigured", kind.name)
            return self._failed(claim, Code.TEMPLATE_ERROR, f"{Code.TEMPLATE_ERROR}: {error}")
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
        code = answer.code or Code.INTERNAL_ERROR
        match answer.verdict:
            case Verdict.ACCEPTED:
                return Result.delivered(answer.reference or "")
            case Verdict.REFUSED:
                return _failed_for_good(code, answer.error)
            case Verdict.MISCONFIGURED:
                self.telemetry.count("MailMisconfigured", claim.kind)
        return self._failed(claim, code, answer.error)

    def _failed(self, claim: Claim, code: Code, error: str | None = None) -> Result:
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
                delivered_twice(self.telemetry, claim.kind, claim.job_id, claim.outcome, result.reference)
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
                delivered(self.telemetry, kind, claim.settled_at, self.now())
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


def _failed_for_good(code: Code, error: str | None = None) -> Result:
    return Result.failed(error or code, None)


def _told(claim: Claim, result: Result, recorded: str | None) -> Told:
    return Told(result.status.value, claim.kind, attempt=claim.attempt, error=result.error, recorded=recorded)
