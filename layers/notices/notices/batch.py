"""An SQS batch in, its partial failures out: Powertools' batch utility with this system's rules (DESIGN 3.1, 3.5).

No exception of a record leaves it, with the one exception that DESIGN 2 names. A record is started only while there
is time to finish it; those that are not are reported untouched and come back.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Batch:
    """Hands the records of a batch over, one after the other, and reports what has to come back.

    `handle` takes one record and raises for what has to go back to the queue. `worst_case` is the longest that it
    may take, in seconds.
    """

    def __init__(self, handle: Callable[[SQSRecord], None], *, worst_case: float, telemetry: Telemetry) -> None:
        self._handle = handle
        self._worst_case = worst_case
        self._telemetry = telemetry

    def __call__(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return `{"batchItemFailures": [...]}`.

        Raises:
            Unreportable: see there; every other record was handled before.
        """

        def one(record: SQSRecord) -> None:
            if context.get_remaining_time_in_millis() < self._worst_case * 1000:
                raise NotStarted
            self._handle(record)

        processor = _Processor()
        with processor(event.get("Records") or [], one):
            processor.process()
            self._report(processor)
        return dict(processor.response())

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
