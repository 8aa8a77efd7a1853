"""What SES says of a message after it accepted it (DESIGN 3.6).

Such an event finds its notice by the tags that the sender gave the message. It settles a pending or failed notice
whose message SES did accept; it keeps the gravest news; it never makes a notice claimable and never creates one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from notices.event import JOB_ID, MAX_WRAPPINGS, OUTCOME, strict_object
from notices.mail import job_id_from_tag
from notices.record import Attempt, Clock, Feedback, Notice, Notices, Status
from notices.telemetry import Telemetry, delivered, delivered_twice

WRITE_TRIES = 5


class News(StrEnum):
    """The types of feedback."""

    SEND = "send"
    DELIVERY_DELAY = "delivery_delay"
    DELIVERY = "delivery"
    TRANSIENT_BOUNCE = "transient_bounce"
    PERMANENT_BOUNCE = "permanent_bounce"
    REJECT = "reject"
    RENDERING_FAILURE = "rendering_failure"
    COMPLAINT = "complaint"


_GRAVITY = {
    News.SEND: 0,
    News.DELIVERY_DELAY: 1,
    News.DELIVERY: 2,
    News.TRANSIENT_BOUNCE: 3,
    News.REJECT: 4,
    News.RENDERING_FAILURE: 4,
    News.PERMANENT_BOUNCE: 4,
    News.COMPLAINT: 5,
}
_BOUNCES = (News.TRANSIENT_BOUNCE, News.PERMANENT_BOUNCE)

# SES's eventType in lower case without its space, and the object that carries its facts
_TYPES = {
    "send": ("send", News.SEND),
    "delivery": ("delivery", News.DELIVERY),
    "deliverydelay": ("deliveryDelay", News.DELIVERY_DELAY),
    "bounce": ("bounce", News.TRANSIENT_BOUNCE),
    "complaint": ("complaint", News.COMPLAINT),
    "reject": ("reject", News.REJECT),
    "renderingfailure": ("failure", News.RENDERING_FAILURE),
}

_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STATUS_CODE = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}")
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
_MESSAGE_ID = re.compile(r"[\x21-\x7e]{1,256}")


class NotOurs(Exception):
    """An event to acknowledge and forget; the text says why, and holds nothing of the event."""


@dataclass(frozen=True, slots=True)
class SesEvent:
    """One SES event of a message that this system sent."""

    job_id: str
    outcome: str
    claim_id: str | None
    message_id: str | None
    news: News | None  # None: nothing to keep (`not-spam`), but still a proof
    proves_acceptance: bool
    is_send: bool
    at: datetime | None  # None: SES gave no time that can be read
    detail: str | None


class Contended(Exception):
    """The notice changed at every one of our tries; the event goes back to the queue."""


def parse(body: str | None) -> SesEvent:
    """Return the SES event in an SQS body, bare or wrapped by EventBridge or SNS.

    Raises:
        ValueError: the body is no JSON object: it belongs on the dead-letter queue.
        NotOurs: it is something else than an event of a message of ours.
    """
    try:
        event = strict_object(body or "")
    except TypeError as error:
        raise ValueError("not an object") from error
    event = _unwrapped(event)
    mail = _mapping(event.get("mail"))
    job_id, outcome, claim_id = _tags(_mapping(mail.get("tags")))
    kind = event.get("eventType") or event.get("notificationType")
    known = _TYPES.get(kind.replace(" ", "").lower()) if isinstance(kind, str) else None
    if known is None:
        raise NotOurs("a type that is not used")
    name, news = known
    facts = _mapping(event.get(name))
    kept: News | None = news
    if name == "bounce" and facts.get("bounceType") == "Permanent":
        kept = News.PERMANENT_BOUNCE
    if name == "complaint" and facts.get("complaintFeedbackType") == "not-spam":
        kept = None
    return SesEvent(
        job_id=job_id,
        outcome=outcome,
        claim_id=claim_id,
        message_id=_matching(mail.get("messageId"), _MESSAGE_ID),
        news=kept,
        proves_acceptance=news not in (News.REJECT, News.RENDERING_FAILURE),
        is_send=news is News.SEND,
        at=_time(facts.get("timestamp")) or _time(mail.get("timestamp")),
        detail=_detail(name, facts),
    )


def _unwrapped(event: dict[str, Any]) -> dict[str, Any]:
    for _ in range(MAX_WRAPPINGS):
        if "eventType" in event or "notificationType" in event or "mail" in event:
            break
        inner = event["detail"] if "detail" in event else event.get("Message")
        if isinstance(inner, str):
            try:
                inner = strict_object(inner)
            except (TypeError, ValueError):
                raise NotOurs("control text") from None
        if not isinstance(inner, dict):
            raise NotOurs("no event in it")
        event = inner
    return event


def _tags(tags: Mapping[str, Any]) -> tuple[str, str, str | None]:
    """Return the job, outcome and claim that the sender's tags name.

    They end in log lines and in the record, so what could not have been an id when the letter was sent is none now.
    """
    job, outcome, claim = (_first(tags.get(name)) for name in ("notice_job", "notice_outcome", "notice_claim"))
    if job is None or outcome is None:
        raise NotOurs("without our tags")
    try:
        job_id = job_id_from_tag(job)
    except ValueError:
        raise NotOurs("with a job tag that is not ours") from None
    if not JOB_ID.fullmatch(job_id):
        raise NotOurs("with a job tag that is not ours")
    if not OUTCOME.fullmatch(outcome):
        raise NotOurs("with an outcome tag that is not ours")
    return job_id, outcome, claim


def _first(values: Any) -> str | None:
    value = values[0] if isinstance(values, list) and values else values
    return _matching(value, _TAG)


def _detail(name: str, facts: Mapping[str, Any]) -> str | None:
    """SES's own type, sub-type and status code; never its free text, which quotes addresses."""
    if name == "bounce":
        words = [facts.get("bounceType"), facts.get("bounceSubType")]
    elif name == "complaint":
        words = [facts.get("complaintFeedbackType"), facts.get("complaintSubType")]
    else:
        words = [facts.get("delayType")]
    kinds = "/".join(word for word in (_matching(word, _WORD) for word in words) if word)
    codes = [
        code
        for recipient in _list(facts.get("bouncedRecipients")) + _list(facts.get("delayedRecipients"))
        if (code := _matching(_mapping(recipient).get("status"), _STATUS_CODE))
    ]
    return " ".join(part for part in (kinds, *codes[:1]) if part) or None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _matching(value: Any, form: re.Pattern[str]) -> str | None:
    return value if isinstance(value, str) and form.fullmatch(value) else None


