"""The event by hand, without pydantic."""

from __future__ import annotations

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

RECORD = None


def read(record: SQSRecord) -> tuple[str, dict[str, str]]:
    event = record.json_body
    if event["type"] != "job.settled" or event["outcome"] not in ("succeeded", "failed"):
        raise ValueError("not a job.settled event")
    return record.message_id, {"job_id": event["job_id"], "outcome": event["outcome"]}
