"""Was the requester told, and if not, why, and what is to be done? Facts in, plain words out; nothing is asked here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from notices.codes import FOR_GOOD, NOBODY_TO_TELL, Code
from notices.feedback import News
from notices.kinds import Kind
from notices.record import ABANDONED, Attempt, Notice, Status
from notices.retry import tried_since
from notices_cli.codes import CODES, RETRIED, code_of, detail_of, says
from notices_cli.dead_letters import Parked
from notices_cli.questions import SettledJob
from notices_cli.rehearsal import Rehearsal
from notices_cli.sending import Sending
from notices_cli.spoilt import SpoiltNotice
from notices_cli.verdict import Fate, Verdict, why_parked
from notices_cli.words import at, command, count, span, when

OVERDUE_AFTER = timedelta(minutes=5)  # the schedule runs every minute


class Told(StrEnum):
    """The answer to "was the requester told?"."""

    YES = "yes"
    NO = "no"
    NOT_YET = "not yet"
    DOUBTFUL = "doubtful"  # SES has it, and something says that it may not have been read


class State(StrEnum):
    """What is the case, for scripts."""

    PENDING = "pending"
    OVERDUE = "overdue"  # due, and nothing brings it back
    RETRYING = "retrying"
    REOPENED = "reopened"
    FAILED_FOR_GOOD = "failed_for_good"
    GAVE_UP = "gave_up"
    CLOSED = "closed"
    DELIVERED = "delivered"
    SUPPRESSED = "suppressed"
    PARKED = "parked"
    SKIPPED = "skipped"
    NOT_ARRIVED = "not_arrived"
    SPOILT = "spoilt"  # somebody wrote to the record by hand


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened."""

    at: datetime | None
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer about one job and outcome."""

    job_id: str
    outcome: str | None
    state: State
    told: Told
    headline: str
    next: str
    step: str | None  # a command, or None: nothing is to be done
    history: Sequence[Line] = ()
    afterwards: str | None = None  # what SES said
    reason: str | None = None  # the code of a failure or a skip
    mend_first: bool = False  # somebody has to mend something, as `next` says, before the step is of use


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What else is known when a notice is explained. None: it could not be seen."""

    now: datetime
    sending: Sending | None
    horizon: timedelta | None
    environment: str | None
    retention: timedelta | None = None
    suffix: str = ""

    @property
    def production(self) -> bool:
        """Whether mail goes out now."""
        return self.environment == "production"


def of_notice(notice: Notice, rehearsal: Rehearsal | None, around: Circumstances) -> Explanation:
    """Explain a notice that exists. `rehearsal` is what a further attempt would come to, where that was asked."""
    match Status(notice.status):
        case Status.DELIVERED:
            return _delivered(notice)
        case Status.SUPPRESSED:
            return _suppressed(notice, around)
        case Status.PENDING:
            return _pending(notice, around)
        case Status.FAILED:
            return _retrying(notice, around) if notice.next_attempt_at else _ended(notice, rehearsal, around)


def needs_rehearsal(notice: Notice) -> bool:
    """Whether the explanation depends on what a further attempt would come to."""
    return notice.status == Status.FAILED and notice.next_attempt_at is None


# -- notices that exist ---------------------------------------------------------------------------------------------


def _delivered(notice: Notice) -> Explanation:
    told, headline, after = _feedback(notice)
    by_hand = told not in (Told.YES, Told.DOUBTFUL)
    copies = _copies(notice)
    if copies > 1:
        headline += f" {copies} messages went out, so it may have come twice."
    upcoming = "Nothing: delivered is final, and no event sends it again."
    if by_hand:
        upcoming = (
            "Nothing: delivered is final, so no retry sends it again. Have the platform correct the address, and "
            "tell the requester another way."
        )
    return _explained(notice, State.DELIVERED, told, headline, upcoming, None, after, mend_first=by_hand)


def _feedback(notice: Notice) -> tuple[Told, str, str]:
    accepted = f"SES accepted the message at {at(_accepted_at(notice))}"
    news = notice.feedback
    if news is None:
        return Told.YES, f"Told. {accepted}.", "Nothing yet."
    said = f"{at(news.at)}: {_NEWS[News(news.type)]}" + (f" ({news.detail})" if news.detail else "") + "."
    match News(news.type):
        case News.SEND:
            return Told.YES, f"Told. {accepted}.", said
        case News.DELIVERY:
            return Told.YES, f"Told. {accepted}, and the recipient's mail server took it.", said
        case News.COMPLAINT:
            return Told.YES, f"Told. {accepted}, and the recipient called it spam.", said
        case News.DELIVERY_DELAY:
            return Told.DOUBTFUL, f"Perhaps not told yet. {accepted}, and its delivery is delayed.", said
        case News.TRANSIENT_BOUNCE:
            return Told.DOUBTFUL, f"Perhaps not told. {accepted}, but it bounced for now.", said
        case News.PERMANENT_BOUNCE:
            return Told.NO, f"Not told. {accepted}, but it bounced for good.", said
        case _:
            return Told.NO, f"Not told. {accepted}, but did not send it.", said


