"""The options by which `list` and `retry` choose among notices."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from notices.codes import Code
from notices.record import Status
from notices_cli.options import Length
from notices_cli.questions import Found, Selection
from notices_cli.words import count

SHOWN = 5  # of the spoilt, the rest are counted

_F = TypeVar("_F", bound=Callable[..., Any])

MOST_READ = 10_000


def selecting(*, statuses: tuple[Status, ...]) -> Callable[[_F], _F]:
    """Add the options; `selection` makes a Selection of them."""
    options = (
        click.option(
            "--status",
            "statuses",
            multiple=True,
            type=click.Choice([s.value for s in statuses]),
            help="May be repeated.",
        ),
        click.option(
            "--error",
            "codes",
            multiple=True,
            type=click.Choice(sorted(code.value for code in Code)),
            metavar="CODE",
            help="The code that the error begins with; may be repeated.",
        ),
        click.option("--kind", help="The kind of job."),
        click.option("--newer-than", type=Length(), help="First claimed within this time: 90s, 15m, 24h, 7d."),
        click.option("--older-than", type=Length(), help="First claimed longer ago than this."),
        click.option("--waiting", is_flag=True, help="Only those that will be tried again. Read from the index."),
        click.option(
            "--max-read",
            default=MOST_READ,
            show_default=True,
            type=click.IntRange(1),
            help="Read no more items than about this many.",
        ),
    )

    def add(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def selection(
    statuses: tuple[str, ...],
    codes: tuple[str, ...],
    kind: str | None,
    newer_than: timedelta | None,
    older_than: timedelta | None,
    waiting: bool,
) -> Selection:
    """Return what the options select. Several of one option mean any of them."""
    return Selection(
        statuses=frozenset(Status(status) for status in statuses),
        codes=frozenset(codes),
        kind=kind,
        newer_than=newer_than,
        older_than=older_than,
        waiting=waiting,
    )


def what_was_read(found: Found) -> str:
    """Say what was read, and whether that was all."""
    source = "by the due index" if found.source == "index" else "from the table"
    text = f"read {count(found.read, 'notice')} {source}"
    if found.spoilt:
        first = ", ".join(f"{each.job_id} {each.outcome}" for each in found.spoilt[:SHOWN])
        text += f"; {count(len(found.spoilt), 'item')} cannot be read, as somebody spoilt them by hand: {first}"
        text += ", …" if len(found.spoilt) > SHOWN else ""
    if not found.complete:
        text += ", and there are more: narrow the choice, or raise --max-read"
    return text
