"""The crash matrix: each process alone, with one fault at each of its calls, and what becomes of the notice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from explorer.faults import Fault, faults
from explorer.invariants import Item
from explorer.process import Call, Process
from explorer.repair import Events, Repaired
from explorer.scenarios import A_SECOND, DIED_AFTER_SENDING, DUE, THROTTLED, Before, Bound, Scenario, sender
from explorer.schedules import Search, State, Why, standing


class Row(NamedTuple):
    """What one fault at one call leads to."""

    record: str  # what the record says when the process has gone
    message: str  # where its message is
    mails: str
    repair: str
    duplicate: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """One process, with a name for each of its calls."""

    title: str
    process: Process
    calls: Sequence[str]
    before: tuple[Before, ...] = ()

    def rows(self) -> list[tuple[str, list[str], Row]]:
        """Return the rows: the call, the faults that lead to the same, and what they lead to."""
        found: list[tuple[str, list[str], Row]] = []
        for place, name in enumerate(self.calls):
            by_row: dict[Row, list[str]] = {}
            for fault in faults(self._call(place)):
                by_row.setdefault(self._row(place, fault), []).append(fault.name)
            found += [(name, names, row) for row, names in by_row.items()]
        return found

    def records(self) -> Iterator[tuple[str, str, Item | None]]:
        """Yield each call and fault with the notice as the process leaves it, before anybody repairs anything."""
        for place, name in enumerate(self.calls):
            for fault in faults(self._call(place)):
                search, _, state = self._left(place, fault)
                yield name, fault.name, search.notice(state)

    def _scenario(self) -> Scenario:
        return Scenario(self.title, (self.process,), Bound(1), Bound(1), self.before)

    def _call(self, place: int) -> Call:
        search = self._scenario().search()
        state = self._at(search, place)
        assert state.nodes[0] is not None
        assert state.nodes[0].call is not None
        return state.nodes[0].call

    def _at(self, search: Search, place: int) -> State:
        """Return the process before one of its calls."""
        state = self._scenario().start(search, Bound(1))
        for _ in range(place):
            _, state = next(each for each in search.successors(state) if each[0].fault is None)
        return state

    def _left(self, place: int, fault: Fault) -> tuple[Search, State, State]:
        """Return the state before a call, and that in which the process ends after one fault at it."""
        search = self._scenario().search()
        start = self._at(search, place)
        _, state = search.spoiled(start, 0, fault)
        while step := next((each for each in search.successors(state) if each[0].fault is None), None):
            state = step[1]
        return search, start, state

    def _row(self, place: int, fault: Fault) -> Row:
        ends: dict[Events, Repaired] = {}
        reasons: dict[Events, set[Why]] = {}
        for events in Events:
            search, start, state = self._left(place, fault)
            search.report.duplicates.clear()
            ends[events] = self._scenario().repair(search).run(state._replace(nodes=(), faults_left=0), events)
            reasons[events] = set(search.report.duplicates)
        notice = search.notice(state)
        record = standing(notice)
        if notice is not None and "error" in notice:
            record += f" (`{notice['error']['S'].partition(':')[0]}`)"
        return Row(
            record,
            "none"
            if self.process.kind == "retry"
            else "comes back"
            if len(state.back) > len(start.back)
            else "is done with",
            _by_events({events: _MAILS[len(end.state.shared.accepted)] for events, end in ends.items()}),
            _by_events({events: _repair(end) for events, end in ends.items()}),
            _duplicate(reasons),
        )


_MAILS = ("nothing", "one mail", "two mails")
_EVENTS = {Events.FIRST: "early", Events.LAST: "late", Events.NEVER: "never"}


def _by_events(values: Mapping[Events, str]) -> str:
    """Say what holds, and where it depends on SES's events, when."""
    different = list(dict.fromkeys(values.values()))
    if len(different) == 1:
        return different[0]
    return "; ".join(
        f"{', '.join(_EVENTS[events] for events in values if values[events] == value)}: {value}" for value in different
    )


def _repair(end: Repaired) -> str:
    minutes = round(end.at.total_seconds() / 60)
    match end.by:
        case None:
            return "nothing is left to do"
        case "sender":
            return f"the queue, after {minutes} min"
        case "feedback queue":
            return f"the feedback queue, after {minutes} min"
        case "feedback":
            return "SES's event"
        case "retry" if minutes <= 1:
            return "the retry, at its next run"
    return f"the retry, after {minutes} min"


def _duplicate(reasons: Mapping[Events, set[Why]]) -> str:
    return "; ".join(SHORT[why] for why in Why if any(why in some for some in reasons.values())) or "no"


SHORT = {
    Why.OVERLAP: "overlap",
    Why.INTERRUPTED: "interrupted",
    Why.UNKNOWN: "unknown, another event",
    Why.UNKNOWN_WAITED: "unknown, no news",
}

MATRICES = (
    Matrix(
        "The sender",
        sender("A"),
        ("reading the job and the notice", "reading the requester", "the claim", "the send", "the outcome"),
    ),
    Matrix(
        "The retry",
        Process("T", "retry", "", DUE),
        ("reading what is due, pending", "reading what is due, failed", "the move", "queueing the event"),
        (THROTTLED,),
    ),
    Matrix(
        "Feedback",
        Process("F", "feedback", "", A_SECOND),
        ("receiving SES's event", "reading the notice", "writing what SES says"),
        (DIED_AFTER_SENDING,),
    ),
)
