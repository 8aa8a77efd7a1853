"""`notices parked`: what is on the dead-letter queue, and what to do with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from notices.event import Reason
from notices_cli.dead_letters import Look, Parked
from notices_cli.options import checked_reason, with_tool, yes_option
from notices_cli.show import Output, not_all
from notices_cli.tool import Tool
from notices_cli.trouble import EXIT_CODES, EXPECTED, explained, refused
from notices_cli.verdict import Fate, Judge, Verdict, why_parked
from notices_cli.words import command, count, iso, span, when

MOST = 100
SOON = timedelta(days=2)  # a weekend
RECEIVES = "receives"  # what --parked-as calls those without a reason

Judged = tuple[Parked, Verdict]


@click.command(epilog=EXIT_CODES)
@click.option("--redrive", is_flag=True, help="Put back on the queue what would be handled.")
@click.option("--drop", is_flag=True, help="Delete the messages chosen; needs --reason.")
@click.option(
    "--message", "ids", multiple=True, metavar="ID", help="Only this message, or begin of its id; may be repeated."
)
@click.option(
    "--parked-as",
    "reasons",
    multiple=True,
    type=click.Choice([*Reason.__args__, RECEIVES]),  # type: ignore[attr-defined]
    help=f"Only those parked with this reason; {RECEIVES}: those that came after ten receives. May be repeated.",
)
@click.option(
    "--fate",
    "fates",
    multiple=True,
    type=click.Choice([fate.value for fate in Fate]),
    help="Only those; may be repeated.",
)
@click.option("--reason", help="Why they are dropped; it is printed with what was dropped.")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --drop: first add the messages to this file, a JSON document a line.",
)
@click.option("--bodies", is_flag=True, help="Also show the messages' bodies, which may hold anything.")
@click.option(
    "--most", default=MOST, show_default=True, type=click.IntRange(1, 10_000), help="Look at so many at most."
)
@yes_option
@with_tool
def parked(
    redrive: bool,
    drop: bool,
    ids: tuple[str, ...],
    reasons: tuple[str, ...],
    fates: tuple[str, ...],
    reason: str | None,
    save: Path | None,
    bodies: bool,
    most: int,
    yes: bool,
    tool: Tool,
    out: Output,
) -> None:
    """Show what is on the dead-letter queue and why, and what would become of it if it were put back.

    That is decided by reading each message again, and its job, requester and notice. READY: it would be handled.
    BROKEN: it would be parked again. SKIPPED: nobody would be told. HANDLED: its notice is delivered or suppressed
    already. VOID: a retry whose notice has moved on.

    The oldest come first: SQS deletes each for good when the queue has kept it for its retention (14 days) after its
    first send, also one that ten receives brought here. It says when, and how long that is off.

    --redrive sends the bodies of those that are ready to the job.settled queue, and deletes each from the dead-letter
    queue only when that has succeeded. --drop deletes for good. Looking takes nothing off: messages are hidden while
    the command looks, and shown again when it ends, or a minute after it was killed.
    """
    if redrive and drop:
        raise click.UsageError("Either --redrive or --drop.")
    if drop:
        reason = checked_reason(reason, "--drop")
    if drop and not (ids or reasons or fates):
        raise click.UsageError("Drop which? Choose by --message, --parked-as or --fate.")
    if not drop and (reason or save):
        raise click.UsageError("--reason and --save go with --drop.")
    chosen = _Choice(ids, reasons, fates)
    with out.progress("looking", None):
        look = tool.dead_letters.look(most)
        judge = Judge(tool.rehearse(), tool.questions.notice)
        judged = [(message, judge(message)) for message in look.messages if chosen.may_take(message)]
    judged = [each for each in judged if chosen.takes(each)]
    acting = [each for each in judged if not redrive or each[1].fate is Fate.READY]
    _show(acting, look, out, tool, bodies=bodies)
    staying = Counter(verdict.fate.value for _, verdict in judged if redrive and verdict.fate is not Fate.READY)
    if staying:
        stays = ", ".join(f"{number} {fate}" for fate, number in sorted(staying.items()))
        out.say(f"Not put back, since it would be of no use: {stays}.", "yellow")
    more = "" if look.complete else f" of about {look.about:,}; --most looks at more"
    out.say(f"looked at {count(len(look.messages), 'message')}{more}.", "dim")
    if look.hidden:
        lie = count(look.hidden, "more is", "more are")
        out.say(
            f"About {lie} held by somebody else who looks now, or the count is behind. Repeat it in a minute.", "yellow"
        )
    if not (redrive or drop):
        _propose(judged, tool, out)
        out.json(
            {
                "messages": [_document(each, look, bodies=bodies) for each in judged],
                "about": look.about,
                "complete": look.complete,
                "hidden": look.hidden,
            }
        )
        return
    if not acting:
        out.say("There is nothing to do.")
        out.json({"done": [], "not_done": []})
        return
    if redrive:
        out.confirm(f"Put {count(len(acting), 'message')} back on the queue?", place=tool.place, yes=yes)
        queue_url = tool.place.name("queue_url")
        _act(acting, tool, out, "put back", most, lambda message: tool.dead_letters.put_back(message, queue_url), {})
    else:
        out.confirm(f"Delete {count(len(acting), 'message')} for good?", place=tool.place, yes=yes)
        if save is not None:
            _save(acting, look, save)
        _act(acting, tool, out, "dropped", most, tool.dead_letters.delete, {"reason": reason})


class _Choice:
    def __init__(self, ids: Sequence[str], reasons: Sequence[str], fates: Sequence[str]) -> None:
        self._ids, self._reasons, self._fates = ids, reasons, fates

    def may_take(self, message: Parked) -> bool:
        return (not self._ids or any(message.message_id.startswith(each) for each in self._ids)) and (
            not self._reasons or (message.reason or RECEIVES) in self._reasons
        )

    def takes(self, judged: Judged) -> bool:
        return not self._fates or judged[1].fate.value in self._fates


def _act(
    acting: Sequence[Judged],
    tool: Tool,
    out: Output,
    what: str,
    most: int,
    act: Callable[[Parked], None],
    extra: Mapping[str, Any],
) -> None:
    """Receive the messages again, their receipts being spent, and deal with those decided over."""
    wanted = {message.message_id for message, _ in acting}
    done: list[str] = []
    failed: str | None = None
    try:
        with out.progress(what, len(wanted)) as progress, tool.dead_letters.held(most) as look:
            for message in look.messages:
                if message.message_id not in wanted:
                    continue
                act(message)
                done.append(message.message_id)
                progress(len(done))
    except EXPECTED as error:
        failed = str(explained(error))
    finally:
        reason = f", because: {extra['reason']}" if extra.get("reason") else ""
        out.say(f"{what}: {count(len(done), 'message')}{reason}.", "green" if len(done) == len(wanted) else "yellow")
        for message_id in done if extra.get("reason") else ():
            out.say(message_id, "dim", indent=2)
    missing = sorted(wanted - set(done))
    out.json({"done": done, "not_done": missing, **extra})
    if missing:
        why = failed or "Others hold them now, or have dealt with them."
        raise not_all(f"{count(len(missing), 'message')} left: {why} Repeat the command in a minute.")


def _save(acting: Sequence[Judged], look: Look, path: Path) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            for each in acting:
                file.write(json.dumps(_document(each, look, bodies=True), ensure_ascii=False) + "\n")
    except OSError as error:
        raise refused(f"{path} cannot be written ({error.strerror}); nothing was dropped.") from None


def _show(judged: Sequence[Judged], look: Look, out: Output, tool: Tool, *, bodies: bool) -> None:
    now = tool.now()
    for message, verdict in judged:
        age = f"{span(now - message.sent_at)} ago" if message.sent_at else "unknown"
        out.say(message.message_id, "bold")
        if message.event is not None:
            out.field("of", f"{message.event.job_id} {message.event.outcome}")
        out.field("why", f"{why_parked(message)} ({message.reason or 'no reason attribute'}), sent {age}")
        if (deleted_at := look.deleted_at(message)) is not None:
            soon = deleted_at - now < SOON
            out.field("kept until", when(deleted_at, now), "yellow" if soon else None)
        out.field("put back", f"{verdict.fate.value}: {verdict.why}", _STYLES[verdict.fate])
        if bodies:
            out.field("body", message.body)
        out.say()


_STYLES = {Fate.READY: "green", Fate.BROKEN: "red", Fate.SKIPPED: "", Fate.HANDLED: "", Fate.VOID: ""}


def _propose(judged: Sequence[Judged], tool: Tool, out: Output) -> None:
    fates = {verdict.fate for _, verdict in judged}
    suffix = tool.place.suffix
    if Fate.READY in fates:
        out.command("put back", command("parked", "--redrive", suffix=suffix))
    if Fate.BROKEN in fates:
        out.say("What is broken needs its producer mended, and a right event; then drop it.")
    for fate in (Fate.BROKEN, Fate.SKIPPED, Fate.HANDLED, Fate.VOID):
        if fate in fates:
            out.command("drop", command("parked", "--drop", "--fate", fate.value, "--reason", "...", suffix=suffix))


def _document(judged: Judged, look: Look, *, bodies: bool) -> dict[str, Any]:
    message, verdict = judged
    return {
        "message_id": message.message_id,
        "job_id": message.job_id,
        "outcome": message.event.outcome if message.event else None,
        "reason": message.reason,
        "source_message_id": message.source_message_id,
        "sent_at": iso(message.sent_at),
        "deleted_at": iso(look.deleted_at(message)),
        "fate": verdict.fate.value,
        "why": verdict.why,
        **({"body": message.body} if bodies else {}),
    }
