"""The same work as a good engineer would otherwise write it: what the function is compared with.

boto3 clients made once, Powertools' batch utility, its idempotency utility for "once", its parser for the event, and
Jinja2 templates compiled at start; one record after the other. It has the short time-outs and the single attempt per
send that anybody would set who has read about them. It promises less than the function: a send without an answer is
lost or repeated, and nobody retries for three days.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from boto3.dynamodb.types import TypeDeserializer
from botocore.config import Config
from jinja2 import Environment, FileSystemLoader, StrictUndefined

# The parser is pydantic, which many do without: PEER_PARSER=off shows what that alone is worth.
events = importlib.import_module("by_hand" if os.environ.get("PEER_PARSER") == "off" else "by_parser")

logger = Logger(service="peer")
metrics = Metrics(namespace="Peer", service="peer")

session = boto3.Session()
dynamodb = session.client(
    "dynamodb",
    config=Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 2, "mode": "standard"}),
)
ses = session.client("sesv2", config=Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1}))

environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=lambda name: bool(name and ".html" in name),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates = {
    (outcome, part): environment.get_template(f"{outcome}.{part}.j2")
    for outcome in ("succeeded", "failed")
    for part in ("subject", "text", "html")
}

processor = BatchProcessor(event_type=EventType.SQS, model=events.RECORD, raise_on_entire_batch_failure=False)
config = IdempotencyConfig(event_key_jmespath="[job_id, outcome]", expires_after_seconds=90 * 24 * 3600)
store = DynamoDBPersistenceLayer(table_name=os.environ["NOTICES_TABLE"], key_attr="job_id", boto3_client=dynamodb)
deserialize = TypeDeserializer().deserialize


def find(table: str, **key: str) -> dict[str, Any]:
    answer = dynamodb.get_item(
        TableName=os.environ[table], Key={name: {"S": value} for name, value in key.items()}, ConsistentRead=True
    )
    return {name: deserialize(value) for name, value in answer["Item"].items()}


@idempotent_function(data_keyword_argument="event", config=config, persistence_store=store)
def tell(*, event: dict[str, str]) -> dict[str, str]:
    job = find("JOBS_TABLE", job_id=event["job_id"])
    requester = find("REQUESTERS_TABLE", requester_id=job["requester_id"])
    staff = requester.get("audience") == "staff"
    if not staff and requester["tenant_id"] != job["tenant_id"]:
        raise PermissionError("the requester is of another tenant")
    base = os.environ["HQ_BASE_URL" if staff else "CUSTOMER_BASE_URL"]
    values = {
        "name": requester.get("name"),
        "job_id": job["job_id"],
        "details": job["details"],
        "url": f"{base}/workspaces/{quote(job['details']['workspace_id'], safe='')}",
    }
    subject, text, html = (templates[event["outcome"], part].render(values) for part in ("subject", "text", "html"))
    answer = ses.send_email(
        FromEmailAddress=os.environ["NOTICE_FROM_ADDRESS"],
        Destination={"ToAddresses": [requester["email"]]},
        Content={
            "Simple": {
                "Subject": {"Data": subject.strip(), "Charset": "UTF-8"},
                "Body": {"Text": {"Data": text, "Charset": "UTF-8"}, "Html": {"Data": html, "Charset": "UTF-8"}},
            }
        },
        ConfigurationSetName=os.environ["MAIL_CONFIGURATION_SET"],
    )
    metrics.add_metric("NoticeDelivered", MetricUnit.Count, 1)
    return {"message_id": answer["MessageId"]}


def handle(record: Any) -> None:
    message_id, event = events.read(record)
    told = tell(event=event)
    logger.info("record handled", extra={"message_id": message_id, **event, **told})


@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> Any:
    config.register_lambda_context(context)
    return process_partial_response(event=event, record_handler=handle, processor=processor, context=context)
