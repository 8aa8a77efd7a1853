"""SQS as this system writes to it: what was sent and parked, and faults by script."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from fakes.gate import Gate

QUEUE_URL = "https://sqs.example/job-settled"
DEAD_LETTERS_URL = "https://sqs.example/job-settled-dead-letters"


@dataclass(frozen=True, slots=True)
class Message:
    """A message on a queue."""

    body: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Queues:
    """The queues, shared by all workers."""

    by_url: dict[str, list[Message]] = field(default_factory=dict)
    faults: deque[Exception] = field(default_factory=deque)  # raised by the next calls, one each
    refused_entries: set[int] = field(default_factory=set)  # positions that every batch refuses

    @property
    def sent(self) -> list[Message]:
        """What is on the job.settled queue."""
        return self.by_url.setdefault(QUEUE_URL, [])

    @property
    def parked(self) -> list[Message]:
        """What is on its dead-letter queue."""
        return self.by_url.setdefault(DEAD_LETTERS_URL, [])

    def events(self) -> list[dict[str, Any]]:
        """Return the bodies on the job.settled queue."""
        return [json.loads(message.body) for message in self.sent]


class FakeSqs:
    """One worker's client; strict about what SQS is strict about."""

    def __init__(self, queues: Queues | None = None, gate: Gate | None = None) -> None:
        self.queues = queues or Queues()
        self.gate = gate or Gate()

    def send_message(self, **kwargs: Any) -> dict[str, Any]:
        """SQS `SendMessage`."""
        return self.gate.pass_through("SendMessage", kwargs, lambda: self._send(kwargs))

    def send_message_batch(self, **kwargs: Any) -> dict[str, Any]:
        """SQS `SendMessageBatch`."""
        return self.gate.pass_through("SendMessageBatch", kwargs, lambda: self._send_batch(kwargs))

    def _send(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        if self.queues.faults:
            raise self.queues.faults.popleft()
        attributes = {name: value["StringValue"] for name, value in kwargs.get("MessageAttributes", {}).items()}
        if not kwargs["MessageBody"] or not all(attributes.values()):
            raise sqs_error("InvalidParameterValue", "SendMessage")
        messages = self.queues.by_url.setdefault(kwargs["QueueUrl"], [])
        messages.append(Message(kwargs["MessageBody"], attributes))
        return {"MessageId": f"sent-{len(messages)}"}

    def _send_batch(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        if self.queues.faults:
            raise self.queues.faults.popleft()
        entries = kwargs["Entries"]
        if not 1 <= len(entries) <= 10 or len({entry["Id"] for entry in entries}) < len(entries):
            raise sqs_error("TooManyEntriesInBatchRequest", "SendMessageBatch")
        answer: dict[str, Any] = {"Successful": []}
        for position, entry in enumerate(entries):
            if position in self.queues.refused_entries:
                answer.setdefault("Failed", []).append({"Id": entry["Id"], "Code": "InternalError"})
                continue
            self.queues.by_url.setdefault(kwargs["QueueUrl"], []).append(Message(entry["MessageBody"]))
            answer["Successful"].append({"Id": entry["Id"]})
        return answer


def sqs_error(code: str, operation: str = "SendMessage") -> ClientError:
    """Return an error response of SQS."""
    return ClientError({"Error": {"Code": code, "Message": code}}, operation)
