"""Claim and outcome with real threads, on stores that race honestly: nothing rests on one emulator, nor on ours."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from explorer.invariants import check_rest
from explorer.process import Process, worker
from fakes.clock import START
from fakes.gate import Gate
from fakes.mail import Accepted, Provider, ses_event
from fakes.queues import Queues
from fakes.real_stores import NotHere, RealStore, dynalite, ministack
from fakes.world import JOB_KEYS, JOBS, NOTICE_KEYS, NOTICES, REQUESTER_KEYS, REQUESTERS, Worker, World
from notices.database import Table
from notices.event import JobSettled
from notices.event import parse as parse_event
from notices.feedback import parse
from notices.jobs import Job
from notices.mail import Answer, Letter, notice_tags
from notices.record import Claim, ClaimContended, Notice, Notices, Result, utc_now
from notices.tell import Told

THREADS = 5
ROUNDS = 4
OUTCOME = "succeeded"
LATER = timedelta(minutes=16)  # when an abandoned claim is due
_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=[ministack, dynalite], ids=["ministack", "dynalite"])
def store(request: pytest.FixtureRequest) -> Iterator[RealStore]:
    try:
        with request.param() as endpoint:
            made = RealStore(endpoint)
            made.create(JOBS, JOB_KEYS)
            made.create(REQUESTERS, REQUESTER_KEYS)
            made.create(NOTICES, NOTICE_KEYS, due=("status", "next_attempt_at"))
            yield made
    except NotHere as why:
        pytest.skip(str(why))


@pytest.fixture
def notices(store: RealStore) -> Notices:
    return Notices(Table(store.connect(), NOTICES, NOTICE_KEYS), now=utc_now, retention=timedelta(days=90))


def a_job() -> Job:
    return Job(f"job-{next(_numbers)}", "workspace_provisioning", "tenant-1", "requester-1")


def at_once(*workers: Callable[[], Any]) -> list[Any]:
    """Let the workers begin at the same moment; return what each returned or raised."""
    barrier = threading.Barrier(len(workers))

    def run(work: Callable[[], Any]) -> Any:
        barrier.wait(10)
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - for the test to look at
            return error

    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(run, workers))


def stored(notices: Notices, job: Job) -> Notice:
    found = notices.get(job.job_id, OUTCOME)
    assert found is not None
    return found


def claimed(notices: Notices, job: Job) -> Claim:
    claim = notices.claim(job, OUTCOME)
    assert isinstance(claim, Claim)
    return claim


def log_of(notice: Notice) -> Sequence[tuple[str, str]]:
    return [(entry.claim_id, entry.result) for entry in notice.attempt_log]


def test_claims_at_once_follow_each_other_and_none_is_lost(notices: Notices) -> None:
    for _ in range(ROUNDS):
        job = a_job()
        results = at_once(*[lambda job=job: notices.claim(job, OUTCOME)] * THREADS)

        won = [result for result in results if isinstance(result, Claim)]
        assert all(isinstance(result, Claim | ClaimContended) for result in results), results
        notice = stored(notices, job)
        assert notice.attempts == len(won), "attempts counts claims"
        assert sorted(claim.attempt for claim in won) == list(range(1, len(won) + 1))
        assert notice.claim_id == max(won, key=lambda claim: claim.attempt).claim_id
        abandoned = sorted(won, key=lambda claim: claim.attempt)[:-1]
        assert log_of(notice) == [(claim.claim_id, "abandoned") for claim in abandoned]


def test_of_the_retrys_events_for_one_revision_one_claims(notices: Notices) -> None:
    for _ in range(ROUNDS):
        job = a_job()
        claimed(notices, job)
        revision = notices.move_on(stored(notices, job))

        results = at_once(*[lambda job=job, at=revision: notices.claim(job, OUTCOME, retry=at)] * THREADS)

        assert Counter(str(result) for result in results if not isinstance(result, Claim)) == {
            "retry_overtaken": THREADS - 1
        }
        assert stored(notices, job).attempts == 2


def test_of_moves_at_once_one_wins(notices: Notices) -> None:
    for _ in range(ROUNDS):
        job = a_job()
        claimed(notices, job)
        read = stored(notices, job)

        results = at_once(*[lambda read=read: notices.move_on(read)] * THREADS)

        assert sorted(results, key=str) == [2, *[None] * (THREADS - 1)]


def test_of_deliveries_at_once_the_first_one_stands_and_each_is_logged(notices: Notices) -> None:
    for _ in range(ROUNDS):
        job = a_job()
        claims = [claimed(notices, job) for _ in range(THREADS)]

        results = at_once(
            *(
                lambda claim=claim: notices.record(claim, Result.delivered(f"message-{claim.attempt}"))
                for claim in claims
            )
        )

        assert Counter(map(str, results)) == {"written": 1, "second_delivery": THREADS - 1}
        notice = stored(notices, job)
        deliveries = [entry for entry in notice.attempt_log if entry.result == "delivered"]
        assert notice.provider_reference == deliveries[0].reference == f"message-{claims[_first(results)].attempt}"
        assert {entry.claim_id for entry in deliveries} == {claim.claim_id for claim in claims}
        assert notice.next_attempt_at is None


def _first(results: Sequence[Any]) -> int:
    return next(place for place, result in enumerate(results) if result == "written")


def test_a_delivery_stands_whatever_failures_and_claims_come_at_the_same_time(notices: Notices) -> None:
    for _ in range(ROUNDS):
        job = a_job()
        first, second = claimed(notices, job), claimed(notices, job)
        later = utc_now() + timedelta(minutes=1)

        at_once(
            lambda first=first: notices.record(first, Result.delivered("message-1")),
            lambda first=first, later=later: notices.record(first, Result.failed("throttled", later)),
            lambda second=second, later=later: notices.record(second, Result.failed("throttled", later)),
            lambda job=job: notices.claim(job, OUTCOME),
            lambda job=job: notices.claim(job, OUTCOME),
        )

        notice = stored(notices, job)
        assert (notice.status, notice.provider_reference) == ("delivered", "message-1")
        assert notice.next_attempt_at is None
        assert notice.error is None


class SharedProvider(Provider):
    """A provider that threads may use."""

    lock = threading.Lock()

    def answer(self, letter: Letter) -> Answer:
        with self.lock:
            return super().answer(letter)


def retried(made: Worker, queues: Queues, job: Job) -> list[Told]:
    """Run the retry, and hand what it queued of this job to a sender."""
    made.run_retry()
    events = [parse_event(message.body) for message in queues.sent]
    return [made.tell(event) for event in events if event.job_id == job.job_id]


def test_senders_the_retry_and_feedback_at_once_leave_one_delivered_notice(store: RealStore, notices: Notices) -> None:
    world = World()
    store.place(REQUESTERS, world.store.items(REQUESTERS)[0])
    for _ in range(ROUNDS):
        job = a_job()
        world.job(job.job_id)
        store.place(JOBS, world.store.item(JOBS, job.job_id))
        provider, queues = SharedProvider(), Queues()
        workers = [worker(Process(name, "sender"), Gate(), store, queues, provider) for name in "ABC"]
        retry = worker(Process("T", "retry", after=utc_now() + LATER - START), Gate(), store, queues, provider)
        dead = claimed(notices, job)  # a sender that was accepted and died
        provider.answer(Letter("dana@example.com", "subject", "text", "html", _tags(job, dead)))
        event = ses_event(Accepted(provider.accepted[0].letter, provider.accepted[0].reference))

        results = at_once(
            *(lambda made=made, job=job: made.tell(JobSettled(job.job_id, OUTCOME)) for made in workers),
            lambda job=job, queues=queues, retry=retry: retried(retry, queues, job),
            lambda made=workers[0], event=event: made.feedback(parse(event)),
        )

        # who found the notice changed at every try is brought back by the queue
        assert not [result for result in results if isinstance(result, Exception) and "tries" not in str(result)]
        for accepted in list(provider.accepted):
            workers[0].feedback(parse(ses_event(accepted)))
        item = store.client._make_api_call(
            "GetItem",
            {
                "TableName": NOTICES,
                "Key": {"job_id": {"S": job.job_id}, "outcome": {"S": OUTCOME}},
                "ConsistentRead": True,
            },
        )["Item"]
        references = [accepted.reference for accepted in provider.accepted]
        check_rest(item, references, told=references)
        logged = [entry for entry in stored(notices, job).attempt_log if entry.result == "delivered"]
        assert sorted(entry.reference for entry in logged) == sorted(references), "each mail is in the log once"


def _tags(job: Job, claim: Claim) -> dict[str, str]:
    return notice_tags(job.job_id, OUTCOME, claim.claim_id)