_NEWS = {
    News.SEND: "the message is on its way",
    News.DELIVERY_DELAY: "delivery is delayed; SES goes on trying",
    News.DELIVERY: "the recipient's mail server took it",
    News.TRANSIENT_BOUNCE: "it bounced for now: a full mailbox, say, or an automatic reply",
    News.PERMANENT_BOUNCE: "it bounced for good: there is no such mailbox, or it takes no mail of ours",
    News.REJECT: "SES rejected the message",
    News.RENDERING_FAILURE: "SES could not render the message",
    News.COMPLAINT: "the recipient called it spam",
}


def _accepted_at(notice: Notice) -> datetime:
    """Return when the delivery that stands was recorded."""
    times = (
        entry.recorded_at
        for entry in notice.attempt_log
        if entry.result == Status.DELIVERED and entry.reference == notice.provider_reference
    )
    return next(times, notice.handled_at or notice.claimed_at)


def _copies(notice: Notice) -> int:
    return sum(1 for entry in notice.attempt_log if entry.result == Status.DELIVERED)


def _suppressed(notice: Notice, around: Circumstances) -> Explanation:
    headline = "Not told. Everything but the send was done: mail goes out in production only."
    if around.production:
        upcoming = (
            "Nothing by itself. ENVIRONMENT is production now: if the requester should have been told, re-open it."
        )
        step = command("retry", notice.job_id, notice.outcome, "--suppressed", "--reason", "...", suffix=around.suffix)
        return _explained(notice, State.SUPPRESSED, Told.NO, headline, upcoming, step)
    environment = "" if around.environment is None else f" (ENVIRONMENT is {around.environment or 'not set'} now)"
    return _explained(notice, State.SUPPRESSED, Told.NO, headline, f"Nothing: that is right here{environment}.", None)


def _pending(notice: Notice, around: Circumstances) -> Explanation:
    attempt = f"attempt {int(notice.attempts)} claimed it at {when(notice.claimed_at, around.now)}"
    due = notice.next_attempt_at or notice.claimed_at
    if around.now < due:
        headline = f"Not told yet, as far as is known: {attempt}, and has no result so far."
        upcoming = (
            f"The attempt records its result, or SES's own events do. If neither comes, the retry takes it up at "
            f"{when(due, around.now)}."
        )
    else:
        headline = f"Not told yet, as far as is known: {attempt} and came to nothing; its process ended, say."
        upcoming = f"It has been due since {when(due, around.now)}: the retry, each minute, brings it back."
    return _upcoming(notice, State.PENDING, headline, upcoming, due, around)


def _retrying(notice: Notice, around: Circumstances) -> Explanation:
    due = notice.next_attempt_at
    assert due is not None  # noqa: S101 - what this is called for
    code = code_of(notice.error)
    reopened = code == Code.REOPENED
    state = State.REOPENED if reopened else State.RETRYING
    failed = f"Not told yet: attempt {int(notice.attempts)} failed because {says(notice.error)}."
    if code == Code.PROVIDER_UNKNOWN:
        failed = f"Perhaps told: in attempt {int(notice.attempts)} {says(notice.error)}."
    if reopened:
        failed = f"Not told yet: {says(notice.error)}."
    if around.now < due:
        upcoming = f"The retry tries it again at {when(due, around.now)}."
    else:
        upcoming = f"It has been due since {when(due, around.now)}: the retry, each minute, brings it back."
    began = tried_since(notice)
    given_up = began + around.horizon if around.horizon is not None else None
    if given_up is not None and not reopened:
        if given_up > max(due, around.now):
            upcoming += f" If it still fails at {when(given_up, around.now)}, it is given up."
        else:
            upcoming = f"The retry gives it up at its next run: it has failed for {span(around.now - began)}."
    remedy = CODES[code].remedy if code in CODES else ""
    if code in CODES and code not in RETRIED:
        # it has a next attempt all the same: an operator's notices retry moved it on
        upcoming = (
            f"It was put back on the queue. If that comes to nothing, the retry looks at it at {when(due, around.now)}."
        )
        failed, remedy = (
            f"Not told yet: it had ended, and was brought back. It had ended because {says(notice.error)}.",
            "",
        )
    explanation = _upcoming(notice, state, failed, upcoming, due, around, remedy)
    if code == Code.PROVIDER_UNKNOWN and explanation.told is Told.NOT_YET:
        return replace(explanation, told=Told.DOUBTFUL)
    if explanation.step is not None or not remedy:
        return explanation
    match code:
        case Code.PROVIDER_MISCONFIGURED | Code.SENDER_UNSET | Code.INTERNAL_ERROR:
            return replace(explanation, step=command("check", suffix=around.suffix))
        case Code.TEMPLATE_ERROR:
            seen = ("preview", "--job", notice.job_id, "--outcome", notice.outcome)
            return replace(explanation, step=command(*seen, suffix=around.suffix))
        case _:
            return replace(explanation, mend_first=True)


