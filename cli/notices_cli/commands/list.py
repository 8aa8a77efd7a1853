"""`notices list`: which notices there are."""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta
from typing import Any

import click

from notices.record import Notice, Status
from notices_cli.options import with_tool
from notices_cli.selecting import selecting, selection, what_was_read
from notices_cli.show import Output
from notices_cli.tool import Tool
from notices_cli.trouble import EXIT_CODES
from notices_cli.words import count, iso, span


@click.command("list", epilog=EXIT_CODES)
@selecting(statuses=tuple(Status))
@click.option("--limit", default=25, show_default=True, type=click.IntRange(1, 1000), help="How many to a page.")
@click.option("--page", default=1, show_default=True, type=click.IntRange(1), help="Which page.")
@with_tool
def list_notices(
    statuses: tuple[str, ...],
    codes: tuple[str, ...],
    kind: str | None,
    newer_than: timedelta | None,
    older_than: timedelta | None,
    waiting: bool,
    max_read: int,
    limit: int,
    page: int,
    tool: Tool,
    out: Output,
) -> None:
    """List notices, newest first, by status, kind, error code and age.

    With --waiting, --status pending, or --status failed and only codes that are retried, it reads the due index and so
    no more than it shows. Any other choice reads the table, as far as --max-read; each page reads anew. It says what it
    read.
    """
    chosen = selection(statuses, codes, kind, newer_than, older_than, waiting)
    now = tool.now()
    with out.progress("reading", None) as progress:
        found = tool.questions.select(chosen, now, most=max_read, progress=progress)
    pages = -(-len(found.notices) // limit)
    shown = found.notices[(page - 1) * limit : page * limit]
    out.json(
        {
            "notices": [document(notice) for notice in shown],
            "page": page,
            "pages": pages,
            "total": len(found.notices),
            "read": found.read,
            "source": found.source,
            "complete": found.complete,
            "unreadable": [{"job_id": each.job_id, "outcome": each.outcome} for each in found.spoilt],
        }
    )
    if shown:
        columns = ("job", "outcome", "status", "tries", "age", "next", "error or news")
        out.table(columns, [_row(notice, now) for notice in shown], whole=columns[1:-1])
        out.say()
    total = count(len(found.notices), "notice")
    out.say(f"{total}, page {page} of {max(pages, 1)}; {what_was_read(found)}.", "dim")
    if page < pages:
        out.command("more", f"notices list {_again(page + 1)}{tool.place.suffix}")
    elif page > max(pages, 1):
        out.say("There is no such page.", "dim")


def document(notice: Notice) -> dict[str, Any]:
    """Return a notice as the JSON output has it."""
    return {
        "job_id": notice.job_id,
        "outcome": notice.outcome,
        "status": notice.status,
        "kind": notice.kind,
        "attempts": int(notice.attempts),
        "error": notice.error,
        "feedback": notice.feedback.type if notice.feedback else None,
        "created_at": iso(notice.created_at),
        "claimed_at": iso(notice.claimed_at),
        "handled_at": iso(notice.handled_at),
        "next_attempt_at": iso(notice.next_attempt_at),
    }


def _row(notice: Notice, now: datetime) -> tuple[str, ...]:
    upcoming = ""
    if notice.next_attempt_at is not None:
        left = notice.next_attempt_at - now
        upcoming = f"in {span(left)}" if left > timedelta(0) else f"due {span(-left)}"
    said = notice.feedback.type if notice.feedback and notice.status == Status.DELIVERED else ""
    return (
        notice.job_id,
        notice.outcome,
        notice.status,
        str(int(notice.attempts)),
        span(now - notice.created_at),
        upcoming,
        notice.error or said,
    )


def _again(page: int) -> str:
    """Return the words of this command line with another page; those of all commands stay with the environment."""
    ctx = click.get_current_context()
    words: list[str] = []
    for option in ctx.command.params:
        name, value = option.name or "", ctx.params.get(option.name or "")
        if name in ("statuses", "codes"):
            words += [word for each in value or () for word in (option.opts[0], each)]
        elif name in ("newer_than", "older_than") and value:
            words += [option.opts[0], f"{round(value.total_seconds())}s"]
        elif name == "waiting" and value:
            words.append("--waiting")
        elif name in ("kind", "limit", "max_read") and value not in (None, option.default):
            words += [option.opts[0], str(value)]
    return shlex.join([*words, "--page", str(page)])
