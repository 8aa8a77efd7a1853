"""An operator at the small world: the tool with its collaborators played by fakes, and its answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, BinaryIO

from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from click.testing import CliRunner, Result

from fakes.gate import Gate
from fakes.queues import DEAD_LETTERS_URL, QUEUE_URL, FakeSqs, Message
from fakes.world import JOBS, NOTICES, REQUESTERS, World, catalogue
from notices_cli.main import notices
from notices_cli.place import NAMES, Place
from notices_cli.tool import Options, Tool

ALL_TYPES = ["SEND", "DELIVERY", "DELIVERY_DELAY", "BOUNCE", "COMPLAINT", "REJECT", "RENDERING_FAILURE"]
QUEUE_ATTRIBUTES = {
    "VisibilityTimeout": "720",
    "MessageRetentionPeriod": "864000",
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
}


def refusal(code: str, operation: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


class Sqs(FakeSqs):
    """With what the tool asks besides: looking, hiding and deleting."""

    def __init__(self, operator: Operator, gate: Gate) -> None:
        super().__init__(operator.world.queues, gate)
        self.operator = operator
        self.ids: dict[int, str] = {}
        self.hidden: dict[str, float] = {}
        self.sent: dict[int, datetime] = {}  # those not sent now
        self.numbers = itertools.count(1)
        self.attributes = {
            QUEUE_URL: {
                **QUEUE_ATTRIBUTES,
                "QueueArn": "arn:queue",
                "RedrivePolicy": json.dumps({"deadLetterTargetArn": "arn:dead", "maxReceiveCount": 10}),
            },
            DEAD_LETTERS_URL: {**QUEUE_ATTRIBUTES, "MessageRetentionPeriod": "1209600", "QueueArn": "arn:dead"},
        }

    def message_id(self, message: Message) -> str:
        return self.ids.setdefault(id(message), f"parked-{next(self.numbers)}")

    def receive_message(self, **kwargs: Any) -> dict[str, Any]:
        return self.gate.pass_through("ReceiveMessage", kwargs, lambda: self._receive(kwargs))

    def _receive(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        messages = []
        for message in self.queues.by_url.get(kwargs["QueueUrl"], []):
            message_id = self.message_id(message)
            if message_id in self.hidden or len(messages) == kwargs["MaxNumberOfMessages"]:
                continue
            self.hidden[message_id] = kwargs["VisibilityTimeout"]
            messages.append(
                {
                    "MessageId": message_id,
                    "ReceiptHandle": f"receipt:{message_id}",
                    "Body": message.body,
                    "Attributes": {"SentTimestamp": str(int(self._sent_at(message).timestamp() * 1000))},
                    "MessageAttributes": {
                        name: {"StringValue": value, "DataType": "String"} for name, value in message.attributes.items()
                    },
                }
            )
        return {"Messages": messages} if messages else {}

    def _sent_at(self, message: Message) -> datetime:
        return self.sent.get(id(message), self.operator.world.clock.at)

    def delete_message(self, **kwargs: Any) -> dict[str, Any]:
        return self.gate.pass_through("DeleteMessage", kwargs, lambda: self._delete(kwargs))

    def _delete(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        message_id = kwargs["ReceiptHandle"].removeprefix("receipt:")
        queue = self.queues.by_url[kwargs["QueueUrl"]]
        queue[:] = [message for message in queue if self.message_id(message) != message_id]
        return {}

    def change_message_visibility_batch(self, **kwargs: Any) -> dict[str, Any]:
        for entry in kwargs["Entries"]:
            self.hidden.pop(entry["ReceiptHandle"].removeprefix("receipt:"), None)
        return {}

    def get_queue_attributes(self, **kwargs: Any) -> dict[str, Any]:
        url = kwargs["QueueUrl"]
        if url not in self.attributes:
            raise refusal("QueueDoesNotExist", "GetQueueAttributes")
        waiting = str(len(self.queues.by_url.get(url, ())))
        known = {**self.attributes[url], "ApproximateNumberOfMessages": waiting}
        names = kwargs["AttributeNames"]
        return {"Attributes": {name: value for name, value in known.items() if names == ["All"] or name in names}}


class Lambda:
    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.source: dict[str, Any] = {
            "State": "Enabled",
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": 2},
        }
        self.fault: ClientError | None = None

    def get_function_configuration(self, **_: Any) -> dict[str, Any]:
        if self.fault:
            raise self.fault
        return {"Timeout": 120, "Environment": {"Variables": self.operator.variables}}

    def get_event_source_mapping(self, **_: Any) -> dict[str, Any]:
        return dict(self.source)

    def update_event_source_mapping(self, **kwargs: Any) -> dict[str, Any]:
        self.operator.changes.append("event source on" if kwargs["Enabled"] else "event source off")
        self.source["State"] = "Enabled" if kwargs["Enabled"] else "Disabled"
        return dict(self.source)


class Events:
    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.state = "ENABLED"

    def describe_rule(self, **_: Any) -> dict[str, Any]:
        return {"State": self.state}

    def enable_rule(self, **_: Any) -> None:
        self.operator.changes.append("schedule on")
        self.state = "ENABLED"

    def disable_rule(self, **_: Any) -> None:
        self.operator.changes.append("schedule off")
        self.state = "DISABLED"


class Ses:
    def __init__(self) -> None:
        self.account: dict[str, Any] = {
            "ProductionAccessEnabled": True,
            "SendingEnabled": True,
            "EnforcementStatus": "HEALTHY",
            "SendQuota": {"Max24HourSend": 50_000.0, "MaxSendRate": 14.0, "SentLast24Hours": 10.0},
        }
        self.identities: dict[str, dict[str, Any]] = {
            "example.com": {
                "VerifiedForSendingStatus": True,
                "DkimAttributes": {"SigningEnabled": True, "Status": "SUCCESS"},
            }
        }
        self.configuration_set: dict[str, Any] | None = {"SendingOptions": {"SendingEnabled": True}}
        self.destinations = [{"Enabled": True, "MatchingEventTypes": ALL_TYPES, "EventBridgeDestination": {}}]

    def get_account(self) -> dict[str, Any]:
        return self.account

    def get_email_identity(self, EmailIdentity: str) -> dict[str, Any]:  # noqa: N803 - the SDK's name
        if EmailIdentity not in self.identities:
            raise refusal("NotFoundException", "GetEmailIdentity")
        return self.identities[EmailIdentity]

    def get_configuration_set(self, **_: Any) -> dict[str, Any]:
        if self.configuration_set is None:
            raise refusal("NotFoundException", "GetConfigurationSet")
        return self.configuration_set

    def get_configuration_set_event_destinations(self, **_: Any) -> dict[str, Any]:
        return {"EventDestinations": self.destinations}


class Dynamo:
    """What DescribeTable says."""

    def __init__(self) -> None:
        def keys(*names: str) -> list[dict[str, str]]:
            return [
                {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
            ]

        index = {
            "IndexName": "due",
            "KeySchema": keys("status", "next_attempt_at"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["created_at", "revision"]},
            "IndexStatus": "ACTIVE",
        }
        self.tables: dict[str, dict[str, Any]] = {
            NOTICES: {"KeySchema": keys("job_id", "outcome"), "GlobalSecondaryIndexes": [index]},
            JOBS: {"KeySchema": keys("job_id")},
            REQUESTERS: {"KeySchema": keys("requester_id")},
        }
        for table in self.tables.values():
            table["TableStatus"] = "ACTIVE"
        self.ttl = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}

    def describe_table(self, TableName: str) -> dict[str, Any]:  # noqa: N803
        if TableName not in self.tables:
            raise refusal("ResourceNotFoundException", "DescribeTable")
        return {"Table": self.tables[TableName]}

    def describe_time_to_live(self, **_: Any) -> dict[str, Any]:
        return {"TimeToLiveDescription": self.ttl}


class CloudFormation:
    def __init__(self) -> None:
        values = {
            "notices_table": NOTICES,
            "jobs_table": JOBS,
            "requesters_table": REQUESTERS,
            "queue_url": QUEUE_URL,
            "dead_letter_queue_url": DEAD_LETTERS_URL,
            "tell_function": "tell",
            "event_source_id": "source",
            "schedule_rule": "rule",
            "configuration_set": "mail",
        }
        self.outputs = {NAMES[what][0]: value for what, value in values.items()}
        self.parameters = {"SesIdentity": "example.com"}
        self.asked = 0

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        self.asked += 1
        if StackName != "requester-notices":
            raise refusal("ValidationError", "DescribeStacks", f"Stack with id {StackName} does not exist")
        return {
            "Stacks": [
                {
                    "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs.items()],
                    "Parameters": [
                        {"ParameterKey": key, "ParameterValue": value} for key, value in self.parameters.items()
                    ],
                }
            ]
        }


@dataclass
class Operator:
    """Types commands and reads what they say."""

    world: World = field(default_factory=World)
    gate: Gate = field(default_factory=Gate)
    changes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variables = {
            "ENVIRONMENT": "production",
            "NOTICE_FROM_ADDRESS": "Notices <notices@example.com>",
            "HQ_BASE_URL": "https://hq.example.com",
            "CUSTOMER_BASE_URL": "https://app.example.com",
        }
        self.sqs = Sqs(self, self.gate)
        self.functions, self.rules, self.ses = Lambda(self), Events(self), Ses()
        self.dynamo, self.stack = Dynamo(), CloudFormation()
        self.options: Options | None = None

    def open(self, options: Options) -> Tool:
        self.options = options
        clients = {
            "sqs": self.sqs,
            "lambda": self.functions,
            "events": self.rules,
            "sesv2": self.ses,
            "dynamodb": self.dynamo,
            "cloudformation": self.stack,
        }
        place = Place(options.stack, lambda: "eu-west-1", None, options.given, clients.__getitem__, options.typed)
        tool = Tool(place, lambda: self.world.store.connect(self.gate), clients.__getitem__, self.world.clock)
        tool.kinds = catalogue()  # read once for all tests
        return tool

    def types(self, *words: str, answer: str | BinaryIO | None = None, code: int | None = 0) -> Result:
        """Run a command, and check its exit code unless that is None."""
        result = CliRunner().invoke(notices, words, obj=self.open, input=answer, catch_exceptions=True)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code is None or result.exit_code == code, result.output
        return result

    def asks(self, *words: str, code: int | None = 0) -> dict[str, Any]:
        """Run a command with `--json` and return the document."""
        document: dict[str, Any] = json.loads(self.types(*words, "--json", code=code).stdout)
        return document

    def explains(self, job_id: str = "job-1", outcome: str | None = "succeeded") -> dict[str, Any]:
        """Return the one explanation."""
        words = (job_id, outcome) if outcome else (job_id,)
        (explanation,) = self.asks("explain", *words)["outcomes"]
        return explanation  # type: ignore[no-any-return]

    def parks(self, body: str, reason: str | None = None, *, sent: timedelta = timedelta(0)) -> None:
        """Put a message first `sent` so long ago on the dead-letter queue: with a reason, or as ten receives do."""
        attributes = {"reason": reason, "source_message_id": "source"} if reason else {}
        message = Message(body, attributes)
        self.sqs.sent[id(message)] = self.world.clock.at - sent
        self.world.queues.parked.append(message)

    def feeds_back_in_vain(self) -> None:
        """Have the stack name its feedback queues, with a message on the dead-letter one."""
        self.stack.outputs |= {"FeedbackQueueUrl": "feedback", "FeedbackDeadLetterQueueUrl": "feedback-dead"}
        redrive = json.dumps({"deadLetterTargetArn": "arn:feedback-dead"})
        self.sqs.attributes["feedback"] = {**QUEUE_ATTRIBUTES, "QueueArn": "arn:feedback", "RedrivePolicy": redrive}
        dead = {**QUEUE_ATTRIBUTES, "MessageRetentionPeriod": "1209600", "QueueArn": "arn:feedback-dead"}
        self.sqs.attributes["feedback-dead"] = dead
        self.world.queues.by_url["feedback-dead"] = [Message("{", {})]

    def runs_the_queue(self) -> None:
        """Let the function take what is on the queue."""
        bodies = [message.body for message in self.world.queues.sent]
        self.world.queues.sent.clear()
        for body in bodies:
            assert self.world.worker().handle(body) == []

    def waits(self, length: timedelta) -> None:
        self.world.clock.advance(length)