def _upcoming(
    notice: Notice, state: State, headline: str, upcoming: str, due: datetime, around: Circumstances, remedy: str = ""
) -> Explanation:
    """Explain what has a next attempt; that comes only while sending goes on."""
    reason = code_of(notice.error) or None
    upcoming = f"{upcoming} {remedy}".strip()
    if around.sending is not None and not around.sending.on:
        upcoming = f"Nothing while sending is paused ({around.sending}). Once it goes on: {_lower(upcoming)}"
        step = command("resume", suffix=around.suffix)
        return _explained(notice, state, Told.NOT_YET, headline, upcoming, step, reason=reason)
    if around.now - due > OVERDUE_AFTER:
        late = span(around.now - due)
        upcoming += f" But that is {late} late: the retry has stopped or cannot keep up."
        step = command("check", suffix=around.suffix)
        return _explained(notice, State.OVERDUE, Told.NOT_YET, headline, upcoming, step, reason=reason)
    if around.sending is None:
        upcoming += " (Whether sending is paused could not be seen.)"
    return _explained(notice, state, Told.NOT_YET, headline, upcoming, None, reason=reason)


def _ended(notice: Notice, rehearsal: Rehearsal | None, around: Circumstances) -> Explanation:
    """Explain what failed and is not tried again: refused for good, given up, or closed."""
    code = code_of(notice.error)
    about = CODES.get(code)
    retry = command("retry", notice.job_id, notice.outcome, suffix=around.suffix)
    remedy = about.remedy if about else "See the log of TellRequesterFunction for this job."
    state = State.FAILED_FOR_GOOD
    if code == Code.GAVE_UP:
        state = State.GAVE_UP
        last = detail_of(notice.error)
        headline = f"Not told: given up {span(_since(notice, notice.handled_at))} after the first claim. "
        headline += (
            "Its last attempt came to nothing." if last == ABANDONED else f"It failed last because {says(last)}."
        )
        last_about = CODES.get(code_of(last))
        remedy = last_about.remedy if last_about and code_of(last) in FOR_GOOD else remedy
    elif code in NOBODY_TO_TELL:
        state = State.CLOSED
        headline = f"Not told, and closed: {says(notice.error)}."
    else:
        headline = f"Not told: it failed for good because {says(notice.error)}."
    mend_first = True
    if rehearsal is None:
        upcoming, step = f"Nothing by itself. {remedy} Then send it again.", retry
    elif rehearsal.skip is not None:
        upcoming, step = f"Nothing: nobody would be told now either ({CODES[rehearsal.skip].says}).", None
        mend_first = False
    elif rehearsal.code is not None:
        known = CODES.get(rehearsal.code)
        why = f"{known.says} ({rehearsal.code})" if known else rehearsal.code
        first = known.remedy if known else remedy
        upcoming = f"Nothing by itself, and a retry now would fail: {why}. {first} Then send it again."
        step = retry
    elif code in (Code.PROVIDER_REFUSED, Code.KIND_MISMATCH, Code.GAVE_UP):
        # whether its cause is mended cannot be seen from here
        upcoming, step = f"Nothing by itself. {remedy} Then send it again.", retry
    else:
        upcoming, step = "Nothing by itself. But the cause looks mended: it can be sent now.", retry
        mend_first = False
    return _explained(notice, state, Told.NO, headline, upcoming, step, reason=code or None, mend_first=mend_first)


def _since(notice: Notice, moment: datetime | None) -> timedelta:
    return (moment or notice.claimed_at) - notice.created_at


