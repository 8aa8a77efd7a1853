"""The races again, with batches whose records go side by side on a real pool, and the requesters beside the claims."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from fakes.clock import Clock
from fakes.gate import Gate, Lever, ReplyLost, raising
from fakes.mail import SEND_EMAIL, THROTTLED, UNKNOWN
from fakes.store import read_timeout, refusal
from fakes.world import World, settled
from notices.record import Status

JOBS = [f"job-{number}" for number in range(10)]


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(11) as pool:
        world = World(clock=Clock(tick=timedelta(microseconds=1)), pool=pool)
        for job_id in JOBS:
            world.job(job_id)
        yield world


def told(world: World) -> dict[str, int]:
    """How many mails went out for each job."""
    jobs = [accepted.letter.tags["notice_job"] for accepted in world.provider.accepted]
    return {job: jobs.count(job) for job in jobs}


def assert_all_told(world: World, jobs: list[str] = JOBS) -> None:
    """The invariants of notices at rest (DESIGN 2), and no mail that the log does not know."""
    references: set[str] = set()
    for job_id in jobs:
        notice = world.the_notice(job_id)
        assert notice.status == Status.DELIVERED, f"{job_id} is told"
        assert notice.next_attempt_at is None
        logged = {entry.reference for entry in notice.attempt_log if entry.reference}
        assert notice.provider_reference in logged
        references |= logged
    assert {accepted.reference for accepted in world.provider.accepted} == references


def test_a_batch_of_ten_sends_each_notice_once(world: World) -> None:
    assert world.worker().handle(*map(settled, JOBS)) == []
    assert_all_told(world)
    assert set(told(world).values()) == {1}
    assert world.telemetry.total("NoticeDelivered") == len(JOBS)


def test_repeats_within_a_batch_go_one_after_the_other_and_send_once(world: World) -> None:
    batch = [settled(job_id) for job_id in JOBS[:3]] * 3
    assert world.worker().handle(*batch) == []
    assert_all_told(world, JOBS[:3])
    assert set(told(world).values()) == {1}


@pytest.mark.parametrize("operation", ["BatchGetItem", "PutItem", "UpdateItem"])
@pytest.mark.parametrize("nth", [1, 4, 10])
def test_a_reply_lost_in_a_batch_sends_nothing_twice(world: World, operation: str, nth: int) -> None:
    gate = Gate()
    gate.after_call = Lever(raising(ReplyLost()), operation=operation, nth=nth)
    assert world.worker(gate).handle(*map(settled, JOBS)) == []
    world.quiesce()
    assert_all_told(world)
    assert set(told(world).values()) == {1}
    assert world.telemetry.total("DuplicateDelivery") == 0


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "error", [refusal("Operation", "ThrottlingException"), read_timeout()], ids=["refused", "time-out"]
)
@pytest.mark.parametrize("operation", ["BatchGetItem", "PutItem", "UpdateItem"])
def test_a_call_that_fails_is_its_own_notices_trouble_alone(
    world: World, operation: str, error: Exception, when: str
) -> None:
    gate = Gate()
    lever = Lever(raising(error), operation=operation, nth=2)
    if when == "before":
        gate.on_call = lever
    else:
        gate.after_call = lever

    reported = world.worker(gate).handle(*map(settled, JOBS))

    assert lever.pulled
    assert len(reported) == (1 if operation == "PutItem" else 0)
    assert sum(world.the_notice(job).status == "delivered" for job in JOBS if world.notice(job)) >= len(JOBS) - 1
    world.quiesce(*(settled(JOBS[int(name.removeprefix("message-")) - 1]) for name in reported))
    assert_all_told(world)


def test_overlapping_workers_with_faults_lose_nothing(world: World) -> None:
    """Four invocations at once over the same notices, with refusals, lost replies and throttling among the calls."""
    chance = random.Random(7)
    lock = threading.Lock()

    def now_and_then(error: Callable[[], Exception], share: float) -> Callable[..., None]:
        def hook(operation: str, _kwargs: object) -> None:
            with lock:
                strikes = operation != SEND_EMAIL and chance.random() < share
            if strikes:
                raise error()

        return hook

    world.provider.script.extend([THROTTLED, UNKNOWN] * 4)
    back: list[str] = []

    def invoke(number: int) -> None:
        gate = Gate(
            on_call=now_and_then(lambda: refusal("Operation", "ThrottlingException"), 0.05),
            after_call=now_and_then(ReplyLost, 0.05),
        )
        jobs = JOBS[number:] + JOBS[:number]
        reported = world.worker(gate).handle(*map(settled, jobs))
        back.extend(settled(jobs[int(name.removeprefix("message-")) - 1]) for name in reported)

    # threads of their own: an invocation waits for the pool, and must not take a place in it
    invocations = [threading.Thread(target=invoke, args=(number,)) for number in range(4)]
    for thread in invocations:
        thread.start()
    for thread in invocations:
        thread.join(60)
        assert not thread.is_alive()

    world.quiesce(*back)
    assert_all_told(world)
