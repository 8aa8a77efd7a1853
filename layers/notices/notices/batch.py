"""An SQS batch in, its partial failures out, by this system's rules (DESIGN 3.1, 3.5; ADR 8).

No exception of a record leaves it, with the one exception that DESIGN 2 names. A record is started only while there
is time to finish it; those that are not are reported untouched and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from notices.telemetry import Telemetry, describe


class Context(Protocol):
    """What is used of the Lambda context."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how much time the invocation has left."""


class Unreportable(Exception):
    """A record without a messageId could be neither handled nor parked: only the whole batch can come back."""


class NotStarted(Exception):
    """There was no time to finish the record."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What is used of an SQS record. An event made by hand may lack either."""

    message_id: str | None
    body: str | None


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
        records = [_record(raw) for raw in event.get("Records") or ()]
        failed = self._run(records, context)
        back = [record for record in records if record in failed]
        for record in back:
            self._log(record, failed[record])
        if not all(record.message_id for record in back):
            raise Unreportable("a record without a messageId could be neither handled nor parked")
        # each once: an identifier twice makes Lambda take the whole batch for failed
        ids = dict.fromkeys(record.message_id for record in back)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in ids]}

    def _run(self, records: Sequence[Record], context: Context) -> dict[Record, Exception]:
        """Return what each record that has to come back raised."""
        failed: dict[Record, Exception] = {record: NotStarted() for record in records}

        def run(group: Sequence[Step]) -> None:
            for step in group:
                if context.get_remaining_time_in_millis() < self._worst_case * 1000:
                    continue
                try:
                    step.do()
                except Exception as error:  # noqa: BLE001 - no exception of a record leaves the handler (DESIGN 2)
                    failed[step.record] = error
                else:
                    del failed[step.record]

        groups = self._plan(records)
        if self._pool is None or len(groups) < 2:
            for group in groups:
                run(group)
        else:
            under_way = [self._pool.submit(run, group) for group in groups]
            wait(under_way)  # all of them, also where one ends the process: none goes on after its invocation
            for group_done in under_way:
                group_done.result()
        return failed

    def _log(self, record: Record, error: Exception) -> None:
        if isinstance(error, NotStarted):
            self._telemetry.info("record not started, no time left", message_id=record.message_id)
        else:
            self._telemetry.error("record goes back", message_id=record.message_id, fault=describe(error))


def _record(raw: Any) -> Record:
    fields = raw if isinstance(raw, Mapping) else {}
    message_id, body = fields.get("messageId"), fields.get("body")
    return Record(
        message_id=message_id or None if isinstance(message_id, str) else None,
        body=body if isinstance(body, str) else None,
    )
