"""``make up``: the local AWS in the foreground, with what to type to send an event and to look at its notice."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time

from demo.local_aws import LocalAwsError, LocalStack
from demo.mail_front import REGION, SentMail
from demo.ministack import is_free
from scripts.build import BUILD, BuildError

MAILS = BUILD / "mails"
USUAL_PORT = 4566

REQUESTER = {
    "requester_id": "dana",
    "tenant_id": "acme",
    "email": "dana@example.com",
    "name": "Dana",
    "audience": "customer",
}
# The jobs of events/job-settled.json.
JOBS = [
    {
        "job_id": "job-0001",
        "kind": "workspace_provisioning",
        "tenant_id": "acme",
        "requester_id": "dana",
        "details": {"workspace_id": "ws-0001", "workspace_name": "Research"},
    },
    {
        "job_id": "job-0002",
        "kind": "workspace_provisioning",
        "tenant_id": "acme",
        "requester_id": "dana",
        "details": {"workspace_id": "ws-0002", "failure_reason": "The region has no free capacity."},
    },
]
EVENT = {"type": "job.settled", "job_id": "job-0001", "outcome": "succeeded"}


def main() -> int:
    """Run until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="make up", description="A local AWS with the stack on it.")
    parser.add_argument("--environment", default="production", help="the template's Environment")
    parser.add_argument("--port", type=int, help=f"default: {USUAL_PORT} where it is free, else any other")
    parser.add_argument(
        "--bind", default="127.0.0.1", help="the address to listen on; a container needs 0.0.0.0 on Linux"
    )
    options = parser.parse_args()
    port = options.port or (USUAL_PORT if is_free(USUAL_PORT) else None)
    try:
        with LocalStack(
            options.environment, port=port, bind=options.bind, progress=lambda step: print(f"· {step}")
        ) as stack:
            stack.table("RequestersTableName").put_item(Item=REQUESTER)
            for job in JOBS:
                stack.table("JobsTableName").put_item(Item=job)
            print(_help(stack, options.environment), flush=True)
            shown = 0
            while True:
                mails = stack.sent_mails()
                for number, mail in enumerate(mails[shown:], start=shown + 1):
                    _show(number, mail)
                shown = len(mails)
                time.sleep(0.2)
    except KeyboardInterrupt:
        print("\nended")
    except (LocalAwsError, BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _help(stack: LocalStack, environment: str) -> str:
    aws = f"aws --endpoint-url {stack.endpoint}"
    queue, table = stack.outputs["JobSettledQueueUrl"], stack.outputs["NoticesTableName"]
    parked = stack.outputs["JobSettledDeadLetterQueueUrl"]
    key = {"job_id": {"S": EVENT["job_id"]}, "outcome": {"S": EVENT["outcome"]}}
    return f"""
The stack is up at {stack.endpoint}, with two jobs (job-0001, job-0002) and their requester. Environment: {environment}.
In another terminal:

  export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION={REGION}
  export AWS_ENDPOINT_URL={stack.endpoint}

send an event
  {aws} sqs send-message --queue-url {queue} \\
    --message-body {shlex.quote(json.dumps(EVENT))}

ask what became of it, as an operator does (docs/cli.md)
  .venv/bin/notices explain {EVENT["job_id"]}

look at its notice
  {aws} dynamodb get-item --table-name {table} \\
    --key {shlex.quote(json.dumps(key))}

look at what was parked
  {aws} sqs receive-message --queue-url {parked} \\
    --visibility-timeout 0 --message-attribute-names All

read the log of the function that tells
  {aws} logs filter-log-events --log-group-name {stack.log_group("TellRequesterFunctionName")} \\
    --query 'events[].[message]' --output text

add jobs and requesters (their fields: docs/DESIGN.md, 3.2)
  {aws} dynamodb put-item --table-name {stack.outputs["JobsTableName"]} --item ...
  {aws} dynamodb put-item --table-name {stack.outputs["RequestersTableName"]} --item ...

Mail that is sent shows here. Ctrl-C ends it all.
"""


def _show(number: int, mail: SentMail) -> None:
    MAILS.mkdir(parents=True, exist_ok=True)
    page = MAILS / f"{number:04}.html"
    page.write_text(mail.html, encoding="utf-8")
    print(f"mail to {mail.recipient}: {mail.subject}\n  {page}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
