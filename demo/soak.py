"""``make soak``: many notices through the whole stack while everything that can go wrong does, then a report.

The demo's local AWS, SES answers lost and refused, workers killed in the middle of their work, events that come twice,
and SES's own events about what it accepted. Where production would wait (the queue's visibility, the backoff, the
fifteen minutes of an abandoned claim), the wait is shortened; nothing else is. It judges by the tables and by what the
mail front took, never by logs.

Exit status: 0 when every requester was told and every mail too many has a reason that DESIGN 2 states, 1 when not,
2 when the local AWS failed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from demo.local_aws import LocalAwsError, LocalStack
from demo.mail_front import Fault
from demo.ses_rules import mail_event
from demo.soak_report import TIME, Report, report
from scripts.template import ROOT

FOLDER = ROOT / "build" / "soak"
TELL, RETRY = "TellRequesterFunctionName", "RetryDueNoticesFunctionName"
QUEUES = ("JobSettledQueueUrl", "FeedbackQueueUrl")
KINDS_OF_FAULT = {  # and how often each, of a hundred
    Fault.ANSWER_LOST: 45,
    Fault.THROTTLED: 35,
    Fault.QUOTA: 10,
    Fault.PAUSED: 8,
    Fault.ANSWER_LATE: 2,  # it holds a thread for the ten seconds of its time-out
}
BATCH = 10

# What production waits for, and how long it is here.
VISIBILITY_SECONDS = 30  # 720: a message that a killed worker had comes back
BACKOFF = timedelta(seconds=3)  # a minute and more: a failed notice is tried again
GRACE = timedelta(seconds=12)  # 600 seconds: SES's event about an unknown send has the time to come
QUEUED = timedelta(seconds=60)  # 15 minutes: a retry's event that was not handled is sent again
ABANDONED = timedelta(seconds=60)  # 15 minutes: a claim whose worker never came back is taken up


@dataclass(frozen=True)
class Plan:
    """How much of what."""

    notices: int = 2000
    faults: float = 0.10  # share of the sends
    duplicates: float = 0.20  # share of the events that come twice
    lost_events: float = 0.05  # share of SES's events that never come
    kill_every: float = 20.0  # seconds, at least: the next mail after that is the sign to kill
    minutes: float = 10.0  # the most it may take
    seed: int = 0


@dataclass
class Soak:
    """One soak on a stack that is up."""

    stack: LocalStack
    plan: Plan
    sent_at: dict[str, datetime] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    unsettled: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.plan.seed)  # noqa: S311 - a soak is to be repeatable, not secret
        self._chance = random.Random(self.plan.seed + 1)  # noqa: S311 - asked by the mail front's threads
        self._fed = 0
        self._brought_at: dict[str, datetime] = {}
        self._later: deque[tuple[float, dict[str, Any]]] = deque()

    def run(self, says: Callable[[Soak], None]) -> Report:
        """Send, disturb, repair until all is settled or the time is up; then judge."""
        deadline = time.monotonic() + self.plan.minutes * 60
        self._shorten()
        jobs = [f"soak-{number:05}" for number in range(self.plan.notices)]
        self._seed(jobs)
        self.stack.mail.fail_sometimes(self._fault)
        sender = threading.Thread(target=self._send_all, args=(jobs,), daemon=True)
        sender.start()
        killed_at, mails = time.monotonic(), 0
        while time.monotonic() < deadline:
            time.sleep(1)
            self._feed_back()
            if time.monotonic() - killed_at > self.plan.kill_every and self._fed > mails:
                killed_at = time.monotonic()
                self.done["workers killed"] += self.stack.kill_workers(TELL)
            mails = self._fed
            self._bring_forward()
            says(self)
            if not sender.is_alive() and self._at_rest():
                break
        self.stack.mail.recover()
        return self.report()

    def report(self) -> Report:
        """Judge what there is by now."""
        return report(self.sent_at, _all_items(self.stack.table("NoticesTableName")), self.stack.sent_mails())

    # -- what goes wrong

    def _fault(self) -> Fault | None:
        if self._chance.random() >= self.plan.faults:
            self.faults["none"] += 1
            return None
        fault = self._chance.choices(list(KINDS_OF_FAULT), list(KINDS_OF_FAULT.values()))[0]
        self.faults[fault.name] += 1
        return fault

    # -- what comes in

    def _shorten(self) -> None:
        for queue in QUEUES:
            self.stack.client("sqs").set_queue_attributes(
                QueueUrl=self.stack.outputs[queue], Attributes={"VisibilityTimeout": str(VISIBILITY_SECONDS)}
            )

    def _seed(self, jobs: Sequence[str]) -> None:
        people = [f"person-{number:03}" for number in range(100)]
        with self.stack.table("RequestersTableName").batch_writer() as batch:
            for person in people:
                address = f"{person}@example.com"
                batch.put_item(Item={"requester_id": person, "tenant_id": "acme", "email": address, "name": "Dana"})
        with self.stack.table("JobsTableName").batch_writer() as batch:
            for job_id in jobs:
                details = {"workspace_id": f"ws-{job_id}", "workspace_name": "Research"}
                item = {"job_id": job_id, "kind": "workspace_provisioning", "tenant_id": "acme", "details": details}
                batch.put_item(Item={**item, "requester_id": self._random.choice(people)})

    def _send_all(self, jobs: Sequence[str]) -> None:
        """Every job's event once, and for a share of them once more, soon after or much later."""
        events = [(number + 0.0, job_id) for number, job_id in enumerate(jobs)]
        for number, job_id in enumerate(jobs):
            if self._random.random() < self.plan.duplicates:
                self.done["events that came twice"] += 1
                events.append((number + self._random.choice((0.5, 20, 400)), job_id))
        for batch in _batches([job_id for _, job_id in sorted(events)]):
            for job_id in batch:
                self.sent_at.setdefault(job_id, datetime.now(UTC))
            bodies = [{"type": "job.settled", "job_id": job_id, "outcome": "succeeded"} for job_id in batch]
            self._put("JobSettledQueueUrl", bodies)
            self.done["events"] += len(batch)

    # -- what repairs

    def _feed_back(self) -> None:
        """SES's events about what it accepted: most within seconds, some late, a few never."""
        mails, now = self.stack.sent_mails(), time.monotonic()
        for mail in mails[self._fed :]:
            for event_type in ("Send", "Delivery"):
                if self._random.random() < self.plan.lost_events:
                    self.done["SES events lost"] += 1
                else:
                    self._later.append((now + self._random.choice((0, 1, 2, 8)), mail_event(mail, event_type)))
        self._fed = len(mails)
        ready = [event for at, event in self._later if at <= now]
        self._later = deque(entry for entry in self._later if entry[0] > now)
        for batch in _batches(ready):
            self._put("FeedbackQueueUrl", batch)
        self.done["SES events"] += len(ready)

    def _bring_forward(self) -> None:
        """Let the retry take up what it would take up later, and run it."""
        brought, self.unsettled = 0, 0
        now = datetime.now(UTC)
        for notice in self._unhandled():
            self.unsettled += 1
            touched_at = _touched_at(notice)
            brought_at = self._brought_at.get(notice["job_id"], touched_at)
            # its event may still be in the queue, and the next one would make that void
            patience = QUEUED if brought_at > touched_at else _wait(notice)
            if now > max(brought_at, touched_at) + patience and self._make_due(notice, now):
                self._brought_at[notice["job_id"]] = now
                brought += 1
        if brought:
            self.done["brought forward"] += brought
            self.stack.invoke(RETRY)

    def _unhandled(self) -> Iterator[Mapping[str, Any]]:
        table = self.stack.table("NoticesTableName")
        for status in ("pending", "failed"):
            query: dict[str, Any] = {
                "IndexName": "due",
                "KeyConditionExpression": "#s = :s",
                "ExpressionAttributeNames": {"#s": "status"},
                "ExpressionAttributeValues": {":s": status},
            }
            for item in _pages(table.query, query):
                key = {"job_id": item["job_id"], "outcome": item["outcome"]}
                notice = table.get_item(Key=key, ConsistentRead=True).get("Item", {})
                if "next_attempt_at" in notice:
                    yield notice

    def _make_due(self, notice: Mapping[str, Any], now: datetime) -> int:
        try:
            self.stack.table("NoticesTableName").update_item(
                Key={"job_id": notice["job_id"], "outcome": notice["outcome"]},
                UpdateExpression="SET next_attempt_at = :now",
                ConditionExpression="revision = :revision AND next_attempt_at > :now",
                ExpressionAttributeValues={":now": now.strftime(TIME), ":revision": notice["revision"]},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return 0  # somebody was faster
        return 1

    def _at_rest(self) -> bool:
        return not self.unsettled and not self._later and not any(self._waiting(queue) for queue in QUEUES)

    # -- SQS

    def _put(self, queue: str, bodies: Sequence[Mapping[str, Any]]) -> None:
        entries = [{"Id": str(number), "MessageBody": json.dumps(body)} for number, body in enumerate(bodies)]
        answer = self.stack.client("sqs").send_message_batch(QueueUrl=self.stack.outputs[queue], Entries=entries)
        if answer.get("Failed"):
            raise LocalAwsError(f"{queue} refused {answer['Failed']}")

    def _waiting(self, queue: str) -> int:
        """How many messages a queue holds, those under way included."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.stack.client("sqs").get_queue_attributes(QueueUrl=self.stack.outputs[queue], AttributeNames=names)[
            "Attributes"
        ]
        return sum(int(found[name]) for name in names)


def _touched_at(notice: Mapping[str, Any]) -> datetime:
    """When a notice was last claimed or tried."""
    return datetime.strptime(notice.get("handled_at") or notice["claimed_at"], TIME)


def _wait(notice: Mapping[str, Any]) -> timedelta:
    if notice["status"] == "pending":
        return ABANDONED
    return GRACE if str(notice.get("error")).startswith("provider_unknown") else BACKOFF


def _batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


def _pages(read: Any, query: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    start: dict[str, Any] = {}
    while True:
        answer = read(**query, **start)
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _all_items(table: Any) -> list[Mapping[str, Any]]:
    return list(_pages(table.scan, {"ConsistentRead": True}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a soak and return its exit status."""
    plan = _plan(arguments)
    started = time.monotonic()
    shown = 0.0

    def says(soak: Soak) -> None:
        nonlocal shown
        if time.monotonic() - shown >= 10:
            shown = time.monotonic()
            mails = len(soak.stack.sent_mails())
            print(
                f"{shown - started:5.0f} s  {soak.done['events']} events sent, {mails} mails, "
                f"{soak.unsettled} notices unsettled, {soak.done['workers killed']} workers killed",
                flush=True,
            )

    print(f"seed {plan.seed}: {plan.notices} notices, at most {plan.minutes:g} minutes", flush=True)
    try:
        with LocalStack("production", progress=lambda step: print(step, flush=True)) as stack:
            soak = Soak(stack, plan)
            judged = soak.run(says)
    except LocalAwsError as error:
        print(f"the local AWS failed: {error}")
        return 2
    seconds = time.monotonic() - started
    FOLDER.mkdir(parents=True, exist_ok=True)
    everything = {
        "plan": asdict(plan),
        "seconds": round(seconds),
        "done": soak.done,
        "sends": soak.faults,
        **judged.as_json(),
    }
    (FOLDER / "report.json").write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")
    print("\n".join(_told(everything)))
    return 0 if judged.clean else 1


def _plan(arguments: Sequence[str] | None) -> Plan:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    usual = Plan()
    parser.add_argument("--notices", type=int, default=usual.notices)
    parser.add_argument("--minutes", type=float, default=usual.minutes)
    parser.add_argument("--faults", type=float, default=usual.faults)
    parser.add_argument("--duplicates", type=float, default=usual.duplicates)
    parser.add_argument("--lost-events", type=float, default=usual.lost_events)
    parser.add_argument("--kill-every", type=float, default=usual.kill_every)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    return Plan(**vars(parser.parse_args(arguments)))


def _told(everything: Mapping[str, Any]) -> Iterator[str]:
    """The report for a reader."""
    yield ""
    for title in ("done", "sends", "by_status", "attempts", "results", "mails_per_notice", "extra_mails", "feedback"):
        yield f"{title.replace('_', ' ')}:"
        yield from (f"  {count:6}  {name}" for name, count in everything[title].items())
    for since in ("event", "claim"):
        yield f"seconds to settle, from the first {since}:"
        yield from (f"  {seconds:6}  {name}" for name, seconds in everything[f"seconds_from_{since}"].items())
    for title in ("unsettled", "undelivered", "unexplained"):
        if everything[title]:
            yield f"{title}: {', '.join(everything[title][:20])}"
    verdict = "clean" if everything["clean"] else "NOT clean"
    yield f"{verdict}: {everything['notices']} notices, {everything['mails']} mails, {everything['seconds']} seconds"


if __name__ == "__main__":
    sys.exit(main())
