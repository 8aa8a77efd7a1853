"""What the commands print: for people by default, one JSON document with `--json`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from notices_cli.trouble import Exit, Trouble, refused

NARROW = 80  # what something begins with gets no column of its own
LEAST_FOLDED = 20  # narrower than that, a column of text cannot be read
PIPED_WIDTH = 120  # a pipe has no width of its own


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's answer goes. For people it is printed as it comes; for scripts once, at the end."""

    as_json: bool

    def console(self, *, stderr: bool = False) -> Console:
        """Return a console on the stream as it is now."""
        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
        return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False)

    def say(self, text: str = "", style: str | None = None, *, indent: int = 0) -> None:
        """Print a paragraph for people."""
        if not self.as_json:
            self._print(Padding(Text(text, style=style or ""), (0, 0, 0, indent), expand=False) if text else "")

    def _print(self, what: Any) -> None:
        """Print; into a pipe without the blanks that fill a line."""
        console = self.console()
        if console.is_terminal:
            console.print(what)
            return
        with console.capture() as capture:
            console.print(what)
        click.echo("\n".join(line.rstrip() for line in capture.get().split("\n")), nl=False)

    def field(self, label: str, text: str, style: str | None = None) -> None:
        """Print a labelled paragraph for people."""
        if self.as_json:
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(width=10, no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        grid.add_row(label, Text(text, style=style or ""))
        self._print(grid)

    def points(self, points: Sequence[str]) -> None:
        """Print a list for people."""
        if self.as_json:
            return
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for point in points:
            grid.add_row("  •", Text(point))
        self._print(grid)

    def lines(self, label: str, rows: Sequence[tuple[str, str]]) -> None:
        """Print labelled lines, each with what it begins with."""
        if self.as_json or not rows:
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(width=10, no_wrap=True, style="dim")
        if narrow := self.console().width < NARROW:
            rows = [("", f"{begin} {text}") for begin, text in rows]
        else:
            grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for number, (begin, text) in enumerate(rows):
            cells = (Text(text),) if narrow else (Text(begin), Text(text))
            grid.add_row(label if number == 0 else "", *cells)
        self._print(grid)

    def command(self, label: str, text: str) -> None:
        """Print a command to type, never wrapped: it is copied."""
        if not self.as_json:
            self.console().print(Text(f"{label:<12}", style="dim") + Text(text, style="bold"), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, whole: Sequence[str] = ()) -> None:
        """Print a table for people; the first column and those named in `whole` are never wrapped or cut.

        Where that leaves no room for the rest, each row becomes two lines: what it is of, and what is said of it.
        """
        if self.as_json:
            return
        if self._needed(columns, rows, whole) > self.console().width:
            for row in rows:
                # never wrapped: it is copied
                self.console().print(Text(" ".join(row[:2]), style="bold"), soft_wrap=True)
                said = zip(columns[2:], row[2:], strict=True)
                self.say(" · ".join(f"{column} {cell}" for column, cell in said if cell), indent=2)
            return
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
        for column in columns:
            table.add_column(column, no_wrap=column in (columns[0], *whole), overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self._print(table)

    @staticmethod
    def _needed(columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[str]) -> int:
        cells = zip(*rows, strict=True)
        longest = {column: max(map(len, (column, *each))) for column, each in zip(columns, cells, strict=True)}
        return sum(
            2 + (length if column in (columns[0], *whole) else min(length, LEAST_FOLDED))
            for column, length in longest.items()
        )

    def json(self, document: Mapping[str, Any]) -> None:
        """Print the answer for scripts."""
        if self.as_json:
            plain = "utf" not in (sys.stdout.encoding or "").lower()  # JSON has escapes of its own
            click.echo(json.dumps(document, indent=2, ensure_ascii=plain))

    def confirm(self, question: str, *, place: object, yes: bool) -> None:
        """Say where it is going to be done, and ask, unless `--yes` was given.

        Raises:
            Trouble: the answer was no, or there is nobody to ask.
        """
        self.say(f"on {place}", "dim")
        if yes:
            return
        if self.as_json:
            raise refused("With --json nobody is asked, and nothing was changed.", "Add --yes to do it.")
        try:
            agreed = click.confirm(question, default=False)
        except click.Abort as abort:
            click.echo()
            if isinstance(abort.__context__, KeyboardInterrupt):
                raise Trouble("Interrupted; nothing was changed.", "", Exit.INTERRUPTED) from None
            # no terminal and no input: a pipe, or the end of the input
            raise refused("Nobody answered, and nothing was changed.", "Add --yes to do it without asking.") from None
        if not agreed:
            raise refused("Nothing was changed.")

    @contextmanager
    def progress(self, label: str, total: int | None) -> Iterator[Any]:
        """Show progress on a terminal; yields a function to call with how many are done."""
        console = self.console(stderr=True)
        if self.as_json or not console.is_terminal:
            yield lambda _done: None
            return
        counts: tuple[ProgressColumn, ...] = (BarColumn(), MofNCompleteColumn())
        if total is None:
            counts = (TextColumn("{task.completed}"),)
        columns = (TextColumn("{task.description}"), *counts)
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda done: bar.update(task, completed=done)


def complain(trouble: Trouble) -> None:
    """Print what went wrong: one line, on stderr."""
    click.echo(f"notices: {trouble}", err=True)


def not_all(message: str) -> Trouble:
    """Return what ends a command that did a part of its work."""
    return Trouble(message, "", Exit.FAULT)
