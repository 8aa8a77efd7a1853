"""What ``make sam-local`` invokes, and what is right afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from demo.local_aws import LocalStack
from demo.up import JOBS, REQUESTER

TELL, RETRY = "TellRequesterFunction", "RetryDueNoticesFunction"
FEEDBACK, UNTOLD = "RecordFeedbackFunction", "FindUntoldFunction"
DUE = "job-0003"  # its notice failed and is due
UNANNOUNCED = "job-0004"  # it settled and nobody sent its event


@dataclass(frozen=True)
class Invoked:
    """What an invocation answered, and the JSON lines that it logged."""

    answer: Any
    logged: Sequence[Mapping[str, Any]]

    def said(self, message: str, **fields: Any) -> bool:
        """Whether it logged ``message`` with these fields."""
        wanted = {"message": message, **fields}.items()
        return any(all(line.get(name) == value for name, value in wanted) for line in self.logged)

    def counted(self, metric: str) -> float | None:
        """The value of a metric by service alone; None: it was not counted."""
        for line in self.logged:
            if metric in line and "_aws" in line and "kind" not in line:
                value = line[metric]
                return float(sum(value) if isinstance(value, list) else value)
        return None


@dataclass(frozen=True)
class Case:
    """One invocation; `right` gives what is not as expected."""

    function: str
    event: str
    shows: str
    right: Callable[[LocalStack, Invoked], Sequence[str]]


def seed(stack: LocalStack) -> None:
    """Put there the jobs of the ready events, one whose notice is due, and one that nobody announced."""
    stack.table("RequestersTableName").put_item(Item=REQUESTER)
    now = datetime.now(UTC)
    more: list[dict[str, Any]] = [{**JOBS[0], "job_id": DUE}]
    more += [
        {
            **JOBS[0],
            "job_id": UNANNOUNCED,
            "outcome": "succeeded",
            "settled_at": (now - timedelta(hours=2)).isoformat(timespec="seconds"),
        }
    ]
    for job in (*JOBS, *more):
        stack.table("JobsTableName").put_item(Item=job)
    stack.table("NoticesTableName").put_item(
        Item={
            "job_id": DUE,
            "outcome": "succeeded",
            "status": "failed",
            "kind": JOBS[0]["kind"],
            "tenant_id": REQUESTER["tenant_id"],
            "requester_id": REQUESTER["requester_id"],
            "attempts": 1,
            "claim_id": "c1a10000-0000-4000-8000-000000000003",
            "claimed_at": _stored(now - timedelta(minutes=5)),
            "created_at": _stored(now - timedelta(minutes=5)),
            "handled_at": _stored(now - timedelta(minutes=5)),
            "next_attempt_at": _stored(now - timedelta(minutes=1)),
            "error": "throttled",
            "attempt_log": [],
            "revision": 2,
            "expires_at": int((now + timedelta(days=90)).timestamp()),
        }
    )


def _stored(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f+0000")


def _two_are_told(stack: LocalStack, invoked: Invoked) -> list[str]:
    faults = _all_taken(invoked)
    for job_id, outcome in (("job-0001", "succeeded"), ("job-0002", "failed")):
        notice = _notice(stack, job_id, outcome)
        if notice.get("status") != "delivered" or not notice.get("provider_reference"):
            faults.append(f"the notice of {job_id} should be delivered: {notice}")
    return faults


def _nobody_is_told_again(stack: LocalStack, invoked: Invoked) -> list[str]:
    faults = _all_taken(invoked)
    if (counted := invoked.counted("NoticeAlreadyHandled")) != 3:
        faults.append(f"NoticeAlreadyHandled should be 3, not {counted}")
    if (attempts := _notice(stack, "job-0001").get("attempts")) != 1:
        faults.append(f"job-0001 should have had one attempt, not {attempts}")
    return faults


def _one_is_parked(stack: LocalStack, invoked: Invoked) -> list[str]:
    parked = stack.client("sqs").receive_message(
        QueueUrl=stack.outputs["JobSettledDeadLetterQueueUrl"], MessageAttributeNames=["All"], VisibilityTimeout=0
    )
    reasons = [message["MessageAttributes"]["reason"]["StringValue"] for message in parked.get("Messages", [])]
    return _all_taken(invoked) + ([] if reasons == ["not_json"] else [f"not_json should be parked, not {reasons}"])


def _feedback_is(kept: str) -> Callable[[LocalStack, Invoked], Sequence[str]]:
    def right(stack: LocalStack, invoked: Invoked) -> Sequence[str]:
        feedback = _notice(stack, "job-0001").get("feedback", {}).get("type")
        faults = _all_taken(invoked)
        if feedback != kept:
            faults.append(f"feedback should be {kept}, not {feedback}")
        return faults

    return right


def _the_due_one_is_queued(stack: LocalStack, invoked: Invoked) -> list[str]:
    notice = _notice(stack, DUE)
    received = stack.client("sqs").receive_message(QueueUrl=stack.outputs["JobSettledQueueUrl"])
    bodies = [json.loads(message["Body"]) for message in received.get("Messages", [])]
    events = [(body["job_id"], body["retry"]) for body in bodies]
    faults = [] if events == [(DUE, notice["revision"])] else [f"the event of {DUE} should be queued, not {events}"]
    if notice["next_attempt_at"] <= _stored(datetime.now(UTC)):
        faults.append(f"{DUE} should have been moved on: {notice['next_attempt_at']}")
    if not invoked.counted("OldestUnsettledSeconds"):
        faults.append("OldestUnsettledSeconds was not counted")
    return faults


def _the_unannounced_one_is_found(_stack: LocalStack, invoked: Invoked) -> list[str]:
    found = invoked.said("settled but untold", state="without a notice", job_ids=[UNANNOUNCED])
    return [] if found else [f"{UNANNOUNCED} should be found: {[dict(line) for line in invoked.logged]}"]


def _all_taken(invoked: Invoked) -> list[str]:
    right: dict[str, list[str]] = {"batchItemFailures": []}
    return [] if invoked.answer == right else [f"the answer should be {right}, not {invoked.answer}"]


def _notice(stack: LocalStack, job_id: str, outcome: str = "succeeded") -> dict[str, Any]:
    key = {"job_id": job_id, "outcome": outcome}
    found: dict[str, Any] = stack.table("NoticesTableName").get_item(Key=key, ConsistentRead=True).get("Item", {})
    return found


CASES = [
    Case(TELL, "job-settled.json", "two requesters are told", _two_are_told),
    Case(TELL, "job-settled-wrapped.json", "the same events, wrapped: nobody is told again", _nobody_is_told_again),
    Case(TELL, "job-settled-malformed.json", "one that was cut off is parked", _one_is_parked),
    Case(FEEDBACK, "ses-send.json", "SES says: sent", _feedback_is("send")),
    Case(FEEDBACK, "ses-delivery.json", "arrived", _feedback_is("delivery")),
    Case(FEEDBACK, "ses-bounce-permanent.json", "bounced", _feedback_is("permanent_bounce")),
    Case(FEEDBACK, "ses-complaint.json", "complained about", _feedback_is("complaint")),
    Case(RETRY, "schedule.json", "what is due goes back to the queue", _the_due_one_is_queued),
    Case(UNTOLD, "schedule.json", "a job that nobody announced is found", _the_unannounced_one_is_found),
]