# -- history --------------------------------------------------------------------------------------------------------


def history(notice: Notice) -> list[Line]:
    """Return what happened, one line for each entry of the log, and one for a claim that has no entry yet."""
    lines: list[Line] = [Line(notice.created_at, "first claimed; the job's event had come")]
    oldest = min((int(entry.attempt) for entry in notice.attempt_log), default=int(notice.attempts))
    if oldest > 1:
        lines.append(
            Line(None, f"{count(oldest - 1, 'earlier attempt')} no longer in the log, which keeps the latest 50")
        )
    delivered = False
    for entry in notice.attempt_log:
        lines.append(Line(entry.recorded_at, _entry(entry, delivered)))
        delivered = delivered or entry.result == Status.DELIVERED
    if notice.status == Status.PENDING:
        lines.append(Line(notice.claimed_at, f"attempt {int(notice.attempts)}: claimed; no result so far"))
    return lines


def _entry(entry: Attempt, delivered_before: bool) -> str:
    attempt = f"attempt {int(entry.attempt)}"
    code = code_of(entry.error)
    match entry.result:
        case Status.DELIVERED if delivered_before:
            return (
                f"{attempt}: SES accepted another message: a duplicate (message {entry.reference or 'without an id'})"
            )
        case Status.DELIVERED:
            return f"{attempt}: SES accepted the message ({entry.reference or 'its id is not known'})"
        case Status.SUPPRESSED:
            return f"{attempt}: all but the send was done; suppressed outside production" + _late(delivered_before)
        case Status.FAILED if code == Code.GAVE_UP:
            return f"given up: the retry horizon was reached ({detail_of(entry.error)})"
        case Status.FAILED if code == Code.REOPENED:
            return "re-opened by an operator" + (f": {detail_of(entry.error)}" if detail_of(entry.error) else "")
        case Status.FAILED if code in NOBODY_TO_TELL:
            return f"closed: {says(entry.error)}"
        case Status.FAILED:
            return f"{attempt}: failed because {says(entry.error)}" + _late(delivered_before)
        case _ if entry.result == ABANDONED:
            return f"{attempt}: came to nothing; its process ended before it could say how"
    return f"{attempt}: {entry.result}"


def _late(delivered_before: bool) -> str:
    return "; this came after the delivery and changes nothing" if delivered_before else ""


def of_spoilt(spoilt: SpoiltNotice, table: str) -> Explanation:
    """Explain an item that is no notice any more."""
    return Explanation(
        spoilt.job_id,
        spoilt.outcome,
        State.SPOILT,
        Told.DOUBTFUL,
        f"Nobody can say: its record cannot be read, since {spoilt.why}. No function writes so; somebody did by hand.",
        "The functions may not be able to read it either: its events then come back to the queue, and are parked in "
        f"the end. Correct the item in the table {table}: "
        "SES's own figures and the logs of TellRequesterFunction say what became of it. Then ask again.",
        None,
        mend_first=True,
    )


# -- no notice --------------------------------------------------------------------------------------------------------


def of_parked(
    job_id: str,
    outcome: str | None,
    messages: Sequence[tuple[Parked, Verdict]],
    rehearsal: Rehearsal | None,
    around: Circumstances,
    *,
    job: SettledJob | None = None,
    deleted_at: datetime | None = None,
) -> Explanation:
    """Explain a job without a notice whose event is on the dead-letter queue.

    `rehearsal` is what a right event would come to, where the outcome is known; `deleted_at` is when SQS deletes the
    first of the messages.
    """
    message, verdict = next((each for each in messages if each[1].fate is Fate.READY), messages[0])
    unsure = " (its text names the job, but cannot be read as an event)" if message.event is None else ""
    headline = f"Not told: its event is on the dead-letter queue, because {why_parked(message)}{unsure}."
    lines = [Line(each.sent_at, f"parked: {why_parked(each)} (message {each.message_id})") for each, _ in messages]
    if verdict.fate is Fate.READY:
        upcoming = f"Nothing by itself. If it is put back now, {verdict.why}."
        step = command("parked", "--redrive", "--message", message.message_id, suffix=around.suffix)
    else:
        upcoming = f"Nothing by itself. If it is put back as it is, {verdict.why}."
        step = command("parked", suffix=around.suffix)
        if verdict.fate is Fate.BROKEN and rehearsal is not None:
            if rehearsal.skip is None:
                upcoming += " Send a right event instead, then drop this one."
                step = command("retry", job_id, outcome or "", suffix=around.suffix)
            else:
                upcoming += f" A right event would tell nobody either: {_skip(rehearsal, job)}. It can be dropped."
    if deleted_at is not None:
        upcoming += f" SQS deletes it at {when(deleted_at, around.now)}."
    return Explanation(
        job_id,
        outcome,
        State.PARKED,
        Told.NO,
        headline,
        upcoming,
        step,
        lines,
        None,
        message.reason or "received_too_often",
    )