def _time(value: Any) -> datetime | None:
    """Read the forms that SES's roads use: ISO 8601, RFC 5322, and epoch milliseconds."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
        if not isinstance(value, str) or len(value) > 64:
            return None
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = parsedate_to_datetime(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class RecordFeedback:
    """Writes one SES event to its notice."""

    notices: Notices
    telemetry: Telemetry
    now: Clock

    def __call__(self, event: SesEvent) -> str:
        """Record the event and return what came of it, for its log line.

        Raises:
            Contended: others wrote the notice at every try.
            DatabaseError: a call failed; the event goes back to the queue.
        """
        for _ in range(WRITE_TRIES):
            notice = self.notices.get(event.job_id, event.outcome)
            if notice is None:
                return "no_notice"
            accepted = self._accepted(notice, event)
            feedback = self._feedback(notice, event)
            if accepted is None and feedback is None:
                return "nothing_new"
            if self.notices.add_feedback(notice, feedback=feedback, accepted=accepted):
                return self._count(notice, event, accepted, feedback)
        raise Contended(f"{WRITE_TRIES} tries")

    def _accepted(self, notice: Notice, event: SesEvent) -> Attempt | None:
        """Return the log entry of a delivery that the event proves and the record does not have."""
        if not event.proves_acceptance:
            return None
        if notice.status == Status.DELIVERED and not _second_delivery(notice, event):
            return None
        claim_id = event.claim_id or notice.claim_id
        attempts = (entry.attempt for entry in notice.attempt_log if entry.claim_id == claim_id)
        return Attempt(  # type: ignore[no-untyped-call]
            attempt=next(attempts, notice.attempts),
            claim_id=claim_id,
            recorded_at=self.now(),
            result=Status.DELIVERED.value,
            reference=event.message_id,
        )

    def _feedback(self, notice: Notice, event: SesEvent) -> Feedback | None:
        """Return the event as feedback if it is graver than what is kept; among equals the first stays."""
        if event.news is None:
            return None
        kept = notice.feedback
        if kept is not None and kept.type in _GRAVITY and _GRAVITY[News(kept.type)] >= _GRAVITY[event.news]:
            return None
        return Feedback(  # type: ignore[no-untyped-call]
            type=event.news.value, at=event.at or self.now(), detail=event.detail, message_id=event.message_id
        )

    def _count(self, notice: Notice, event: SesEvent, accepted: Attempt | None, feedback: Feedback | None) -> str:
        kind = notice.kind
        if feedback is not None and event.news in _BOUNCES:
            self.telemetry.count("FeedbackBounce", kind)
        if feedback is not None and event.news is News.COMPLAINT:
            self.telemetry.count("FeedbackComplaint", kind)
        if accepted is None:
            return "recorded"
        if notice.status == Status.DELIVERED:
            delivered_twice(self.telemetry, kind, event.job_id, event.outcome, event.message_id)
            return "second_delivery"
        delivered(self.telemetry, kind, notice.settled_at, self.now())
        return "settled"


def _second_delivery(notice: Notice, event: SesEvent) -> bool:
    """A Send under an id that no delivery in the record has; one recorded without an id may be this very one."""
    if not event.is_send or event.message_id in (None, notice.provider_reference):
        return False
    deliveries = [entry for entry in notice.attempt_log if entry.result == Status.DELIVERED]
    return not any(
        entry.reference == event.message_id or (entry.reference is None and entry.claim_id == event.claim_id)
        for entry in deliveries
    )
