"""One record of a queue: parse it, hand it over, write its log line, put aside what can never be processed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from notices import feedback
from notices.batch import body_of, message_id_of
from notices.event import JobSettled, Unprocessable, parse
from notices.queues import DeadLetters
from notices.telemetry import Telemetry
from notices.tell import Told


@dataclass(frozen=True, slots=True)
class ReceiveJobSettled:
    """Takes a record of the job.settled queue to `tell`, or to the dead-letter queue."""

    tell: Callable[[JobSettled], Told]
    dead_letters: DeadLetters
    telemetry: Telemetry

    def __call__(self, record: SQSRecord) -> None:
        """Handle one record.

        Raises:
            QueueError: it could not be parked.
            DatabaseError, ClaimContended: see `Tell`.
        """
        started = time.perf_counter()
        body, message_id = body_of(record), message_id_of(record)
        event: JobSettled | None = None
        try:
            event = parse(body)
            told = self.tell(event)
        except Unprocessable as refused:
            self.dead_letters.park(body, refused.reason, message_id)
            self.telemetry.count("EventParked")
            self.telemetry.warning(
                "event parked",
                message_id=message_id,
                reason=refused.reason,
                field=refused.field,
                job_id=event.job_id if event else None,
                outcome=event.outcome if event else None,
            )
            return
        self.telemetry.info(
            "record handled",
            message_id=message_id,
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


@dataclass(frozen=True, slots=True)
class ReceiveFeedback:
    """Takes a record of the feedback queue to `record`; what is no event of ours is acknowledged with one line."""

    record: Callable[[feedback.SesEvent], str]
    telemetry: Telemetry

    def __call__(self, record: SQSRecord) -> None:
        """Handle one record.

        Raises:
            ValueError: the body is no JSON object; the queue brings it to its dead-letter queue.
            DatabaseError, Contended: see `RecordFeedback`.
        """
        message_id = message_id_of(record)
        try:
            event = feedback.parse(body_of(record))
        except feedback.NotOurs as ignored:
            self.telemetry.info("feedback ignored", message_id=message_id, reason=str(ignored))
            return
        result = self.record(event)
        self.telemetry.info(
            "feedback handled",
            message_id=message_id,
            job_id=event.job_id,
            outcome=event.outcome,
            type=event.news.value if event.news else None,
            result=result,
        )
