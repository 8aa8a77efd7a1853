"""The real stack on the local AWS: what becomes of a notice whose worker is killed in the middle of a send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from demo.local_aws import LocalStack
from demo.mail_front import Fault

TELL, RETRY = "TellRequesterFunctionName", "RetryDueNoticesFunctionName"


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack("production") as stack:
        stack.table("RequestersTableName").put_item(
            Item={"requester_id": "dana", "tenant_id": "acme", "email": "dana@example.com", "audience": "customer"}
        )
        yield stack


def seed(stack: LocalStack, job_id: str) -> dict[str, str]:
    job = {"job_id": job_id, "kind": "workspace_provisioning", "tenant_id": "acme", "requester_id": "dana"}
    stack.table("JobsTableName").put_item(Item=job)
    return {"type": "job.settled", "job_id": job_id, "outcome": "succeeded"}


def notice(stack: LocalStack, job_id: str) -> dict[str, Any]:
    key = {"job_id": job_id, "outcome": "succeeded"}
    found: dict[str, Any] = stack.table("NoticesTableName").get_item(Key=key, ConsistentRead=True).get("Item", {})
    return found


def until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.1)


def mails_for(stack: LocalStack, job_id: str) -> int:
    return sum(job_id in mail.text for mail in stack.sent_mails())


def kill_in_the_middle_of_a_send(stack: LocalStack, job_id: str) -> None:
    stack.mail.fail_with(Fault.ANSWER_LATE, times=1)
    stack.send_event(seed(stack, job_id))
    until(lambda: mails_for(stack, job_id) == 1, "the mail")
    assert stack.kill_workers(TELL) > 0
    assert notice(stack, job_id)["status"] == "pending"


def visible_again_after(stack: LocalStack, seconds: int) -> None:
    """Twelve minutes in production, which no test should wait for."""
    stack.client("sqs").set_queue_attributes(
        QueueUrl=stack.outputs["JobSettledQueueUrl"], Attributes={"VisibilityTimeout": str(seconds)}
    )


def test_redelivery_settles_a_notice_whose_worker_was_killed_at_the_price_of_a_second_mail(stack: LocalStack) -> None:
    visible_again_after(stack, 3)

    kill_in_the_middle_of_a_send(stack, "job-killed-1")

    until(lambda: notice(stack, "job-killed-1")["status"] == "delivered", "the redelivery")
    settled = notice(stack, "job-killed-1")
    results = [entry["result"] for entry in settled["attempt_log"]]
    assert results[0] == "abandoned"
    assert set(results) == {"abandoned", "delivered"}
    assert "next_attempt_at" not in settled
    assert mails_for(stack, "job-killed-1") >= 2  # more, where the machine is slower than the visibility


def test_ses_own_event_settles_a_notice_whose_worker_was_killed_without_a_second_mail(stack: LocalStack) -> None:
    visible_again_after(stack, 30)
    kill_in_the_middle_of_a_send(stack, "job-killed-2")

    stack.send_feedback(stack.sent_mails()[-1], "Send")

    until(lambda: notice(stack, "job-killed-2")["status"] == "delivered", "the feedback")
    assert mails_for(stack, "job-killed-2") == 1


def test_the_retry_settles_a_notice_whose_message_is_lost_too(stack: LocalStack) -> None:
    visible_again_after(stack, 30)
    kill_in_the_middle_of_a_send(stack, "job-killed-3")
    stack.client("sqs").purge_queue(QueueUrl=stack.outputs["JobSettledQueueUrl"])

    # its fifteen minutes are shortened
    stack.table("NoticesTableName").update_item(
        Key={"job_id": "job-killed-3", "outcome": "succeeded"},
        UpdateExpression="SET next_attempt_at = :now",
        ExpressionAttributeValues={":now": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")},
    )
    stack.invoke(RETRY)

    until(lambda: notice(stack, "job-killed-3")["status"] == "delivered", "the retry")
