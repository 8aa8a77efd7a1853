"""A stage to play on: tables and queues on moto, a strict SES on loopback, and the functions as Lambda starts them."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest import mock

import botocore.session  # type: ignore[import-untyped]
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer  # type: ignore[import-untyped]
from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends

from cases import stack
from cases.book import environment
from cases.output import Output
from cases.wire import Wire
from fakes.ses_server import FakeSes

FUNCTIONS = Path(__file__).parents[2] / "functions"
REGION = "eu-west-1"
ACCOUNT = "123456789012"  # moto's
TABLES = {
    "JOBS_TABLE": "JobsTable",
    "REQUESTERS_TABLE": "RequestersTable",
    "NOTICES_TABLE": "NoticesTable",
    "UNTOLD_BOOKMARK_TABLE": "UntoldBookmarkTable",
}
QUEUES = {
    "JOB_SETTLED_QUEUE_URL": "JobSettledQueue",
    "JOB_SETTLED_DEAD_LETTER_QUEUE_URL": "JobSettledDeadLetterQueue",
}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "example", "AWS_SESSION_TOKEN": "example"}

Item = dict[str, Any]
Handler = Callable[[dict[str, Any], Any], Any]

_write = TypeSerializer().serialize
_read = TypeDeserializer().deserialize


class LambdaContext:
    """What Lambda hands to a handler beside the event."""

    function_name = "function"
    function_version = "$LATEST"
    memory_limit_in_mb = 256
    invoked_function_arn = f"arn:aws:lambda:{REGION}:123456789012:function:function"
    aws_request_id = "11111111-2222-4333-8444-555555555555"

    def __init__(self, left: Callable[[], int] = lambda: 120_000) -> None:
        self.get_remaining_time_in_millis = left


class Stage:
    """A context manager. `environ` changes the cases' usual variables; None takes one away."""

    def __init__(self, environ: Mapping[str, str | None] | None = None, *, home: str = "/nonexistent") -> None:
        self.output = Output()
        self.wire = Wire()
        self.ses = FakeSes(configuration_sets=("requester-notices",))
        self._environ = {**environment(), "HOME": home, **(environ or {})}
        self._workers: dict[str, Handler] = {}
        self._clients: list[Any] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(mock.patch.dict(os.environ, CREDENTIALS, clear=True))
        self._stack.enter_context(mock_aws())
        self._stack.callback(self._close_clients)
        self._stack.enter_context(self.ses)
        session = Wire().session()
        self.dynamodb = session.create_client("dynamodb", region_name=REGION)
        self.sqs = session.create_client("sqs", region_name=REGION)
        for name, logical_id in TABLES.items():
            self.dynamodb.create_table(TableName=logical_id, **stack.table(logical_id))
            self._environ.setdefault(name, logical_id)
        for name, logical_id in QUEUES.items():
            self._environ.setdefault(name, self.sqs.create_queue(QueueName=logical_id)["QueueUrl"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def _close_clients(self) -> None:
        for client in self._clients:
            client.close()

    @property
    def environ(self) -> dict[str, str]:
        """What Lambda gives a function: its own variables, the region, credentials, and where SES is."""
        given = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL_SESV2": self.ses.url, "AWS_LAMBDA_FUNCTION_NAME": "function"}
        every = {**CREDENTIALS, **given, **self._environ}
        return {name: value for name, value in every.items() if value is not None}

    @contextlib.contextmanager
    def as_lambda(self) -> Iterator[None]:
        """The environment of a function, and its output caught."""
        with (
            mock.patch.dict(os.environ, self.environ, clear=True),
            contextlib.redirect_stdout(self.output.stdout),
            contextlib.redirect_stderr(self.output.stderr),
        ):
            yield

    # The functions

    def start(
        self, function: str, worker: str = "", watch: Callable[[botocore.session.Session], None] | None = None
    ) -> Handler:
        """Start a function as in a process of its own and return what Lambda calls."""
        session = self.wire.session(worker)
        if watch is not None:
            watch(session)
        create_client = session.create_client

        def create_and_keep(*args: Any, **kwargs: Any) -> Any:
            client = create_client(*args, **kwargs)
            self._clients.append(client)
            return client

        session.create_client = create_and_keep
        spec = importlib.util.spec_from_file_location(f"app_{function}", FUNCTIONS / function / "app.py")
        if spec is None or spec.loader is None:
            raise LookupError(function)
        module = importlib.util.module_from_spec(spec)
        with self.as_lambda(), mock.patch("pynamodb.connection.base.get_session", return_value=session):
            spec.loader.exec_module(module)
        handler: Handler = module.handler
        return handler

    def invoke(
        self, function: str, event: dict[str, Any], context: LambdaContext | None = None, handler: Handler | None = None
    ) -> Any:
        """Call a function as Lambda does, in a warm process after the first time."""
        if handler is None:
            handler = self._workers.get(function)
        if handler is None:
            handler = self._workers[function] = self.start(function)
        with self.as_lambda():
            answer = handler(json.loads(json.dumps(event)), context or LambdaContext())
        return json.loads(json.dumps(answer))

    # What is in the tables

    def put(self, table: str, items: Iterable[Item]) -> None:
        """Put items as they are, raw."""
        requests = [{"PutRequest": {"Item": {name: _write(value) for name, value in item.items()}}} for item in items]
        for first in range(0, len(requests), 25):
            self.dynamodb.batch_write_item(RequestItems={table: requests[first : first + 25]})

    def seed(self, jobs: Iterable[Item] = (), requesters: Iterable[Item] = (), notices: Iterable[Item] = ()) -> None:
        """Put what a case begins with."""
        self.put("JobsTable", jobs)
        self.put("RequestersTable", requesters)
        self.put("NoticesTable", notices)

    def notices(self) -> list[Item]:
        """Every notice, out of moto's memory: a scan of some hundred items takes it seconds."""
        table = dynamodb_backends[ACCOUNT][REGION].get_table("NoticesTable")
        return [plain(item.to_json()["Attributes"]) for item in table.all_items()]

    def notice(self, job_id: str, outcome: str = "succeeded") -> Item | None:
        """One notice, as stored, or None."""
        key = {"job_id": _write(job_id), "outcome": _write(outcome)}
        item = self.dynamodb.get_item(TableName="NoticesTable", Key=key, ConsistentRead=True).get("Item")
        return plain(item) if item else None

    def change(self, job_id: str, outcome: str = "succeeded", **values: Any) -> None:
        """Change a notice behind the functions' backs, as passing time would."""
        self.put("NoticesTable", [{**(self.notice(job_id, outcome) or {}), **values}])

    # What is on the queues

    def take(self, queue: str) -> list[dict[str, Any]]:
        """Take every message off a queue, named by its variable."""
        taken: list[dict[str, Any]] = []
        url = self.environ[queue]
        while messages := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
        ).get("Messages"):
            for message in messages:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            taken += messages
        return taken

    def mails(self, job_id: str | None = None) -> list[Any]:
        """The messages that SES accepted: all, or those about one job."""
        return [mail for mail in self.ses.mails if job_id in (None, job_of(mail))]


def plain(item: Item) -> Item:
    """An item without DynamoDB's types."""
    return {name: _read(value) for name, value in item.items()}


def typed(item: Item) -> Item:
    """An item with DynamoDB's types."""
    return {name: _write(value) for name, value in item.items()}


def job_of(mail: Any) -> str:
    """The job that a message is about, by its tag."""
    tag = mail.tags["notice_job"]
    return base64.urlsafe_b64decode(tag + "=" * (-len(tag) % 4)).decode()


def sqs_event(*bodies: str, prefix: str = "10000000") -> dict[str, Any]:
    """A batch with these bodies, as SQS hands it to Lambda."""
    return {
        "Records": [
            {
                "messageId": f"{prefix}-0000-4000-8000-{number:012d}",
                "receiptHandle": f"EXAMPLE-receipt-{number}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{REGION}:123456789012:queue",
                "awsRegion": REGION,
            }
            for number, body in enumerate(bodies, 1)
        ]
    }


def job_settled(job_id: str, outcome: str = "succeeded", **fields: Any) -> str:
    """The body of a job.settled event."""
    return json.dumps({"type": "job.settled", "version": "1", "job_id": job_id, "outcome": outcome, **fields})
