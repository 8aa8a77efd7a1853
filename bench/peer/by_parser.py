"""The event through Powertools' parser."""

from __future__ import annotations

from typing import Literal

from aws_lambda_powertools.utilities.parser import BaseModel
from aws_lambda_powertools.utilities.parser.models import SqsRecordModel
from aws_lambda_powertools.utilities.parser.types import Json


class JobSettled(BaseModel):
    type: Literal["job.settled"]
    job_id: str
    outcome: Literal["succeeded", "failed"]


class Record(SqsRecordModel):
    body: Json[JobSettled]


RECORD = Record


def read(record: Record) -> tuple[str, dict[str, str]]:
    return record.messageId, {"job_id": record.body.job_id, "outcome": record.body.outcome}
