"""Deliberate faults in claim, outcome, sender and retry, one at a time, and the invariant that has to catch each."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from explorer.invariants import Invariant
from explorer.scenarios import Scenario, by_title
from explorer.shared import LETTER
from notices import record, tell
from notices.backoff import Backoff
from notices.codes import Code
from notices.database import ConditionFailed, DatabaseError
from notices.mail import Verdict, notice_tags
from notices.record import Claim, NotClaimed, Notice, Notices, Result, Status
from notices.retry import RetryDueNotices
from notices.tell import Tell, Told

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Mutation:
    """A fault, the search that meets it, and the invariant that it breaks."""

    title: str
    apply: Callable[[Patch], None]
    caught_by: Invariant
    scenario: Scenario


MUTATIONS: list[Mutation] = []


def mutation(title: str, caught_by: Invariant, scenario: str = "two senders") -> Callable[..., None]:
    """Keep a mutation."""

    def keep(apply: Callable[[Patch], None]) -> None:
        MUTATIONS.append(Mutation(title, apply, caught_by, by_title(scenario)))

    return keep


# -- the claim


@mutation("a claim is put whatever is stored", Invariant.DELIVERED_IS_FINAL)
def _(patch: Patch) -> None:
    patch.setattr(record, "_claimable", lambda stored: None)


@mutation("a claim does not look at the revision that it read", Invariant.ATTEMPTS_COUNTS_CLAIMS)
def _(patch: Patch) -> None:
    unhandled = Notice.status.is_in("pending", "failed")
    patch.setattr(record, "_claimable", lambda stored: Notice.job_id.does_not_exist() | unhandled)


@mutation("a handled notice is claimed again", Invariant.DELIVERED_IS_FINAL)
def _(patch: Patch) -> None:
    patch.setattr(Notices, "_refusal", lambda self, stored, retry: None)
    patch.setattr(
        record,
        "_claimable",
        lambda stored: Notice.job_id.does_not_exist() | (Notice.revision == (stored.revision if stored else 0)),
    )


@mutation("a claim says nothing of when it may be taken up", Invariant.DUE_UNLESS_HANDLED, "one sender")
def _(patch: Patch) -> None:
    claimed = Notices._claimed

    def without(self: Notices, *args: Any) -> Notice:
        notice = claimed(self, *args)
        notice.next_attempt_at = None
        return notice

    patch.setattr(Notices, "_claimed", without)


@mutation("a claim whose put was refused counts as ours", Invariant.DUPLICATES_AS_DESIGNED)
def _(patch: Patch) -> None:
    def claim(self: Notices, job: Any, outcome: str, **event: Any) -> Claim:
        claim_id = self._new_claim_id()
        with suppress(ConditionFailed):
            self._table.put(self._claimed(None, job, outcome, None, claim_id), record._claimable(None))
        return Claim(job.job_id, outcome, job.kind, claim_id, 1)

    patch.setattr(Notices, "claim", claim)


@mutation("a claim forgets the log", Invariant.KNOWN_IS_KEPT)
def _(patch: Patch) -> None:
    patch.setattr(record, "LOG_LENGTH", 1)


@mutation("a claim forgets when the first one was", Invariant.KNOWN_IS_KEPT, "one sender")
def _(patch: Patch) -> None:
    claimed = Notices._claimed

    def anew(self: Notices, *args: Any) -> Notice:
        notice = claimed(self, *args)
        notice.created_at = notice.claimed_at
        return notice

    patch.setattr(Notices, "_claimed", anew)


@mutation("a claim is due at once", Invariant.DUE_UNLESS_HANDLED, "one sender")
def _(patch: Patch) -> None:
    patch.setattr(record, "ABANDONED_AFTER", timedelta(0))


@mutation(
    "the retry's event claims at any revision",
    Invariant.DUPLICATES_AS_DESIGNED,
    "a sender and the retry of a failed notice",
)
def _(patch: Patch) -> None:
    refusal = Notices._refusal

    def _unless_overtaken(self: Notices, stored: Notice | None, retry: int | None) -> NotClaimed | None:
        refused = refusal(self, stored, retry)
        return None if stored is not None and refused is NotClaimed.OVERTAKEN else refused

    patch.setattr(Notices, "_refusal", _unless_overtaken)


@mutation("a lease is not looked at", Invariant.DUPLICATES_AS_DESIGNED, "two senders with a lease")
def _(patch: Patch) -> None:
    patch.setattr(Notices, "_leased", lambda self, stored, retry: False)


@mutation("an expiry is reckoned by another clock than the one given", Invariant.SAME_SCHEDULE_SAME_RUN, "one sender")
def _(patch: Patch) -> None:
    patch.setattr(Notices, "_expiry", lambda self, now: time.time_ns())


# -- the outcome


def counting(patch: Patch, status: Status, condition: Any) -> None:
    """Let results of one status count under another condition."""
    counts = record._counts
    patch.setattr(
        record, "_counts", lambda claim, result: condition if result.status == status else counts(claim, result)
    )


@mutation("a failure is written whoever has the claim", Invariant.NO_RESULT_REPLACES_A_LATER_ONE)
def _(patch: Patch) -> None:
    counting(patch, Status.FAILED, Notice.status == Status.PENDING.value)


@mutation("a failure is written over a delivery", Invariant.DELIVERED_IS_FINAL)
def _(patch: Patch) -> None:
    counting(patch, Status.FAILED, Notice.job_id.exists())


@mutation("a delivery is written over another", Invariant.FIRST_REFERENCE_IS_KEPT)
def _(patch: Patch) -> None:
    counts = record._counts

    def or_another(claim: Claim, result: Result) -> Any:
        another = Notice.provider_reference != result.reference
        return another if result.status == Status.DELIVERED else counts(claim, result)

    patch.setattr(record, "_counts", or_another)


@mutation("a delivery counts by the latest claimer alone", Invariant.MAILS_ARE_LOGGED)
def _(patch: Patch) -> None:
    counts = record._counts
    patch.setattr(
        record,
        "_counts",
        lambda claim, result: counts(claim, result) & (Notice.claim_id == claim.claim_id),
    )
    patch.setattr(Notices, "_record", _once)


def _once(self: Notices, claim: Claim, result: Result, entry: Any) -> record.Recorded:
    try:
        self._table.update((claim.job_id, claim.outcome), self._outcome(result, entry), record._counts(claim, result))
    except ConditionFailed:
        return record.Recorded.LOST
    return record.Recorded.WRITTEN


@mutation("a delivered notice stays due", Invariant.DUE_UNLESS_HANDLED, "one sender")
def _(patch: Patch) -> None:
    outcome = Notices._outcome

    def kept(self: Notices, result: Result, entry: Any) -> list[Any]:
        actions = outcome(self, result, entry)
        return actions if result.status is not Status.DELIVERED else actions[:-1]

    patch.setattr(Notices, "_outcome", kept)


@mutation("an outcome counts an attempt", Invariant.ATTEMPTS_COUNTS_CLAIMS, "one sender")
def _(patch: Patch) -> None:
    outcome = Notices._outcome
    patch.setattr(Notices, "_outcome", lambda self, *args: [*outcome(self, *args), Notice.attempts.add(1)])


@mutation("a second delivery is not logged", Invariant.MAILS_ARE_LOGGED)
def _(patch: Patch) -> None:
    patch.setattr(Notices, "_record", _once)


@mutation("a result that lost is logged whatever was logged before", Invariant.MAILS_ARE_LOGGED)
def _(patch: Patch) -> None:
    at = record._at
    patch.setattr(record, "_at", lambda notice: Notice.job_id.exists() if notice.status == "delivered" else at(notice))


# -- the sender


@mutation("a throttled send counts as suppressed", Invariant.NOT_LOST, "one sender")
def _(patch: Patch) -> None:
    _taking(patch, Verdict.UNAVAILABLE, lambda _: Result.suppressed())


@mutation("a throttled send counts as refused for good", Invariant.NOT_LOST, "one sender")
def _(patch: Patch) -> None:
    _taking(patch, Verdict.UNAVAILABLE, lambda _: tell._failed_for_good(Code.PROVIDER_REFUSED))


def _taking(patch: Patch, verdict: Verdict, result: Callable[[Any], Result]) -> None:
    """Let the sender take an answer of this verdict for another."""
    answered = Tell._answered

    def mistaken(self: Tell, claim: Claim, answer: Any) -> Result:
        return result(answer) if answer.verdict is verdict else answered(self, claim, answer)

    patch.setattr(Tell, "_answered", mistaken)


@mutation(
    "a process outside production sends", Invariant.NO_MAIL_OUTSIDE_PRODUCTION, "two senders, one outside production"
)
def _(patch: Patch) -> None:
    deliver = Tell._deliver
    patch.setattr(Tell, "_deliver", lambda self, *args: deliver(replace(self, sends_mail=True), *args))


@mutation("an event goes back although its mail was accepted", Invariant.DUPLICATES_AS_DESIGNED, "one sender")
def _(patch: Patch) -> None:
    patch.setattr(Tell, "_record", lambda self, claim, result: Told(self.notices.record(claim, result).value))


@mutation("a send without an answer is made again before its grace", Invariant.DUE_UNLESS_HANDLED, "one sender")
def _(patch: Patch) -> None:
    patch.setattr(Backoff, "_least", lambda self, code: timedelta(0))


@mutation("an event is done with although its claim failed", Invariant.NOT_LOST, "one sender")
def _(patch: Patch) -> None:
    call = Tell.__call__

    def swallowing(self: Tell, event: Any) -> Told:
        try:
            return call(self, event)
        except DatabaseError:
            return Told("skipped")

    patch.setattr(Tell, "__call__", swallowing)


@mutation("a mail is sent before its claim", Invariant.DUPLICATES_AS_DESIGNED, "one sender")
def _(patch: Patch) -> None:
    def hasty(self: Tell, event: Any) -> Told:
        kind, job = self.find(event)
        claim = Claim(job.job_id, event.outcome, job.kind, self.notices._new_claim_id(), 1)
        result = self.attempt(claim, kind, job)
        self.notices.claim(job, event.outcome)
        return self._record(claim, result)

    patch.setattr(Tell, "__call__", hasty)


@mutation("a send without an answer is made again", Invariant.DUPLICATES_AS_DESIGNED, "one sender")
def _(patch: Patch) -> None:
    answered = Tell._answered

    def insisting(self: Tell, claim: Claim, answer: Any) -> Result:
        if answer.verdict is Verdict.UNKNOWN:
            answer = self.mail.send(_letter(claim))
        return answered(self, claim, answer)

    patch.setattr(Tell, "_answered", insisting)


def _letter(claim: Claim) -> Any:
    return replace(LETTER, tags=notice_tags(claim.job_id, claim.outcome, claim.claim_id))


@mutation("a send without an answer counts as refused for good", Invariant.DUE_UNLESS_HANDLED, "one sender")
def _(patch: Patch) -> None:
    _taking(patch, Verdict.UNKNOWN, lambda answer: tell._failed_for_good(answer.code, answer.error))


@mutation("a send without an answer counts as accepted", Invariant.NOT_LOST, "one sender")
def _(patch: Patch) -> None:
    _taking(patch, Verdict.UNKNOWN, lambda _: Result(Status.DELIVERED))


# -- the retry


@mutation("the retry gives up before its horizon", Invariant.NOT_LOST, "one sender")
def _(patch: Patch) -> None:
    take = RetryDueNotices._take
    patch.setattr(RetryDueNotices, "_take", lambda self, *args: take(replace(self, horizon=timedelta(0)), *args))
