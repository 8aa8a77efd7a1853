"""The dead-letter queue, as operators see it: what is there and why, and what is done with it.

SQS has no way to look without receiving. So messages are received, hidden for as long as it takes, and shown again
before the command ends; a command that is killed leaves them hidden for a minute, and nothing is ever lost by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from notices.event import JobSettled, Unprocessable, parse

HIDDEN_SECONDS = 60  # a receipt stays good for deleting when this has passed
WAIT_SECONDS = 1  # without it SQS asks only some of its servers, and may find nothing where there is something
RECEIVE = 10  # SQS's limit for one ReceiveMessage


@dataclass(frozen=True, slots=True)
class Parked:
    """A message on the dead-letter queue. `reason` is None where ten receives brought it there."""

    message_id: str
    receipt: str
    body: str
    reason: str | None
    source_message_id: str | None
    sent_at: datetime | None
    event: JobSettled | None  # None: it still cannot be read
    fault: str | None  # what reading it again says

    @property
    def job_id(self) -> str | None:
        """The job that it speaks of, where it can be read."""
        return self.event.job_id if self.event else None

    def speaks_of(self, job_id: str) -> bool:
        """Whether it speaks of a job, as far as can be seen: one that cannot be read may name it in its text."""
        if self.event:
            return self.job_id == job_id
        # not where it is but a part of another id
        return re.search(rf"(?<![\w-]){re.escape(job_id)}(?![\w-])", self.body, re.ASCII) is not None


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of the queue."""

    messages: Sequence[Parked]
    about: int  # how many SQS says there are, approximately
    complete: bool
    kept: timedelta  # how long the queue keeps a message after it was first sent
    hidden: int  # how many there are besides that did not come, since somebody else held them; approximately

    def deleted_at(self, message: Parked) -> datetime | None:
        """When SQS deletes a message for good: it counts from the first send, also of what ten receives brought."""
        return message.sent_at + self.kept if message.sent_at else None


class DeadLetterQueue:
    """The queue, through botocore's client. Every method raises ClientError or BotoCoreError when a call fails."""

    def __init__(self, client: Any, url: str, *, wait_seconds: int = WAIT_SECONDS) -> None:
        self._client = client
        self._wait_seconds = wait_seconds
        self.url = url

    def look(self, most: int) -> Look:
        """Return what is on the queue, at most so many messages, and leave it as it is."""
        with self.held(most) as look:
            return look

    @contextmanager
    def held(self, most: int) -> Iterator[Look]:
        """Hold messages while they are looked at or dealt with; those still there are shown again afterwards."""
        held: dict[str, Parked] = {}
        about, kept, hidden = self._about()
        complete = False
        try:
            while len(held) < most:
                received = self._receive(min(RECEIVE, most - len(held)))
                held |= {message.message_id: message for message in received}
                if not received:
                    complete = True
                    break
            if complete:  # taken by somebody else between the count and the look
                hidden = max(hidden, about - len(held))
            oldest_first = sorted(
                held.values(), key=lambda message: message.sent_at or datetime.max.replace(tzinfo=UTC)
            )
            yield Look(oldest_first, max(about, len(held)), complete or len(held) >= about, kept, hidden)
        finally:
            self._show_again(list(held.values()))

    def put_back(self, message: Parked, queue_url: str) -> None:
        """Send a message's body to the source queue, and delete it here only then."""
        self._client.send_message(QueueUrl=queue_url, MessageBody=message.body)
        self.delete(message)

    def delete(self, message: Parked) -> None:
        """Take a message off the queue for good."""
        self._client.delete_message(QueueUrl=self.url, ReceiptHandle=message.receipt)

    def _about(self) -> tuple[int, timedelta, int]:
        names = [
            "ApproximateNumberOfMessages",
            "MessageRetentionPeriod",
            "ApproximateNumberOfMessagesNotVisible",
        ]
        attributes = self._client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        about, kept, hidden = (int(attributes[name]) for name in names)
        return about, timedelta(seconds=kept), hidden

    def _receive(self, number: int) -> list[Parked]:
        answer = self._client.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=number,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=self._wait_seconds,
            MessageAttributeNames=["reason", "source_message_id"],
            MessageSystemAttributeNames=["SentTimestamp"],
        )
        return [_parked(message) for message in answer.get("Messages", ())]

    def _show_again(self, messages: Sequence[Parked]) -> None:
        for first in range(0, len(messages), RECEIVE):
            entries = [
                {"Id": str(number), "ReceiptHandle": message.receipt, "VisibilityTimeout": 0}
                for number, message in enumerate(messages[first : first + RECEIVE])
            ]
            # those deleted meanwhile are refused one by one; if the call fails, they show again within the minute
            with suppress(ClientError, BotoCoreError):
                self._client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)


def _parked(message: dict[str, Any]) -> Parked:
    attributes = message.get("MessageAttributes", {})
    sent = message.get("Attributes", {}).get("SentTimestamp")
    event: JobSettled | None = None
    fault: str | None = None
    try:
        event = parse(message["Body"])
    except Unprocessable as refused:
        fault = str(refused)
    return Parked(
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=message["Body"],
        reason=attributes.get("reason", {}).get("StringValue"),
        source_message_id=attributes.get("source_message_id", {}).get("StringValue"),
        sent_at=datetime.fromtimestamp(int(sent) / 1000, UTC) if sent else None,
        event=event,
        fault=fault,
    )
