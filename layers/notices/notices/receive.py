"""One job.settled record: parse it, hand it over, write its log line, put aside what can never be processed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from notices.batch import Record, Step
from notices.event import JobSettled, Unprocessable, parse
from notices.lookups import Lookups, NoticeKey
from notices.queues import DeadLetters
from notices.telemetry import Telemetry
from notices.tell import Tell


@dataclass(frozen=True, slots=True)
class ReceiveJobSettled:
    """Takes the records of the job.settled queue to `tell`, or to the dead-letter queue."""

    tell: Tell
    read_together: Callable[[Sequence[NoticeKey], Executor], Lookups]
    pool: Executor
    dead_letters: DeadLetters
    telemetry: Telemetry

    def __call__(self, records: Sequence[Record]) -> list[list[Step]]:
        """Lay out a batch: its look-ups read together, the records of one notice one after the other."""
        arrivals = [(record, _parsed(record)) for record in records]
        keys = [
            (event.job_id, event.outcome)
            for _, event in arrivals
            if isinstance(event, JobSettled) and self.tell.may_notify(event)
        ]
        tell = self.tell.with_lookups(self.read_together(keys, self.pool))
        groups: dict[NoticeKey | int, list[Step]] = {}
        for number, (record, event) in enumerate(arrivals):
            if isinstance(event, Unprocessable):
                groups[number] = [Step(record, partial(self._park, record, event))]
            elif isinstance(event, Exception):
                groups[number] = [Step(record, partial(_raise, event))]
            else:
                group = groups.setdefault((event.job_id, event.outcome), [])
                group.append(Step(record, partial(self._handle, record, event, tell)))
        return list(groups.values())

    def _handle(self, record: Record, event: JobSettled, tell: Tell) -> None:
        """Handle one record.

        Raises:
            QueueError: it could not be parked.
            DatabaseError, ClaimContended: see `Tell`.
        """
        started = time.perf_counter()
        try:
            told = tell(event)
        except Unprocessable as refused:
            self._park(record, refused, event)
            return
        self.telemetry.info(
            "record handled",
            message_id=record.message_id,
            job_id=event.job_id,
            outcome=event.outcome,
            kind=told.kind,
            result=told.result,
            reason=told.reason,
            attempt=told.attempt,
            error=told.error,
            recorded=told.recorded,
            milliseconds=round((time.perf_counter() - started) * 1000, 1),
        )

    def _park(self, record: Record, refused: Unprocessable, event: JobSettled | None = None) -> None:
        message_id = record.message_id
        self.dead_letters.park(record.body, refused.reason, message_id)
        self.telemetry.count("EventParked")
        self.telemetry.warning(
            "event parked",
            message_id=message_id,
            reason=refused.reason,
            field=refused.field,
            job_id=event.job_id if event else None,
            outcome=event.outcome if event else None,
        )


def _parsed(record: Record) -> JobSettled | Exception:
    try:
        return parse(record.body)
    except Exception as error:  # noqa: BLE001 - where it is no Unprocessable, its own record goes back, and no other
        return error


def _raise(error: Exception) -> None:
    raise error
