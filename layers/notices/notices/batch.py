"""An SQS batch in, its partial failures out (DESIGN 3.1, 3.5).

No exception of a record leaves it, with the one exception that DESIGN 2 names. A record is started only while there
is time to finish it; those that are not are reported untouched and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from notices.telemetry import Telemetry, describe

Record = Mapping[str, Any]
"""A message as Lambda hands it over."""


class Context(Protocol):
    """What is used of the Lambda context."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how much time the invocation has left."""


class Unreportable(Exception):
    """A record without a messageId could be neither handled nor parked: only the whole batch can come back."""


class NotStarted(Exception):
    """There was no time to finish the record."""


@dataclass(frozen=True, slots=True)
class Step:
    """One record and what is to be done with it; `do` raises for what has to go back to the queue."""

    record: Record
    do: Callable[[], None]


Plan = Callable[[Sequence[Record]], Sequence[Sequence[Step]]]
"""Lays a batch out in groups: the steps of a group go one after the other, the groups side by side."""


def in_order(handle: Callable[[Record], None]) -> Plan:
    """Return the plan that hands the records over one after the other."""
    return lambda records: [[Step(record, partial(handle, record)) for record in records]]


class Batch:
    """Hands the records of a batch over as planned, and reports what has to come back.

    `worst_case` is the longest that one record may take, in seconds; `pool` is where groups go side by side.
    """

    def __init__(self, plan: Plan, *, worst_case: float, telemetry: Telemetry, pool: Executor | None = None) -> None:
        self._plan = plan
        self._worst_case = worst_case
        self._telemetry = telemetry
        self._pool = pool

    def __call__(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return `{"batchItemFailures": [...]}`.

        Raises:
            Unreportable: see there; every other record was handled before.
        """
        records: Sequence[Record] = event.get("Records") or []
        failed: dict[str, None] = {}  # each once: an identifier twice makes Lambda take the whole batch for failed
        unreportable = False
        for record, error in zip(records, self._run(records, context), strict=True):
            if error is None:
                continue
            self._report(record, error)
            message_id = message_id_of(record)
            if message_id is None:
                unreportable = True
            else:
                failed[message_id] = None
        if unreportable:
            raise Unreportable("a record without a messageId could be neither handled nor parked")
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}

    def _run(self, records: Sequence[Record], context: Context) -> list[Exception | None]:
        """Return what each record raised, if anything."""
        errors: dict[int, Exception | None] = {}

        def time_left() -> bool:
            return context.get_remaining_time_in_millis() >= self._worst_case * 1000

        def run(group: Sequence[Step]) -> None:
            for step in group:
                errors[id(step.record)] = self._try(step) if time_left() else NotStarted()

        groups = self._plan(records)
        if self._pool is None or len(groups) < 2:
            for group in groups:
                run(group)
        else:
            for _ in self._pool.map(run, groups):
                pass
        return [errors.get(id(record), NotStarted()) for record in records]

    def _try(self, step: Step) -> Exception | None:
        try:
            step.do()
        except Exception as error:  # noqa: BLE001 - no exception of a record leaves the handler (DESIGN 2)
            return error
        return None

    def _report(self, record: Record, error: Exception) -> None:
        message_id = message_id_of(record)
        if isinstance(error, NotStarted):
            self._telemetry.info("record not started, no time left", message_id=message_id)
        else:
            self._telemetry.error("record goes back", message_id=message_id, fault=describe(error))


def message_id_of(record: Record) -> str | None:
    """Return a record's messageId, which a hand-made event may lack."""
    message_id = record.get("messageId")
    return message_id or None if isinstance(message_id, str) else None


def body_of(record: Record) -> str | None:
    """Return a record's body, likewise."""
    body = record.get("body")
    return body if isinstance(body, str) else None
