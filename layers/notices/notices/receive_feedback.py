"""One record of the feedback queue: parse it, hand it over, write its log line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from notices import feedback
from notices.batch import body_of, message_id_of
from notices.telemetry import Telemetry


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
