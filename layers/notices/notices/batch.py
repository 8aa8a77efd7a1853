"""An SQS batch in, its partial failures out: Powertools' batch utility with this system's rules (DESIGN 3.1, 3.5).

No exception of a record leaves it, with the one exception that DESIGN 2 names. A record is started only while there
is time to finish it; those that are not are reported untouched and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from notices.telemetry import Telemetry, describe


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

    record: SQSRecord
    do: Callable[[], None]


Plan = Callable[[Sequence[SQSRecord]], Sequence[Sequence[Step]]]
"""Lays a batch out in groups: the steps of a group go one after the other, the groups side by side."""


def in_order(handle: Callable[[SQSRecord], None]) -> Plan:
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
        raw = event.get("Records") or []
        errors = self._run([SQSRecord(record) for record in raw], context)

        def outcome(record: SQSRecord) -> None:  # noqa: ARG001 - Powertools passes it by name
            error = errors.pop(0)
            if error is not None:
                raise error

        processor = _Processor()
        with processor(raw, outcome):
            processor.process()
            self._report(processor)
        return dict(processor.response())

    def _run(self, records: Sequence[SQSRecord], context: Context) -> list[Exception | None]:
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

    def _report(self, processor: _Processor) -> None:
        for record, (kind, error, _) in zip(processor.fail_messages, processor.exceptions, strict=True):
            message_id = message_id_of(record)
            if kind is NotStarted:
                self._telemetry.info("record not started, no time left", message_id=message_id)
            elif error is not None:
                self._telemetry.error("record goes back", message_id=message_id, fault=describe(error))


def message_id_of(record: Any) -> str | None:
    """Return a record's messageId; by the raw event, since a hand-made one may lack what SQS always sends."""
    message_id = record.raw_event.get("messageId")
    return message_id or None if isinstance(message_id, str) else None


def body_of(record: Any) -> str | None:
    """Return a record's body, likewise."""
    body = record.raw_event.get("body")
    return body if isinstance(body, str) else None


class _Processor(BatchProcessor):
    def __init__(self) -> None:
        # not raising when all fail: Lambda would send the whole batch back, handled records included
        super().__init__(event_type=EventType.SQS, raise_on_entire_batch_failure=False)

    def _collect_sqs_failures(self) -> list[dict[str, str]]:
        ids = [message_id_of(record) for record in self.fail_messages]
        if not all(ids):
            raise Unreportable("a record without a messageId could be neither handled nor parked")
        # an identifier twice makes Lambda take the whole batch for failed
        return [{"itemIdentifier": message_id} for message_id in dict.fromkeys(ids) if message_id]
