"""The job.settled queue and its dead-letter queue, as this system writes to them (DESIGN 3.1, 3.6)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from notices.event import TYPE, Reason

CONNECT_SECONDS = 1.0
READ_SECONDS = 3.0
ATTEMPTS = 2
CALL_SECONDS = ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) + 1.0

BATCH = 10  # SQS's limit for one SendMessageBatch

NO_BODY = "(no body)"  # SQS refuses an empty body and an empty attribute value
NO_MESSAGE_ID = "unknown"


class SqsClient(Protocol):
    """What is used of botocore's SQS client."""

    def send_message(self, **kwargs: Any) -> dict[str, Any]:
        """SQS `SendMessage`."""

    def send_message_batch(self, **kwargs: Any) -> dict[str, Any]:
        """SQS `SendMessageBatch`."""


class QueueError(Exception):
    """A message could not be put on a queue."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The dead-letter queue, for what can never be processed."""

    client: SqsClient
    url: str

    def park(self, body: str | None, reason: Reason, source_message_id: str | None) -> None:
        """Put a message aside with the reason and where it came from.

        Raises:
            QueueError: it is not there; the record has to go back to the queue.
        """
        attributes = {"reason": reason, "source_message_id": source_message_id or NO_MESSAGE_ID}
        try:
            self.client.send_message(
                QueueUrl=self.url,
                MessageBody=body or NO_BODY,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
                },
            )
        except (ClientError, BotoCoreError) as error:
            raise QueueError(_code(error)) from error


@dataclass(frozen=True, slots=True)
class Retry:
    """The event with which the retry brings a notice back: the revision is that of its move."""

    job_id: str
    outcome: str
    revision: int

    def body(self) -> str:
        """Return the event as SQS carries it. It names no kind: the job does (DESIGN 3.4)."""
        return json.dumps(
            {
                "type": TYPE,
                "version": "1",
                "job_id": self.job_id,
                "outcome": self.outcome,
                "retry": self.revision,
            }
        )


@dataclass(frozen=True, slots=True)
class JobSettledQueue:
    """The queue that the job platform writes to, and the retry too."""

    client: SqsClient
    url: str

    def send(self, retries: Sequence[Retry]) -> int:
        """Queue up to ten retries in one call; return how many went through. What did not is due again later.

        Raises:
            QueueError: when the call itself fails; none or all may have gone through.
        """
        entries = [{"Id": str(number), "MessageBody": retry.body()} for number, retry in enumerate(retries)]
        try:
            answer = self.client.send_message_batch(QueueUrl=self.url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            raise QueueError(_code(error)) from error
        return len(answer.get("Successful", ()))


def client_config(pool: int = 10) -> Config:
    """Return the SQS client's settings; all its time-outs together stay below every function's own."""
    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        max_pool_connections=pool,
    )


def _code(error: Exception) -> str:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    return type(error).__name__
