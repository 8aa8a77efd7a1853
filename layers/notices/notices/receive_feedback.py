"""One record of the feedback queue: parse it, hand it over, write its log line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from notices import feedback
from notices.batch import Record
from notices.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class ReceiveFeedback:
    """Takes a record of the feedback queue to `record`; what is no event of ours is acknowledged with one line."""

    record: Callable[[feedback.SesEvent], str]
    telemetry: Telemetry

    def __call__(self, record: Record) -> None:
        """Handle one record.

        Raises:
            ValueError: the body is no JSON object; the queue brings it to its dead-letter queue.
            DatabaseError, Contended: see `RecordFeedback`.
        """
        message_id = record.message_id
        try:
            event = feedback.parse(record.body)
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
