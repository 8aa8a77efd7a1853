"""docs/guarantees.md: what was searched, what holds, and what becomes of a notice wherever a process stops.

python -m explorer.page          writes it (make guarantees)
python -m explorer.page --deep   the deeper search, which writes nothing (make explore)
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path

from explorer.invariants import Invariant
from explorer.matrix import MATRICES, SHORT, Matrix
from explorer.mutations import MUTATIONS
from explorer.scenarios import SCENARIOS, Bound, Scenario
from explorer.schedules import Report, Why

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
ROW = "| {} |"

_RESIDUE = {
    Why.OVERLAP: "Two invocations work on one notice at the same time: the second claims while the first has claimed "
    "and not yet recorded. `ClaimLeaseSeconds` rules it out for as long as it lasts; batching, and a queue that "
    "delivers a message twice, are the ordinary causes.",
    Why.INTERRUPTED: "SES accepted, and then the process died or could not write the outcome. SES's own events settle "
    "the notice. Where they come after the next claim, or never, that claim sends again.",
    Why.UNKNOWN: "The send timed out although SES accepted, and another event for the same notice (not the retry's) "
    "comes before SES's own. `ClaimLeaseSeconds` makes such an event wait for `UnknownGraceSeconds` too.",
    Why.UNKNOWN_WAITED: "The same, but it was waited for `UnknownGraceSeconds` and SES's events did not come, which "
    "SES delivers on a best-effort basis. Nothing but a longer grace narrows it.",
}


def row(scenario: Scenario, report: Report) -> str:
    """Return a scenario's line of the table."""
    bound = scenario.bound
    cells = (
        scenario.title,
        str(bound.faults),
        "any" if bound.switches is None else str(bound.switches),
        f"{report.schedules:,}",
        f"{report.states:,}",
        f"{report.ends:,}",
        str(report.most_mails),
        "; ".join(SHORT[why] for why in Why if why in report.duplicates) or "none",
    )
    return ROW.format(" | ".join(cells))


def rows_of(text: str) -> dict[str, str]:
    """Return the scenarios' lines of a page."""
    titles = {scenario.title for scenario in SCENARIOS}
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return {title: line for line in lines if (title := line.split(" | ")[0][2:]) in titles}


def page(rows: Mapping[str, str]) -> str:
    """Return the page; the scenarios' lines are the costly part, and come from outside."""
    total = sum(int(line.split(" | ")[3].replace(",", "")) for line in rows.values())
    states = sum(int(line.split(" | ")[4].replace(",", "")) for line in rows.values())
    return "\n".join([*_head(total, states, rows), *_invariants(), *_matrices(), *_diagram(), *_residue(), *_faults()])


def _paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False), ""]


def _head(total: int, states: int, rows: Mapping[str, str]) -> list[str]:
    return [
        "# What is guaranteed, and what shows it",
        "",
        *_paragraph(
            "*Written by `make guarantees`; a test fails when it is out of date. The promises are those of "
            "DESIGN.md (2); this page is what came of running the code.*"
        ),
        *_paragraph(
            "The code of the senders, the retry and the feedback runs here against a DynamoDB in memory, which "
            "evaluates the conditions as pynamodb serialises them, and a mail provider. It runs one external call"
            " at a time, and the search visits every order of the calls. At each call it also visits: the process"
            " dies before the call, or after it took effect; the reply is lost, and the SDK makes the call again "
            "or the caller gets a time-out (the call had taken effect, had not, or takes effect later); the call "
            "is refused or throttled. *Faults* says how many of these one schedule may have, *switches* how often"
            " it may leave a process that could have gone on. After each schedule the queues bring back what was "
            "not acknowledged, and the retry runs until nothing is left to do: once with SES's events before the "
            "redelivery, once with them after it, once without them."
        ),
        f"**{total:,} schedules** were visited, and every invariant below held in all of them.",
        "",
        "| who | faults | switches | schedules | states | ends | most mails | duplicates |",
        "|---|---|---|---|---|---|---|---|",
        *rows.values(),
        "",
        *_paragraph(
            f"Schedules that lead to the same state have the same future, which is explored once: {states:,} "
            "states stand for all schedules. A state is the notice, the mails, the queues, where each process "
            "stands (all the answers that it got), and what may still go wrong. Clocks and ids are each process's"
            " own, so nothing else can matter. Schedules drawn by lot are run again from their beginning, twice, "
            "in threads and without that short cut, and have to go the same way. *Ends* are the different states "
            "in which schedules end. `make explore` searches deeper."
        ),
    ]


