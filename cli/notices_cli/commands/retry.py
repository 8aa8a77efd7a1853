"""`notices retry`: bring notices back, and re-open those suppressed by mistake."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import click

from notices.event import TYPE, JobSettled, Unprocessable
from notices.record import Status
from notices_cli.bringing_back import Act, BringBack, Done, Plan, plan
from notices_cli.codes import CODES, code_of
from notices_cli.options import checked_key, checked_reason, with_tool, yes_option
from notices_cli.questions import Selection
from notices_cli.selecting import selecting, selection, what_was_read
from notices_cli.show import Output, not_all
from notices_cli.tool import Tool
from notices_cli.trouble import EXIT_CODES, refused
from notices_cli.words import command, count

SHOWN = 10
REASON_LENGTH = 200


@click.command(epilog=EXIT_CODES)
@click.argument("job", required=False)
@click.argument("outcome", required=False)
@selecting(statuses=(Status.FAILED, Status.PENDING))
@click.option("--suppressed", is_flag=True, help="Re-open suppressed notices instead; needs --reason.")
@click.option("--reason", help="Why they are re-opened. It is kept in the notice, so it must name nobody.")
@click.option("--force", is_flag=True, help="Also where a message may be out already: it may come twice.")
@yes_option
@with_tool
def retry(
    job: str | None,
    outcome: str | None,
    statuses: tuple[str, ...],
    codes: tuple[str, ...],
    kind: str | None,
    newer_than: timedelta | None,
    older_than: timedelta | None,
    waiting: bool,
    max_read: int,
    suppressed: bool,
    reason: str | None,
    force: bool,
    yes: bool,
    tool: Tool,
    out: Output,
) -> None:
    """Send the notice of JOB and OUTCOME again, or all that --status and the other options choose.

    It shows what it will do, asks, and puts a job.settled event on the queue for each. A delivered notice is never
    re-opened. It can be interrupted and repeated: each event names the revision that it found, so that of several for
    one notice one counts. Where the job has no notice at all, its event is sent as the platform would have sent it.

    With --suppressed and a --reason, suppressed notices are re-opened, one or many, and the retry brings them back
    within a minute. That is for what was suppressed by mistake: ENVIRONMENT was wrong, say, and is right now.
    """
    why = _reason(reason, suppressed)
    if job is not None:
        if statuses or codes or kind or newer_than or older_than or waiting:
            raise click.UsageError("Give either JOB and OUTCOME, or options that choose among all notices.")
        if outcome is None:
            raise click.UsageError("Which outcome? Give it after the job: notices explain JOB shows those there are.")
        checked_key(job, outcome)
        if suppressed:
            _sends_mail(tool)
        _one(job, outcome, tool, out, suppressed=suppressed, reason=why, force=force, yes=yes)
        return
    chosen = selection(statuses, codes, kind, newer_than, older_than, waiting)
    if suppressed:
        if statuses or codes or waiting:
            raise click.UsageError("--suppressed goes with --kind, --newer-than and --older-than alone.")
        chosen = Selection(frozenset({Status.SUPPRESSED}), frozenset(), kind, newer_than, older_than)
        _sends_mail(tool)
    elif not (statuses or waiting):
        raise click.UsageError("Which? Give JOB and OUTCOME, or --status failed or --status pending, or --suppressed.")
    _many(chosen, tool, out, max_read=max_read, suppressed=suppressed, reason=why, force=force, yes=yes)


def _reason(reason: str | None, suppressed: bool) -> str | None:
    if not suppressed:
        if reason:
            raise click.UsageError("--reason goes with --suppressed.")
        return None
    text = checked_reason(reason, "--suppressed")
    if len(text) > REASON_LENGTH or re.search(r"@|://", text):
        raise click.UsageError(f"The reason is kept: at most {REASON_LENGTH} characters, without addresses or links.")
    return text


def _sends_mail(tool: Tool) -> None:
    if not tool.settings.sends_mail:
        raise refused(
            f"ENVIRONMENT of the deployed function is '{tool.settings.environment}': they would be suppressed again.",
            "Deploy with Environment=production first, if mail is to go out here.",
        )


def _one(
    job: str, outcome: str, tool: Tool, out: Output, *, suppressed: bool, reason: str | None, force: bool, yes: bool
) -> None:
    notice = tool.questions.notice(job, outcome)
    if notice is None:
        if suppressed:
            see = command("explain", job, outcome, suffix=tool.place.suffix)
            raise refused(f"There is no notice of {job} {outcome}.", f"See {see}.")
        _send_event(job, outcome, tool, out, yes=yes)
        return
    decided = plan(notice, tool.now(), suppressed=suppressed, force=force, named=True)
    if decided.act is Act.LEAVE:
        hint = "" if Status(notice.status).handled or suppressed else " --force sends it all the same."
        raise refused(f"{job} {outcome} is left alone: {decided.why}.{hint}")
    _carry_out([decided], tool, out, reason=reason, yes=yes, read=None)


def _send_event(job: str, outcome: str, tool: Tool, out: Output, *, yes: bool) -> None:
    """Send the event that did not come, if anybody would be told of it."""
    try:
        rehearsal = tool.rehearse()(JobSettled(job, outcome))
    except Unprocessable as fault:
        raise refused(f"The event would be parked: {fault}.") from None
    if rehearsal.skip is not None:
        see = command("explain", job, outcome, suffix=tool.place.suffix)
        raise refused(f"Nobody would be told ({rehearsal.skip.value}).", f"See {see}.")
    out.say(f"There is no notice of {job} {outcome}. Its job.settled event will be put on the queue.")
    if rehearsal.code is not None:
        known = CODES.get(rehearsal.code)
        out.say(f"As things are its notice would then fail: {known.says if known else rehearsal.code}.", "yellow")
    _warn_if_paused(tool, out)
    out.confirm("Send it?", place=tool.place, yes=yes)
    body = json.dumps({"type": TYPE, "version": "1", "job_id": job, "outcome": outcome})
    tool.client("sqs").send_message(QueueUrl=tool.place.name("queue_url"), MessageBody=body)
    out.say("Sent.", "green")
    out.command("then", command("explain", job, outcome, suffix=tool.place.suffix))
    out.json({"queued": 0, "reopened": 0, "event_sent": 1, "left": 0, "moved_on": 0, "not_queued": 0, "failed": 0})


def _many(
    chosen: Selection,
    tool: Tool,
    out: Output,
    *,
    max_read: int,
    suppressed: bool,
    reason: str | None,
    force: bool,
    yes: bool,
) -> None:
    now = tool.now()
    with out.progress("reading", None) as progress:
        found = tool.questions.select(chosen, now, most=max_read, progress=progress)
    plans = [plan(notice, now, suppressed=suppressed, force=force, named=False) for notice in found.notices]
    _carry_out(plans, tool, out, reason=reason, yes=yes, read=what_was_read(found))


def _carry_out(
    plans: Sequence[Plan], tool: Tool, out: Output, *, reason: str | None, yes: bool, read: str | None
) -> None:
    doing = [each for each in plans if each.act is not Act.LEAVE]
    leaving = [each for each in plans if each.act is Act.LEAVE]
    _show(doing, leaving, out, read)
    done = Done()
    if not doing:
        out.say("There is nothing to do.")
        out.json(_document(done, leaving))
        return
    reopening = doing[0].act is Act.REOPEN
    verb = "Re-open" if reopening else "Put back on the queue:"
    _warn_if_paused(tool, out)
    out.confirm(f"{verb} {count(len(doing), 'notice')}?", place=tool.place, yes=yes)
    with out.progress("re-opening" if reopening else "queueing", len(doing)) as progress:
        bring_back = BringBack(tool.notices(tool.settings.retention), tool.queue, reason, progress)
        try:
            bring_back(doing, done)
        except KeyboardInterrupt:
            out.say(f"Interrupted. {_summary(done)}")
            out.json(_document(done, leaving))
            raise
    out.say(_summary(done), "green" if not (done.failed or done.not_queued) else "yellow")
    out.json(_document(done, leaving))
    if len(doing) == 1:
        notice = doing[0].notice
        out.command("then", command("explain", notice.job_id, notice.outcome, suffix=tool.place.suffix))
    if done.failed or done.not_queued:
        raise not_all("Not all was done. Repeat the command: what was done is not done twice.")


def _show(doing: Sequence[Plan], leaving: Sequence[Plan], out: Output, read: str | None) -> None:
    rows = [(each.notice.job_id, each.notice.outcome, each.notice.status, each.why) for each in doing[:SHOWN]]
    if rows:
        out.table(("job", "outcome", "status", "why"), rows, whole=("outcome", "status"))
    if len(doing) > SHOWN:
        out.say(f"… and {count(len(doing) - SHOWN, 'more', 'more')}")
        codes = Counter(code_of(each.notice.error) or each.notice.status for each in doing)
        out.say("in all: " + ", ".join(f"{number:,} {code}" for code, number in codes.most_common()))
    if leaving:
        out.say(f"Left alone: {count(len(leaving), 'notice')}.", "yellow")
        for why, number in Counter(each.why.partition(";")[0] for each in leaving).most_common(5):
            out.say(f"{number:,} x {why}", indent=2)
    if read:
        out.say(f"{read}.", "dim")


def _warn_if_paused(tool: Tool, out: Output) -> None:
    if out.as_json:
        return
    state = tool.switch.state()
    if not state.on:
        out.say(f"Sending is paused ({state}): nothing goes out before notices resume.", "yellow")


def _summary(done: Done) -> str:
    parts = [
        (done.queued, "put on the queue"),
        (done.reopened, "re-opened; the retry brings them back within a minute"),
        (done.moved_on, "moved on meanwhile and left alone"),
        (done.not_queued, "not taken by the queue; the retry brings them back in 15 minutes"),
        (done.failed, "not changed, because the call failed"),
    ]
    return ". ".join(f"{number:,} {what}" for number, what in parts if number) + "."


def _document(done: Done, leaving: Sequence[Plan]) -> dict[str, Any]:
    return {
        "queued": done.queued,
        "reopened": done.reopened,
        "event_sent": 0,
        "left": len(leaving),
        "moved_on": done.moved_on,
        "not_queued": done.not_queued,
        "failed": done.failed,
    }
