"""``make demo``: jobs settle and people are told, on a local AWS, checked row by row.

Exit status: 0 when every row is as expected, 1 when one is not, 2 when the local AWS failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from demo.cast import Expected, Row, suppressed
from demo.local_aws import LocalAwsError, LocalStack
from demo.page import page
from demo.story import Seen, Story
from scripts.build import BuildError
from scripts.template import ROOT

MESSAGES = ROOT / "build" / "demo" / "messages.html"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit status."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--environment", default="production", choices=["production", "staging", "development"])
    environment = parser.parse_args(arguments).environment
    # a pipe has no width; 80 would fold the table
    console = Console(width=None if sys.stdout.isatty() else 110, log_path=False)
    started = time.monotonic()
    try:
        with console.status("starting") as status:

            def says(step: str) -> None:
                status.update(step)
                console.log(step)

            with LocalStack(environment, {"UntoldCheck": "scan"}, progress=says) as stack:
                story = Story(stack, production=environment == "production", says=says)
                seen = story.play()
                mails = stack.sent_mails()
    except (LocalAwsError, BuildError) as error:
        console.print(f"[red]The local AWS failed:[/red] {error}", highlight=False)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    expected = [row.expected if environment == "production" else suppressed(row.expected) for row, _ in seen]
    wrong = [not _as_expected(want, got) for want, (_, got) in zip(expected, seen, strict=True)]
    console.print(_table(seen, wrong, production=environment == "production"))
    for (row, _), want, bad in zip(seen, expected, wrong, strict=True):
        if bad:
            console.print(f"[red]{row.job_id}[/red] should be: {want}", highlight=False)
    MESSAGES.parent.mkdir(parents=True, exist_ok=True)
    MESSAGES.write_text(page(mails), encoding="utf-8")
    if mails:
        console.print(f"\n{len(mails)} messages: open {MESSAGES.relative_to(ROOT)} in a browser.", highlight=False)
    else:
        console.print(
            f"\nNobody got mail: Environment is {environment}. Suppressed counts as handled.", highlight=False
        )
    verdict = (
        f"{sum(wrong)} of {len(seen)} rows are not as expected" if any(wrong) else f"all {len(seen)} rows as expected"
    )
    console.print(f"{verdict}, in {time.monotonic() - started:.0f} seconds", highlight=False)
    return 1 if any(wrong) else 0


def _as_expected(want: Expected, got: Seen) -> bool:
    return (
        got.result == want.result
        and got.why.startswith(want.why)
        and bool(got.why) == bool(want.why)
        and got.attempts == want.attempts
        and len(got.mails) == want.mails
        and got.feedback == want.feedback
    )


def _table(seen: Sequence[tuple[Row, Seen]], wrong: Sequence[bool], *, production: bool) -> Table:
    table = Table(title="What became of each settled job", title_justify="left", show_lines=True)
    table.add_column("job", no_wrap=True)
    table.add_column("shows that", ratio=3)
    table.add_column("became", no_wrap=True)
    table.add_column("tries", justify="right")
    table.add_column("mail", ratio=3)
    for (row, got), bad in zip(seen, wrong, strict=True):
        subjects = [mail.subject for mail in got.mails]
        table.add_row(
            f"{row.job_id}\n{row.outcome}",
            row.shows if production or row.expected.result != "delivered" else "everything but the send is done",
            "\n".join(filter(None, (got.result, got.why))),
            str(got.attempts or ""),
            "\n".join([*subjects, *([f"SES said: {got.feedback}"] if got.feedback else [])]),
            style="red" if bad else None,
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
