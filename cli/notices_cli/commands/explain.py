"""`notices explain`: what happened, what will, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from notices.event import JobSettled, Unprocessable
from notices.jobs import Requester
from notices.kinds import Kind
from notices.record import Notice
from notices_cli import explanation
from notices_cli.explanation import Circumstances, Explanation, Told
from notices_cli.options import checked_key, with_tool
from notices_cli.questions import SettledJob
from notices_cli.rehearsal import Rehearsal
from notices_cli.show import Output
from notices_cli.spoilt import SpoiltNotice
from notices_cli.tool import Tool
from notices_cli.trouble import EXIT_CODES, EXPECTED, Trouble, explained
from notices_cli.verdict import Judge
from notices_cli.words import at, iso, masked

MOST_PARKED = 200  # messages of the dead-letter queue that are looked at for one job

_T = TypeVar("_T")
_STYLES = {Told.YES: "green", Told.NO: "red", Told.NOT_YET: "yellow", Told.DOUBTFUL: "yellow"}


@click.command(epilog=EXIT_CODES)
@click.argument("job")
@click.argument("outcome", required=False)
@with_tool
def explain(job: str, outcome: str | None, tool: Tool, out: Output) -> None:
    """Was the requester of JOB told, and if not, why?

    The history in plain words, what SES said afterwards, what will happen next and when, and the safe next step. It
    answers too where there is no notice: skipped, parked, not arrived, or of a kind that does not notify.

    It reads the job's notices (one query) and the state of sending (two calls); where there is no notice, or one that
    failed for good, the job and its requester too, and where there is none, the dead-letter queue.
    """
    job, outcome = checked_key(job, outcome)
    found = tool.questions.of_job(job)
    notices = [notice for notice in found if outcome in (None, notice.outcome)]
    unseen: list[str] = []
    around = _circumstances(tool, unseen)
    asked = _Asked(tool, around, unseen)
    if notices:
        explanations = [asked.of_notice(notice) for notice in notices]
    else:
        explanations = [asked.of_absent(job, outcome)]
        if found:
            others = ", ".join(notice.outcome for notice in found)
            out.say(f"There is no notice of {job} {outcome}, but one of: {others}.", "dim")
            out.say()
    out.json(
        {
            "job_id": job,
            "outcomes": [_document(each) for each in explanations],
            "sending": str(around.sending) if around.sending else None,
            "unseen": unseen,
        }
    )
    for number, each in enumerate(explanations):
        if number:
            out.say()
        _print(each, asked.requesters.get(each.outcome or ""), out)
    for what in unseen:
        out.say(f"not seen: {what}", "dim")


class _Asked:
    """What is asked for each explanation, and no more."""

    def __init__(self, tool: Tool, around: Circumstances, unseen: list[str]) -> None:
        self._tool = tool
        self._around = around
        self._unseen = unseen
        self.requesters: dict[str, Requester] = {}

    def of_notice(self, notice: Notice | SpoiltNotice) -> Explanation:
        if isinstance(notice, SpoiltNotice):
            return explanation.of_spoilt(notice, self._tool.place.name("notices_table"))
        rehearsal = None
        if explanation.needs_rehearsal(notice):
            ask = partial(self._rehearsal, notice.job_id, notice.outcome)
            rehearsal = _seen("what another attempt would come to", ask, self._unseen)
        return explanation.of_notice(notice, rehearsal, self._around)

    def of_absent(self, job_id: str, outcome: str | None) -> Explanation:
        job = self._tool.questions.job(job_id)
        outcome = outcome or (job.outcome if job else None)
        parked = self._parked(job_id, outcome, job)
        if parked is not None:
            return parked
        kind = self._tool.kinds.get(job.job.kind) if job else None
        outcomes = tuple(kind.outcomes) if isinstance(kind, Kind) else ()
        rehearsal = self._rehearsal(job_id, outcome or next(iter(outcomes), "succeeded"))
        if outcome is None and rehearsal is not None and rehearsal.skip is None:
            rehearsal = None  # how the job ended is not known
        return explanation.of_absent(
            job_id, outcome, rehearsal, self._around, waiting=self._waiting(), job=job, outcomes=outcomes
        )

    def _parked(self, job_id: str, outcome: str | None, job: SettledJob | None) -> Explanation | None:
        judge = Judge(self._tool.rehearse(), self._tool.questions.notice)
        look = self._tool.dead_letters.look(MOST_PARKED)
        ours = [
            message
            for message in look.messages
            if message.speaks_of(job_id)
            and (outcome is None or message.event is None or message.event.outcome == outcome)
        ]
        if not ours:
            return None
        if outcome is None:
            outcome = next((message.event.outcome for message in ours if message.event), None)
        judged = [(each, judge(each)) for each in ours]
        rehearsal = self._rehearsal(job_id, outcome) if outcome is not None else None
        deleted_at = min((moment for each in ours if (moment := look.deleted_at(each))), default=None)
        return explanation.of_parked(job_id, outcome, judged, rehearsal, self._around, job=job, deleted_at=deleted_at)

    def _rehearsal(self, job_id: str, outcome: str) -> Rehearsal | None:
        try:
            rehearsal = self._tool.rehearse()(JobSettled(job_id, outcome))
        except Unprocessable:
            return None
        if rehearsal.requester is not None:
            self.requesters[outcome] = rehearsal.requester
        return rehearsal

    def _waiting(self) -> int:
        answer = self._tool.client("sqs").get_queue_attributes(
            QueueUrl=self._tool.place.name("queue_url"),
            AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        )
        return sum(int(number) for number in answer["Attributes"].values())


def _seen(what: str, ask: Callable[[], _T], unseen: list[str]) -> _T | None:
    """Return what was asked; what may not be seen is named in `unseen`, and the answer does without it."""
    try:
        return ask()
    except EXPECTED as error:
        unseen.append(f"{what}: {explained(error)}")
    except Trouble as trouble:
        unseen.append(f"{what}: {trouble}")
    return None


def _circumstances(tool: Tool, unseen: list[str]) -> Circumstances:
    settings = _seen("the function's settings", lambda: tool.settings, unseen)
    return Circumstances(
        now=tool.now(),
        sending=_seen("whether sending is paused", lambda: tool.switch.state(), unseen),
        horizon=settings.retry_horizon if settings else None,
        environment=settings.environment if settings else None,
        retention=settings.retention if settings else None,
        suffix=tool.place.suffix,
    )


def _print(each: Explanation, requester: Requester | None, out: Output) -> None:
    out.say(f"{each.job_id} {each.outcome or ''}".rstrip(), "bold")
    out.field("answer", each.headline, _STYLES[each.told])
    if requester is not None:
        address = masked(requester.email) or "no address"
        out.field("requester", f"{requester.requester_id} ({requester.audience}), {address}")
    out.lines("history", [(at(line.at) if line.at else "earlier", line.text) for line in each.history])
    if each.afterwards is not None:
        out.field("SES said", each.afterwards)
    out.field("next", each.next)
    if each.step:
        out.command("then" if each.mend_first else "do", each.step)
    elif each.mend_first:
        out.field("do", "what is said above; no command does it")
    else:
        out.field("do", "nothing")


def _document(each: Explanation) -> dict[str, Any]:
    return {
        "job_id": each.job_id,
        "outcome": each.outcome,
        "told": each.told.value,
        "state": each.state.value,
        "reason": each.reason,
        "answer": each.headline,
        "history": [{"at": iso(line.at), "text": line.text} for line in each.history],
        "ses_said": each.afterwards,
        "next": each.next,
        "step": each.step,
        "mend_first": each.mend_first,
    }
