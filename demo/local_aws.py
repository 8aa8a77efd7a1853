"""A local AWS with our template deployed on it, for the demo, for ``make up`` and for tests.

    with LocalStack(environment="production") as stack:
        stack.client("sqs").send_message(QueueUrl=stack.outputs["JobSettledQueueUrl"], MessageBody=...)

ministack plays AWS in a process of its own, bound to this machine alone. It expands the template, runs the functions
as Lambda workers with their layers, and honours queues, redrive, partial batch responses and schedules. Sends go
through ``mail_front``. All that was started is ended on the way out, also by an error, Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from demo.mail_front import MailFront, SentMail
from scripts.build import BUILD, artefacts, build
from scripts.template import ROOT, load

REGION = "eu-west-1"
ACCOUNT = "000000000000"
STACK_NAME = "requester-notices"
SENDING_DOMAIN = "example.com"
BUCKET = "artefacts"
MINISTACK = ROOT / ".venv" / "ministack" / "bin" / "ministack"

PARAMETERS = {
    "NoticeFromAddress": f"Example Platform <notices@{SENDING_DOMAIN}>",
    "SesIdentity": SENDING_DOMAIN,
    "HqBaseUrl": "https://hq.example.com",
    "CustomerBaseUrl": "https://app.example.com",
    "Architecture": "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64",
}


class LocalAwsError(RuntimeError):
    """The local AWS did not do what was asked; the message says what, and where its log is."""


class LocalStack:
    """A context manager: inside it the stack is deployed and its functions run."""

    def __init__(
        self,
        environment: str = "production",
        parameters: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        progress: Callable[[str], None] = lambda _step: None,
    ) -> None:
        """``parameters`` are the template's, over the ones above; ``port`` is a free one unless given."""
        self.parameters = {**PARAMETERS, "Environment": environment, **(parameters or {})}
        self.port = port or _free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.log = BUILD / f"ministack-{self.port}.log"
        self.outputs: dict[str, str] = {}
        self.mail = MailFront(self.endpoint)
        self._progress = progress
        self._exit = ExitStack()

    def __enter__(self) -> LocalStack:
        with ExitStack() as undo:
            undo.enter_context(_ends_on_sigterm())
            undo.enter_context(_without_the_users_aws())
            self._progress("building the functions and layers")
            built = build()
            self._progress("starting a local AWS")
            mail_endpoint = self.mail.start()
            undo.callback(self.mail.stop)
            undo.enter_context(_ministack(self.port, mail_endpoint, self.log))
            self.verify_sender()
            self._progress("deploying template.yaml")
            self._deploy(self._upload(built))
            self._exit = undo.pop_all()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exit.__exit__(exception_type, exception, traceback)

    def client(self, service: str) -> Any:
        """A boto3 client of the local AWS."""
        # A new one each time, from a session of its own: clients may be made on several threads.
        return _session().client(service, endpoint_url=self.endpoint, config=_CONFIG)

    def table(self, output: str) -> Any:
        """The boto3 table of an output, such as ``NoticesTableName``."""
        resource = _session().resource("dynamodb", endpoint_url=self.endpoint, config=_CONFIG)
        return resource.Table(self.outputs[output])

    def sent_mails(self) -> list[SentMail]:
        """Every message that SES accepted, in order; ``stack.mail`` can also make sends fail."""
        return self.mail.sent

    def verify_sender(self, identity: str = SENDING_DOMAIN) -> None:
        """Make ``identity`` one from which SES sends."""
        self.client("sesv2").create_email_identity(EmailIdentity=identity)

    def unverify_sender(self, identity: str = SENDING_DOMAIN) -> None:
        """Make SES refuse to send from ``identity``."""
        self.client("sesv2").delete_email_identity(EmailIdentity=identity)

    def send_event(self, event: Mapping[str, Any] | str) -> str:
        """Put a ``job.settled`` event, or whatever text, on the queue; the message id."""
        body = event if isinstance(event, str) else json.dumps(event)
        answer = self.client("sqs").send_message(QueueUrl=self.outputs["JobSettledQueueUrl"], MessageBody=body)
        return str(answer["MessageId"])

    def send_feedback(self, mail: SentMail, event_type: str, details: Mapping[str, Any] | None = None) -> str:
        """Have SES report on ``mail``: put its event on the feedback queue, as EventBridge would; the message id.

        ministack's SES emits none, and nobody may publish as ``aws.ses``. Only what the deployed rule would pass is
        put on the queue.
        """
        event = mail_event(mail, event_type, details)
        rule = self.client("cloudformation").describe_stack_resource(
            StackName=STACK_NAME, LogicalResourceId="MailEventsRule"
        )["StackResourceDetail"]["PhysicalResourceId"]
        events = self.client("events")
        pattern = events.describe_rule(Name=rule.rpartition("/")[2])["EventPattern"]
        if not events.test_event_pattern(EventPattern=pattern, Event=json.dumps(event))["Result"]:
            raise LocalAwsError(f"the rule {rule} would not pass this event: {json.dumps(event)}")
        answer = self.client("sqs").send_message(
            QueueUrl=self.outputs["FeedbackQueueUrl"], MessageBody=json.dumps(event)
        )
        return str(answer["MessageId"])

    def invoke(self, output: str, event: Mapping[str, Any] | None = None) -> Any:
        """Invoke the function of an output, such as ``RetryDueNoticesFunctionName``, and wait; its answer."""
        answer = self.client("lambda").invoke(
            FunctionName=self.outputs[output], Payload=json.dumps(event or {}).encode()
        )
        payload = answer["Payload"].read().decode()
        if "FunctionError" in answer:
            raise LocalAwsError(f"{output} failed: {payload}")
        return json.loads(payload)

    def logs(self, output: str) -> list[str]:
        """What the function of an output has logged, in order."""
        group = self.client("lambda").get_function_configuration(FunctionName=self.outputs[output])
        events = self.client("logs").get_paginator("filter_log_events")
        try:
            pages = list(events.paginate(logGroupName=group["LoggingConfig"]["LogGroup"]))
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return []
            raise
        entries = [entry for page in pages for entry in page["events"]]
        return [entry["message"] for entry in sorted(entries, key=lambda entry: int(entry["timestamp"]))]

    def _upload(self, built: Mapping[str, Path]) -> str:
        """Put the artefacts and the template that names them in S3; the template's URL."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        template = load()
        for artefact in artefacts():
            key = f"{artefact.logical_id}.zip"
            s3.put_object(Bucket=BUCKET, Key=key, Body=_zipped(built[artefact.logical_id]))
            template["Resources"][artefact.logical_id]["Properties"][artefact.uri] = f"s3://{BUCKET}/{key}"
        s3.put_object(Bucket=BUCKET, Key="template.json", Body=json.dumps(template).encode())
        return f"{self.endpoint}/{BUCKET}/template.json"

    def _deploy(self, template_url: str) -> None:
        cloudformation = self.client("cloudformation")
        cloudformation.create_stack(
            StackName=STACK_NAME,
            TemplateURL=template_url,
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in self.parameters.items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
        deadline = time.monotonic() + 60
        while True:
            stack = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"][0]
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                break
            if time.monotonic() > deadline:
                raise LocalAwsError(f"the stack is still {stack['StackStatus']} after a minute; see {self.log}")
            time.sleep(0.2)
        if stack["StackStatus"] != "CREATE_COMPLETE":
            events = cloudformation.describe_stack_events(StackName=STACK_NAME)["StackEvents"]
            reasons = [
                f"  {event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}"
                for event in reversed(events)
                if event["ResourceStatus"].endswith("_FAILED")
            ]
            raise LocalAwsError("\n".join([f"the stack is {stack['StackStatus']}; see {self.log}", *reasons]))
        self.outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        self._mend_concurrency()

    def _mend_concurrency(self) -> None:
        """ministack keeps the number that comes from a parameter as text, which its own poller then cannot compare."""
        functions = self.client("lambda")
        for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
            if limit := mapping.get("ScalingConfig", {}).get("MaximumConcurrency"):
                functions.update_event_source_mapping(
                    UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(limit)}
                )


def mail_event(mail: SentMail, event_type: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The event that SES publishes about ``mail``; ``event_type`` and ``details`` are its own, as in
    ``"Bounce", {"bounceType": "Permanent", "bounceSubType": "General"}``."""
    detail_type, part = _MAIL_EVENTS[event_type]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    tags = {**mail.tags, "ses:operation": "SendEmail", "ses:configuration-set": mail.configuration_set}
    return {
        "version": "0",
        "id": mail.message_id,
        "detail-type": detail_type,
        "source": "aws.ses",
        "account": ACCOUNT,
        "time": now,
        "region": REGION,
        "resources": [f"arn:aws:ses:{REGION}:{ACCOUNT}:configuration-set/{mail.configuration_set}"],
        "detail": {
            "eventType": event_type,
            "mail": {
                "timestamp": mail.sent_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "source": mail.sender,
                "sendingAccountId": ACCOUNT,
                "messageId": mail.message_id,
                "destination": [mail.recipient],
                "tags": {name: [value] for name, value in tags.items()},
            },
            part: {**({} if event_type == "Send" else {"timestamp": now}), **(details or {})},
        },
    }


