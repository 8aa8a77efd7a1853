"""A small world: the tables, the queues, the mail provider and the clock, and workers that run the real code in it."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

from fakes.clock import Clock
from fakes.context import FakeContext
from fakes.gate import Gate
from fakes.mail import FakeMail, Provider, ses_event
from fakes.queues import DEAD_LETTERS_URL, QUEUE_URL, FakeSqs, Queues
from fakes.store import Store
from fakes.telemetry import FakeTelemetry
from notices.backoff import Backoff
from notices.batch import Batch, in_order
from notices.database import Table
from notices.event import JobSettled
from notices.feedback import RecordFeedback
from notices.jobs import JOB_KEYS, REQUESTER_KEYS, Job, Jobs, Requesters
from notices.kinds import Catalogue, load_catalogue
from notices.lookups import ReadTogether
from notices.message import BaseUrls
from notices.queues import DeadLetters, JobSettledQueue
from notices.receive import ReceiveJobSettled
from notices.receive_feedback import ReceiveFeedback
from notices.record import NOTICE_KEYS, Notice, Notices
from notices.retry import Due, RetryDueNotices, Run
from notices.tell import Tell, Told

JOBS, REQUESTERS, NOTICES = "Jobs", "Requesters", "Notices"
KIND = "workspace_provisioning"
RETENTION = timedelta(days=90)
JOB_ID, OUTCOME = "job-1", "succeeded"
JOB = Job(JOB_ID, KIND, "tenant-1", "requester-1", {"workspace_id": "ws-1", "workspace_name": "Blue"})
DUE_PROJECTS = ("created_at", "revision")  # as template.yaml has it


@cache
def catalogue() -> Catalogue:
    """Return the one kind of the small world, read once, whatever else ships."""
    shipped = load_catalogue()
    return Catalogue({KIND: shipped.kinds[KIND]})


@dataclass(slots=True)
class World:
    """What workers share, with one job and its requester in it."""

    production: bool = True
    lease: timedelta = timedelta(0)
    horizon: timedelta = timedelta(hours=72)
    page: int = 100
    pool: Executor | None = None  # where workers handle records side by side; None: one call at a time
    clock: Clock = field(default_factory=Clock)
    store: Store = field(default_factory=Store)
    telemetry: FakeTelemetry = field(default_factory=FakeTelemetry)
    provider: Provider = field(default_factory=Provider)
    queues: Queues = field(default_factory=Queues)
    claim_ids: Callable[[], str] = field(default_factory=lambda: _numbered("claim"))

    def __post_init__(self) -> None:
        self.store.create(JOBS, JOB_KEYS)
        self.store.create(REQUESTERS, REQUESTER_KEYS)
        self.store.create(NOTICES, NOTICE_KEYS, projected={"due": DUE_PROJECTS}, due=("status", "next_attempt_at"))
        self.job()
        self.requester()

    def job(self, job_id: str = JOB_ID, **changes: Any) -> None:
        """Put a job; None takes an attribute away."""
        facts = {"workspace_id": "ws-1", "workspace_name": "Blue"}
        item = {"kind": KIND, "tenant_id": "tenant-1", "requester_id": "requester-1", "details": facts}
        self.store.place(JOBS, _wire({"job_id": job_id, **item, **changes}))

    def requester(self, requester_id: str = "requester-1", **changes: Any) -> None:
        """Put a requester; None takes an attribute away."""
        item = {"tenant_id": "tenant-1", "email": "dana@example.com", "name": "Dana"}
        self.store.place(REQUESTERS, _wire({"requester_id": requester_id, **item, **changes}))

    def worker(self, gate: Gate | None = None) -> Worker:
        """Return a worker with clients of its own."""
        return Worker(self, gate or Gate())

    def notice(self, job_id: str = JOB_ID, outcome: str = OUTCOME) -> Notice | None:
        """Return a notice as it is stored, without a call."""
        item = self.store.item(NOTICES, job_id, outcome)
        return Notice.from_raw_data(dict(item)) if item is not None else None

    def the_notice(self, job_id: str = JOB_ID, outcome: str = OUTCOME) -> Notice:
        """Return a notice that has to be there."""
        notice = self.notice(job_id, outcome)
        assert notice is not None, f"no notice of {job_id}, {outcome}"
        return notice

    def quiesce(self, *bodies: str, feedback: bool = True) -> None:
        """Let everything that repairs do its work: redelivery, SES's events, the retry, until nothing is left to do.

        `bodies` are the messages that came back to the queue.
        """
        waiting, told = list(bodies), 0
        for _ in range(400):
            waiting += [message.body for message in self.queues.sent]
            self.queues.sent.clear()
            waiting = [body for body in waiting if self.worker().handle(body)]
            while feedback and told < len(self.provider.accepted):
                assert self.worker().handle_feedback(ses_event(self.provider.accepted[told])) == []
                told += 1
            if not waiting and not any("next_attempt_at" in item for item in self.store.items(NOTICES)):
                return
            self.clock.advance(timedelta(minutes=16))
            self.worker().run_retry()
        raise AssertionError("it never comes to rest")


class Inline(Executor):
    """A pool of no threads: what is submitted is done at once, so that a worker makes one call at a time."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as a pool does
            done.set_exception(error)
        return done