def _invariants() -> list[str]:
    return [
        "## What holds",
        "",
        "| invariant | |",
        "|---|---|",
        *(ROW.format(f"{each.title} | {each.sentence}") for each in Invariant),
        "",
    ]


def _matrices() -> list[str]:
    lines = [
        "## Where a process stops, and what becomes of the notice",
        "",
        *_paragraph(
            "One process alone, one fault, then the repair. Times count from the process's start, with the "
            "time-outs of `template.yaml` (a message is visible again after 12 minutes, an SES event after 6) and"
            " of DESIGN.md (3.3, 3.5). *Early*, *late* and *never* say when SES's own event comes: before the "
            "redelivery, after it, not at all. The requester is read before the claim "
            "here, and beside it where there are threads. Kinds of duplicate are explained under *The residue*."
        ),
    ]
    titles = ("at", "what happens", "the record says", "its message", "the requester gets", "who repairs", "duplicate")
    for matrix in MATRICES:
        lines += [
            f"### {matrix.title}",
            *_introduced(matrix),
            "",
            ROW.format(" | ".join(titles)),
            "|---|---|---|---|---|---|---|",
        ]
        lines += [ROW.format(" | ".join((call, "; ".join(names), *found))) for call, names, found in matrix.rows()]
        lines.append("")
    return lines


def _introduced(matrix: Matrix) -> list[str]:
    said = {
        "The retry": "Sixteen minutes after a first attempt that SES throttled.",
        "Feedback": "SES says that it accepted a mail whose sender died before it could write its outcome. Receiving "
        "the event is the queue's own affair.",
    }
    return ["", said[matrix.title]] if matrix.title in said else []


def _diagram() -> list[str]:
    changes: set[tuple[str, str, str]] = set()
    for scenario in SCENARIOS:
        few = Bound(min(scenario.bound.faults, 1), 1)
        changes |= scenario.explore(few).changes
    return [
        "## The states of a notice",
        "",
        *_paragraph(
            "Drawn from the writes that were seen. A write that leaves the state as it is (the log, the retry's "
            "move) is not drawn. Closing a notice whose job is gone, and re-opening a suppressed one, are not in "
            "these searches but in `tests/protocol/test_histories.py`."
        ),
        "```mermaid",
        "stateDiagram-v2",
        *sorted(
            f"    {_state(before)} --> {_state(after)}: {why}" for before, after, why in changes if before != after
        ),
        "```",
        "",
    ]


def _state(standing: str) -> str:
    return "[*]" if standing == "absent" else standing.replace(", ", "_").replace(" ", "_")


def _residue() -> list[str]:
    return [
        "## The residue",
        "",
        "A notice is never lost in any schedule. A requester can get more than one mail, in these cases and no others:",
        "",
        *(f"- **{SHORT[why]}**: {text}" for why, text in _RESIDUE.items()),
        "- **the notice outlived its record** (`NoticeRetentionDays`): an event that comes later finds no notice.",
        "",
        "Each second mail that can be seen, by its outcome or by SES's event, is logged and counted "
        "(`DuplicateDelivery`).",
        "",
    ]


def _faults() -> list[str]:
    return [
        "## Proof that it can fail",
        "",
        "Each of these faults is put into the code in a test, and the search has to find it:",
        "",
        "| fault | caught by |",
        "|---|---|",
        *(ROW.format(f"{each.title} | {each.caught_by.title}") for each in MUTATIONS),
        "",
    ]


def main(arguments: list[str]) -> None:
    """Search, say what was seen, and write the page."""
    deep = "--deep" in arguments
    rows = {}
    for scenario in SCENARIOS:
        started = time.monotonic()
        report = scenario.explore(scenario.deep if deep else scenario.bound)
        rows[scenario.title] = row(scenario, report)
        seconds = time.monotonic() - started
        sys.stdout.write(
            f"{scenario.title}: {report.schedules:,} schedules, {report.states:,} states, "
            f"{report.runs:,} runs of the code, {seconds:.0f} s\n"
        )
        sys.stdout.flush()
    if not deep:
        PAGE.write_text(page(rows))
        sys.stdout.write(f"{PAGE.relative_to(PAGE.parents[1])} written\n")


if __name__ == "__main__":
    main(sys.argv[1:])