_MAIL_EVENTS = {
    "Send": ("Email Sent", "send"),
    "Delivery": ("Email Delivered", "delivery"),
    "DeliveryDelay": ("Email Delivery Delayed", "deliveryDelay"),
    "Bounce": ("Email Bounced", "bounce"),
    "Complaint": ("Email Complaint Received", "complaint"),
    "Reject": ("Email Rejected", "reject"),
    "Rendering Failure": ("Email Rendering Failed", "failure"),
}

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=120,
    proxies={},
    retries={"total_max_attempts": 2, "mode": "standard"},
    s3={"addressing_style": "path"},
)


def _session() -> Any:
    return boto3.session.Session(
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106 - it opens nothing
        region_name=REGION,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _zipped(folder: Path) -> bytes:
    """A zip of ``folder``, not compressed: every new worker unpacks it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(folder))
    return archive.getvalue()


@contextmanager
def _ends_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exit that unwinds, where this may be done and nobody else has."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _without_the_users_aws() -> Iterator[None]:
    """Hide the user's own AWS settings from this process: nothing here may reach a real account."""
    saved = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("AWS_")}
    nowhere = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    os.environ.update(nowhere)
    try:
        yield
    finally:
        for name in nowhere:
            os.environ.pop(name, None)
        os.environ.update(saved)


@contextmanager
def _ministack(port: int, mail_endpoint: str, log_path: Path) -> Iterator[None]:
    """ministack on ``port``; its functions reach SES at ``mail_endpoint``, and all else in ministack."""
    if not MINISTACK.exists():
        raise LocalAwsError(f"{MINISTACK} is not there: run make setup")
    scratch = Path(tempfile.mkdtemp(prefix="requester-notices-"))
    log_path.parent.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        # What follows reaches the functions, since workers inherit ministack's environment.
        "AWS_ENDPOINT_URL_SESV2": mail_endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [str(MINISTACK)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that Ctrl-C comes to us alone, and its workers can be ended with it
        )
    try:
        _wait_until_ready(process, port, log_path)
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        _end_group(process.pid)
        process.wait()
        shutil.rmtree(scratch, ignore_errors=True)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log_path: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise LocalAwsError(f"ministack ended with {process.returncode}; see {log_path}")
        try:
            with opener.open(f"http://127.0.0.1:{port}/_ministack/ready", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise LocalAwsError(f"ministack is not ready after 30 s; see {log_path}")


def _end_group(group: int) -> None:
    """End what ministack has left of its own: it leads a process group, in which its workers are."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
