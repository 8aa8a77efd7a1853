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
import signal
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from demo.mail_front import REGION, ROOT_KEY, MailFront, Refusal, SentMail
from demo.ministack import LocalAwsError, ends_on_sigterm, free_port, running, without_the_users_aws
from demo.ses_rules import mail_event, pause_refusal, policy_refusal
from scripts.build import BUILD, artefacts, build
from scripts.template import load

__all__ = ["LocalAwsError", "LocalStack"]

STACK_NAME = "requester-notices"
SENDING_DOMAIN = "example.com"
BUCKET = "artefacts"

PARAMETERS = {
    "NoticeFromAddress": f"Example Platform <notices@{SENDING_DOMAIN}>",
    "SesIdentity": SENDING_DOMAIN,
    "HqBaseUrl": "https://hq.example.com",
    "CustomerBaseUrl": "https://app.example.com",
    "Architecture": "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64",
}


class LocalStack:
    """A context manager: inside it the stack is deployed and its functions run."""

    def __init__(
        self,
        environment: str = "production",
        parameters: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        bind: str = "127.0.0.1",
        progress: Callable[[str], None] = lambda _step: None,
    ) -> None:
        """``parameters`` are the template's, over the ones above; ``port`` is a free one unless given.

        ``bind`` is the address it listens on: this machine alone, unless a container has to reach it.
        """
        self.parameters = {**PARAMETERS, "Environment": environment, **(parameters or {})}
        self.port = port or free_port()
        self._bind = bind
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.log = BUILD / f"ministack-{self.port}.log"
        self.scratch = Path()  # where ministack keeps its workers' code
        self.outputs: dict[str, str] = {}
        self.mail = MailFront(self.endpoint, self._mail_refusal)
        self._progress = progress
        self._exit = ExitStack()
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> LocalStack:
        with ExitStack() as undo:
            undo.enter_context(ends_on_sigterm())
            undo.enter_context(without_the_users_aws())
            self._progress("building the functions and layers")
            built = build()
            self._progress("starting a local AWS")
            mail_endpoint = self.mail.start()
            undo.callback(self.mail.stop)
            self.scratch = undo.enter_context(running(self._bind, self.port, mail_endpoint, self.log))
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
        """The boto3 client of the local AWS; any thread may use it."""
        with self._lock:  # which does not hold for making one
            if service not in self._clients:
                self._clients[service] = _session().client(service, endpoint_url=self.endpoint, config=_CONFIG)
            return self._clients[service]

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

    def kill_workers(self, output: str) -> int:
        """Kill (SIGKILL) the workers of the function of an output, in whatever they are doing; how many there were."""
        listing = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,args="], check=True, capture_output=True, text=True
        ).stdout
        ours = f"{self.scratch}/ministack-lambda-{self.outputs[output]}-"
        pids = [int(line.split()[0]) for line in listing.splitlines() if ours in line]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)

    def log_group(self, output: str) -> str:
        """The log group of the function of an output."""
        function = self.client("lambda").get_function_configuration(FunctionName=self.outputs[output])
        return str(function["LoggingConfig"]["LogGroup"])

    def logs(self, output: str) -> list[str]:
        """What the function of an output has logged, in order."""
        events = self.client("logs").get_paginator("filter_log_events")
        try:
            pages = list(events.paginate(logGroupName=self.log_group(output)))
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return []
            raise
        entries = [entry for page in pages for entry in page["events"]]
        return [entry["message"] for entry in sorted(entries, key=lambda entry: int(entry["timestamp"]))]

    def _mail_refusal(self, request: Mapping[str, Any]) -> Refusal | None:
        """Why AWS would refuse this send: its configuration set is missing or off, or the policy does not allow it."""
        name = request.get("ConfigurationSetName", "")
        try:
            configuration_set = self.client("sesv2").get_configuration_set(ConfigurationSetName=name)
        except ClientError:
            return Refusal(404, "NotFoundException", f"Configuration set <{name}> does not exist.")
        if paused := pause_refusal(configuration_set):
            return paused
        function = self.client("lambda").get_function_configuration(
            FunctionName=self.outputs["TellRequesterFunctionName"]
        )
        iam, role = self.client("iam"), function["Role"].rpartition("/")[2]
        documents = [
            iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
            for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]
        ]
        statements = [statement for document in documents for statement in document["Statement"]]
        return policy_refusal(request, statements)

    def _upload(self, built: Mapping[str, Path]) -> str:
        """Put the artefacts and the template that names them in S3; the template's URL."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        template = self._for_ministack(load())
        for artefact in artefacts():
            key = f"{artefact.logical_id}.zip"
            s3.put_object(Bucket=BUCKET, Key=key, Body=_zipped(built[artefact.logical_id]))
            template["Resources"][artefact.logical_id]["Properties"][artefact.uri] = f"s3://{BUCKET}/{key}"
        s3.put_object(Bucket=BUCKET, Key="template.json", Body=json.dumps(template).encode())
        return f"{self.endpoint}/{BUCKET}/template.json"

    def _for_ministack(self, template: dict[str, Any]) -> dict[str, Any]:
        """The template with what ministack wants otherwise."""
        template["Globals"]["Function"]["Environment"]["Variables"]["AWS_ENDPOINT_URL"] = self.endpoint
        concurrency = (
            self.parameters.get("MaximumConcurrency") or (template["Parameters"]["MaximumConcurrency"]["Default"])
        )
        for resource in template["Resources"].values():
            for event in resource["Properties"].get("Events", {}).values():
                if "ScalingConfig" in event["Properties"]:
                    # It keeps a number that comes from a parameter as text, and its own poller cannot compare that.
                    event["Properties"]["ScalingConfig"] = {"MaximumConcurrency": int(concurrency)}
            if resource["Type"] == "AWS::IAM::Role":
                for policy in resource["Properties"]["Policies"]:
                    for statement in policy["PolicyDocument"]["Statement"]:
                        # AWS asks sqs:SendMessage for a batch too, and knows no other action for it.
                        if statement.get("Action") == "sqs:SendMessage":
                            statement["Action"] = ["sqs:SendMessage", "sqs:SendMessageBatch"]
        return template

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
        self._let_notices_expire()
        self._start_functions()

    def _let_notices_expire(self) -> None:
        """As the template has it: ministack's CloudFormation leaves a table's time to live out."""
        declared = load()["Resources"]["NoticesTable"]["Properties"]["TimeToLiveSpecification"]
        self.client("dynamodb").update_time_to_live(
            TableName=self.outputs["NoticesTableName"], TimeToLiveSpecification=declared
        )

    def _start_functions(self) -> None:
        """Have the queues' functions start once: one that cannot would hide its messages for their visibility time."""
        for name in ("TellRequesterFunctionName", "RecordFeedbackFunctionName"):
            self.invoke(name, {"Records": []})


_CONFIG = Config(
    connect_timeout=5,
    read_timeout=120,
    proxies={},
    retries={"total_max_attempts": 2, "mode": "standard"},
    s3={"addressing_style": "path"},
)


def _session() -> Any:
    return boto3.session.Session(
        aws_access_key_id=ROOT_KEY,
        aws_secret_access_key="test",  # noqa: S106 - it opens nothing
        region_name=REGION,
    )


def _zipped(folder: Path) -> bytes:
    """A zip of ``folder``, not compressed: every new worker unpacks it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(folder))
    return archive.getvalue()