def of_absent(
    job_id: str,
    outcome: str | None,
    rehearsal: Rehearsal | None,
    around: Circumstances,
    *,
    waiting: int | None,
    job: SettledJob | None = None,
    outcomes: Sequence[str] = (),
) -> Explanation:
    """Explain a job with neither a notice nor a parked event.

    `rehearsal` is what its event would come to (None: nobody knows how the job ended, and `outcomes` are those that its
    kind tells); `waiting` is how many events are on the queue.
    """
    if rehearsal is not None and rehearsal.skip is not None:
        upcoming = "Nothing: its event is skipped, or was, with one line in the log of TellRequesterFunction."
        if job is None:
            upcoming += " Is the id right, and are the stack, region and account those of the job?"
        return Explanation(
            job_id,
            outcome,
            State.SKIPPED,
            Told.NO,
            f"Not told, and not to be: {_skip(rehearsal, job)}.",
            upcoming,
            None,
            reason=rehearsal.skip.value,
        )
    headline = "Not told: no event of it has arrived, as far as can be seen. There is no notice, and none is parked."
    queued = ""
    if waiting:
        queued = f" {count(waiting, 'event is', 'events are')} on the queue; it may be among them."
    if around.sending is not None and not around.sending.on:
        queued += f" Sending is paused ({around.sending})."
    queued += _expired(job, around)
    if outcome is None or rehearsal is None:
        told = ", ".join(outcomes)
        upcoming = (
            f"Nothing before an event comes.{queued} The jobs table does not say how the job ended. Its kind tells of: "
            f"{told}."
        )
        step = command("explain", job_id, "OUTCOME", suffix=around.suffix)
        return Explanation(job_id, outcome, State.NOT_ARRIVED, Told.NO, headline, upcoming, step)
    upcoming = (
        f"Nothing before an event comes.{queued} If the job ended so, have the platform send it, or send it by hand."
    )
    if rehearsal.code is not None:
        known = CODES.get(rehearsal.code)
        upcoming += f" It would fail then: {known.says if known else rehearsal.code} ({rehearsal.code})."
    return Explanation(
        job_id,
        outcome,
        State.NOT_ARRIVED,
        Told.NO,
        headline,
        upcoming,
        command("retry", job_id, outcome, suffix=around.suffix),
        reason=rehearsal.code,
        mend_first=rehearsal.code is not None,
    )


def _skip(rehearsal: Rehearsal, job: SettledJob | None) -> str:
    kind = rehearsal.kind
    match rehearsal.skip:
        case Code.JOB_REMOVED:
            if job is None:
                return "the jobs table has no such job"
            return "the job was removed"
        case Code.NO_REQUESTER:
            return "nobody asked for the job: it has no requester"
        case _:
            if kind is None:
                of_kind = f"of the kind {job.job.kind}" if job and job.job.kind else "of its kind"
                return f"nobody is told of jobs {of_kind}"
            declared = ", ".join(kind.outcomes) if isinstance(kind, Kind) else "what it declares"
            return f"the kind {kind.name} does not tell this outcome, only {declared}"


def _expired(job: SettledJob | None, around: Circumstances) -> str:
    """Say that a notice may have been there and have expired."""
    if job is None or job.settled_at is None or around.retention is None:
        return ""
    try:
        settled = datetime.fromisoformat(job.settled_at)
    except ValueError:
        return ""
    settled = settled.replace(tzinfo=UTC) if settled.tzinfo is None else settled
    if around.now - settled < around.retention:
        return ""
    return (
        f" It settled {span(around.now - settled)} ago and notices are kept for {span(around.retention)}: there may "
        "have been one, and an event now may tell the requester a second time."
    )


def _explained(
    notice: Notice,
    state: State,
    told: Told,
    headline: str,
    upcoming: str,
    step: str | None,
    afterwards: str | None = None,
    *,
    reason: str | None = None,
    mend_first: bool = False,
) -> Explanation:
    return Explanation(
        notice.job_id,
        notice.outcome,
        state,
        told,
        headline,
        upcoming,
        step,
        history(notice),
        afterwards,
        reason,
        mend_first,
    )


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
