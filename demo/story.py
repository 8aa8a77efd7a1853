"""The demo's story, told to the real queue, functions and tables of the local stack."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from boto3.dynamodb.conditions import Key  # type: ignore[import-untyped]

from demo.cast import (
    AGAIN,
    ANSWER_LOST,
    BOUNCED,
    LOST_ANSWER,
    MALFORMED,
    PAUSED,
    REQUESTERS,
    ROWS,
    UNANNOUNCED,
    UNVERIFIED,
    WHILE_PAUSED,
    Row,
)
from demo.local_aws import LocalAwsError, LocalStack
from demo.mail_front import Fault, SentMail

PATIENCE_SECONDS = 60.0
POKE_SECONDS = 3.0
TELL, RETRY, UNTOLD = "TellRequesterFunctionName", "RetryDueNoticesFunctionName", "FindUntoldFunctionName"


@dataclass(frozen=True)
class Seen:
    """What became of a row, read from the notices table, the logs and the dead-letter queue."""

    result: str
    why: str = ""
    attempts: int | None = None
    mails: Sequence[SentMail] = ()
    feedback: str | None = None


class Story:
    """Plays the cast's parts. `says` hears each step."""

    def __init__(self, stack: LocalStack, *, production: bool, says: Callable[[str], None]) -> None:
        self._stack = stack
        self._production = production
        self._says = says
        self._notices = stack.table("NoticesTableName")

    def play(self) -> list[tuple[Row, Seen]]:
        """Play it all and return what became of each row.

        Raises:
            LocalAwsError: something that had to happen did not.
        """
        self._seed()
        self._says("a first event, while the sender is not verified" if self._production else "a first event")
        self._stack.unverify_sender()
        self._announce(UNVERIFIED)
        self._until(lambda: self._status(UNVERIFIED) in ("failed", "suppressed"), "the first notice")
        self._stack.verify_sender()

        faults = "; one answer of SES is lost, and for one reader sending is paused" if self._production else ""
        self._says(f"jobs settle{faults}")
        self._stack.mail.fail_with(Fault.ANSWER_LOST, LOST_ANSWER, times=1)
        self._stack.mail.fail_with(Fault.PAUSED, WHILE_PAUSED)
        for row in ROWS:
            if row.announced and row is not UNVERIFIED:
                self._announce(row)
        self._stack.send_event('{"type":"job.settled","job_id":"job-10')
        announced = [row for row in ROWS if row.announced]
        self._until(lambda: all(self._line(row) for row in announced) and bool(self._parked()), "the events")

        self._says("two events come again")
        self._announce(AGAIN)
        self._announce(UNVERIFIED)
        self._until(
            lambda: all(len(self._lines(row)) >= 2 for row in (AGAIN, UNVERIFIED)), "the events that came again"
        )

        self._stack.mail.recover()
        if self._production:
            self._says("SES reports: the message whose answer was lost, and a bounce")
            self._stack.send_feedback(self._mails(ANSWER_LOST)[0], "Send")
            bounce = {"bounceType": "Permanent", "bounceSubType": "General"}
            self._stack.send_feedback(self._mails(BOUNCED)[0], "Bounce", bounce)
            self._until(lambda: self._status(ANSWER_LOST) == "delivered", "the lost answer")
            self._until(lambda: bool(self._notice(BOUNCED).get("feedback")), "the bounce")

            self._says("sending goes on; the retry brings back what failed (its minute is shortened)")
            self._bring_forward(PAUSED)
            self._stack.invoke(RETRY)
            self._until(lambda: self._status(PAUSED) == "delivered", "the retry")

        self._says("the hourly check looks for settled jobs that nobody announced")
        self._stack.invoke(UNTOLD)
        self._until(lambda: bool(self._untold()), "the check")
        return [(row, self._seen(row)) for row in ROWS]

    # -- what the platform does ---------------------------------------------------------------------------------

    def _seed(self) -> None:
        jobs, requesters = self._stack.table("JobsTableName"), self._stack.table("RequestersTableName")
        settled = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
        for requester in REQUESTERS:
            requesters.put_item(Item=requester)
        for row in ROWS:
            if row.stored:
                jobs.put_item(Item=_job(row, settled))

    def _announce(self, row: Row) -> None:
        settled_at = datetime.now(UTC).isoformat(timespec="seconds")
        event = {
            "type": "job.settled",
            "version": "1",
            "job_id": row.job_id,
            "outcome": row.outcome,
            "settled_at": settled_at,
        }
        self._stack.send_event(event)

    def _bring_forward(self, row: Row) -> None:
        self._notices.update_item(
            Key={"job_id": row.job_id, "outcome": row.outcome},
            UpdateExpression="SET next_attempt_at = :now",
            ExpressionAttributeValues={":now": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")},
        )

    # -- what can be seen ---------------------------------------------------------------------------------------

    def _seen(self, row: Row) -> Seen:
        mails = self._mails(row)
        if row is MALFORMED:
            return Seen("parked", next(iter(self._parked()), ""))
        if row is UNANNOUNCED:
            return Seen("untold", "without a notice") if row.job_id in self._untold() else Seen("not found")
        notice = self._notice(row)
        if notice:
            return Seen(
                result=notice["status"],
                why=notice.get("error", ""),
                attempts=int(notice["attempts"]),
                mails=mails,
                feedback=notice.get("feedback", {}).get("type"),
            )
        line = self._line(row) or {}
        return Seen(line.get("result", "nothing"), line.get("reason", ""), mails=mails)

    def _notice(self, row: Row) -> dict[str, Any]:
        found = self._notices.query(
            KeyConditionExpression=Key("job_id").eq(row.job_id) & Key("outcome").eq(row.outcome), ConsistentRead=True
        )
        items: list[dict[str, Any]] = found["Items"]
        return items[0] if items else {}

    def _status(self, row: Row) -> str | None:
        return self._notice(row).get("status")

    def _mails(self, row: Row) -> list[SentMail]:
        return [mail for mail in self._stack.sent_mails() if row.job_id in mail.text]

    def _logged(self, function: str) -> list[dict[str, Any]]:
        texts = "\n".join(self._stack.logs(function)).splitlines()
        return [json.loads(text) for text in texts if text.startswith("{")]

    def _lines(self, row: Row) -> list[dict[str, Any]]:
        return [
            line
            for line in self._logged(TELL)
            if line.get("message") == "record handled" and line.get("job_id") == row.job_id
        ]

    def _line(self, row: Row) -> dict[str, Any] | None:
        return next(iter(self._lines(row)), None)

    def _untold(self) -> list[str]:
        return [
            job_id
            for line in self._logged(UNTOLD)
            if line.get("message") == "settled but untold" and line.get("state") == "without a notice"
            for job_id in line["job_ids"]
        ]

    def _parked(self) -> list[str]:
        """The reasons of what is on the dead-letter queue; looking takes nothing off it."""
        answer = self._stack.client("sqs").receive_message(
            QueueUrl=self._stack.outputs["JobSettledDeadLetterQueueUrl"],
            MessageAttributeNames=["reason"],
            MaxNumberOfMessages=10,
            VisibilityTimeout=0,
        )
        return [message["MessageAttributes"]["reason"]["StringValue"] for message in answer.get("Messages", [])]

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        poke = time.monotonic() + POKE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise LocalAwsError(f"after {PATIENCE_SECONDS:.0f} seconds still waiting for {what}")
            if time.monotonic() > poke:
                # ministack shows late lines of a worker at its next invocation
                self._stack.invoke(TELL, {"Records": []})
                poke = time.monotonic() + POKE_SECONDS
            time.sleep(0.25)


def _job(row: Row, settled_at: str) -> dict[str, Any]:
    job: dict[str, Any] = {
        "job_id": row.job_id,
        "kind": row.kind,
        "tenant_id": "acme",
        "details": {**row.details, "finished_at": settled_at},
        "outcome": row.outcome,
        "settled_at": settled_at,
        **row.job,
    }
    if row.requester_id is not None:
        job["requester_id"] = row.requester_id
    return job
