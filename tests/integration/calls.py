"""What each function asks of AWS: to be held against the policies of template.yaml."""

from __future__ import annotations

import json
from functools import cache
from typing import NamedTuple

from cases import book, wire
from cases.run import ses_event
from cases.stage import Stage, job_settled, sqs_event
from cases.wire import Call, Wire

INDEX = "settled"
"""The platform's index that the untold check asks, by the name that the test's parameter gives it."""


class Use(NamedTuple):
    """An IAM action and what it is done to: logical ids, `<table>/index/<name>`, or for mail the identity too."""

    action: str
    resource: str


@cache
def observed() -> dict[str, frozenset[Use]]:
    """The uses of every function, by its folder's name, over events that lead it everywhere it goes."""
    return {
        "tell_requester": _tell_requester(),
        "retry_due_notices": _retry_due_notices(),
        "record_feedback": _record_feedback(),
        "find_untold": _find_untold("index") | _find_untold("scan"),
    }


def _tell_requester() -> frozenset[Use]:
    with Stage() as stage:
        _seed(stage)
        # told, told already, nobody asked, of no use
        events = [job_settled("job-0001"), job_settled("job-0001"), job_settled("job-none"), "{"]
        stage.invoke("tell_requester", sqs_event(*events))
        # brought back by the retry: told, and closed since the job is gone
        for job_id in ("job-0002", "job-gone"):
            _fail(stage, job_id)
            stage.invoke("tell_requester", sqs_event(job_settled(job_id, retry=2)))
        # the outcome's notice is gone; a claim is refused by an item that DynamoDB does not send along
        stage.wire.on("UpdateItem", wire.error("ConditionalCheckFailedException"), times=1)
        stage.invoke("tell_requester", sqs_event(job_settled("job-0003")))
        # what cannot be read together is read alone
        stage.wire.on("BatchGetItem", wire.error("AccessDeniedException"), times=1)
        stage.invoke("tell_requester", sqs_event(job_settled("job-0004")))
        return _uses(stage.wire)


def _retry_due_notices() -> frozenset[Use]:
    with Stage() as stage:
        past, long_past = ("2020-01-01T00:00:00.000000+0000", "2019-01-01T00:00:00.000000+0000")
        _fail(stage, "job-0001", next_attempt_at=past)
        _fail(stage, "job-0002", next_attempt_at=past, created_at=long_past)
        stage.invoke("retry_due_notices", book.sample("schedule.json"))
        return _uses(stage.wire)


def _record_feedback() -> frozenset[Use]:
    with Stage() as stage:
        _fail(stage, "job-0001")
        for name in ("send", "bounce-permanent", "complaint", "not-ours-without-tags"):
            event = book.sample(f"ses-eventbridge/{name}.json")
            for record in event["Records"]:
                if name.startswith("not-ours"):
                    continue
                record["body"] = ses_event(record["body"], "claim", f"message-{name}")
            stage.invoke("record_feedback", event)
        return _uses(stage.wire)


def _find_untold(check: str) -> frozenset[Use]:
    with Stage({"UNTOLD_CHECK": check, "SETTLED_JOBS_INDEX": INDEX}) as stage:
        _index_the_jobs(stage)
        _seed(stage)
        stage.invoke("find_untold", book.sample("schedule.json"))
        return _uses(stage.wire)


def _index_the_jobs(stage: Stage) -> None:
    keys = {"kind": "HASH", "settled_at": "RANGE"}
    stage.dynamodb.update_table(
        TableName="JobsTable",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("job_id", *keys)],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": INDEX,
                    "KeySchema": [{"AttributeName": name, "KeyType": role} for name, role in keys.items()],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )


def _seed(stage: Stage) -> None:
    settled_at = f"{book.real_now().replace(microsecond=0) - book.HOUR:%Y-%m-%dT%H:%M:%SZ}"
    job = {
        "kind": "workspace_provisioning", "tenant_id": "t", "requester_id": "req", "details": {},
        "outcome": "succeeded", "settled_at": settled_at,
    }  # fmt: skip
    stage.seed(
        jobs=[{"job_id": f"job-{number:04d}", **job} for number in (1, 2, 3, 4)],
        requesters=[{"requester_id": "req", "tenant_id": "t", "email": "dana@example.com"}],
    )


def _fail(stage: Stage, job_id: str, **more: str) -> None:
    then = f"{book.real_now():%Y-%m-%dT%H:%M:%S.%f}+0000"
    notice = {
        "job_id": job_id, "outcome": "succeeded", "status": "failed", "kind": "workspace_provisioning",
        "attempts": 1, "claim_id": "claim", "claimed_at": then, "created_at": then, "handled_at": then,
        "error": "throttled", "next_attempt_at": then, "attempt_log": [], "revision": 2, "expires_at": 9_999_999_999,
    }  # fmt: skip
    stage.seed(notices=[notice | more])


# IAM knows a batch by the action for one, and SES v2 by the name of SES.
_ACTIONS = {"sqs:SendMessageBatch": "sqs:SendMessage", "sesv2:SendEmail": "ses:SendEmail"}


def _uses(watched: Wire) -> frozenset[Use]:
    return frozenset(use for call in watched.calls for use in _of(call))


def _of(call: Call) -> list[Use]:
    action = f"{call.service}:{call.operation}"
    action = _ACTIONS.get(action, action)
    if call.service == "sesv2":
        resources = ["SesIdentity", "MailConfigurationSet"]
        assert "ConfigurationSetName" in call.payload, json.dumps(call.payload)
    else:
        resources = [name.rpartition("/")[2] if "://" in name else name for name in call.resources]
    return [Use(action, resource) for resource in resources]