class Worker:
    """The real code with its calls going through one gate: a process that a test can stop, or kill, at any of them."""

    def __init__(self, world: World, gate: Gate) -> None:
        self.world = world
        self.gate = gate
        connection = world.store.connect(gate)
        sqs = FakeSqs(world.queues, gate)
        self.mail = FakeMail(world.provider, gate)
        self.notices_table = Table(connection, NOTICES, NOTICE_KEYS)
        self.notices = Notices(
            self.notices_table,
            now=world.clock,
            retention=RETENTION,
            claim_lease=world.lease,
            new_claim_id=world.claim_ids,
            sleep=lambda _seconds: None,
        )
        jobs = Table(connection, JOBS, JOB_KEYS)
        requesters = Table(connection, REQUESTERS, REQUESTER_KEYS)
        self.tell = Tell(
            kinds=catalogue(),
            jobs=Jobs(jobs),
            requesters=Requesters(requesters),
            notices=self.notices,
            mail=self.mail,
            base_urls=BaseUrls(staff="https://hq.example.com", customer="https://app.example.com"),
            sends_mail=world.production,
            backoff=Backoff(timedelta(seconds=600), random.Random(1).random),
            telemetry=world.telemetry,
            now=world.clock,
        )
        self.retry = RetryDueNotices(
            due=Due(self.notices_table, world.clock, world.page),
            notices=self.notices,
            queue=JobSettledQueue(sqs, QUEUE_URL),
            horizon=world.horizon,
            telemetry=world.telemetry,
            now=world.clock,
        )
        self.feedback = RecordFeedback(self.notices, world.telemetry, world.clock)
        self.receive = ReceiveJobSettled(
            self.tell,
            ReadTogether(connection, jobs, requesters, self.notices_table, world.telemetry),
            world.pool or Inline(),
            DeadLetters(sqs, DEAD_LETTERS_URL),
            world.telemetry,
        )
        self.receive_feedback = ReceiveFeedback(self.feedback, world.telemetry)

    def told(self, job_id: str = JOB_ID, outcome: str = OUTCOME, **event: Any) -> Told:
        """Tell of a job, without a queue."""
        return self.tell(JobSettled(job_id, outcome, **event))

    def handle(self, *bodies: str, context: FakeContext | None = None) -> list[str]:
        """Hand a batch to the function and return the ids that it reports, `message-1` being the first."""
        batch = Batch(self.receive, worst_case=60, telemetry=self.world.telemetry, pool=self.world.pool)
        return _reported(batch(sqs_event(*bodies), context or FakeContext()))

    def handle_feedback(self, *bodies: str) -> list[str]:
        """Likewise for SES events."""
        batch = Batch(in_order(self.receive_feedback), worst_case=60, telemetry=self.world.telemetry)
        return _reported(batch(sqs_event(*bodies), FakeContext()))

    def run_retry(self, seconds_left: float = 600) -> Run:
        """Run the schedule once."""
        return self.retry(lambda: seconds_left)


def settled(job_id: str = JOB_ID, outcome: str = OUTCOME, **fields: Any) -> str:
    """Return the body of a job.settled event."""
    return json.dumps({"type": "job.settled", "version": "1", "job_id": job_id, "outcome": outcome, **fields})


def sqs_event(*bodies: str) -> dict[str, Any]:
    """Return a batch as Lambda hands it over."""
    return {
        "Records": [
            {"messageId": f"message-{number}", "body": body, "eventSource": "aws:sqs"}
            for number, body in enumerate(bodies, 1)
        ]
    }


def _reported(answer: Mapping[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def _wire(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _typed(each) for name, each in value.items() if each is not None}


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float):
        return {"N": str(value)}
    if isinstance(value, Mapping):
        return {"M": _wire(value)}
    if isinstance(value, list):
        return {"L": [_typed(each) for each in value]}
    return {"S": value}


def _numbered(prefix: str) -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"{prefix}-{next(numbers)}"
