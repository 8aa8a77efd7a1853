"""Bringing due notices back, and giving up those past the horizon (DESIGN 3.6)."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.clock import START
from fakes.gate import Gate, Lever, ReplyLost, raising
from fakes.mail import REFUSED, THROTTLED, UNKNOWN
from fakes.queues import sqs_error
from fakes.store import read_timeout, refusal
from fakes.world import DUE_PROJECTS, KIND, NOTICES, World
from notices.database import DatabaseError
from notices.retry import STEP_SECONDS

QUARTER = timedelta(minutes=15)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def gate() -> Gate:
    return Gate()


def leave(world: World, status: str, job_id: str = "job-1") -> None:
    """Leave a notice in this state."""
    world.job(job_id)
    if status == "pending":
        worker = world.worker()
        worker.notices.claim(worker.tell.jobs.get(job_id), "succeeded")
        return
    world.provider.script.extend({"failed": [THROTTLED], "unknown": [UNKNOWN], "for good": [REFUSED]}.get(status, []))
    world.worker().told(job_id)


def test_the_index_projects_what_the_retry_is_tested_with():
    template = (Path(__file__).parents[2] / "template.yaml").read_text()
    (names,) = re.findall(r"IndexName: due.*?NonKeyAttributes: \[([^]]*)\]", template, re.DOTALL)
    assert sorted(name.strip() for name in names.split(",")) == sorted(DUE_PROJECTS)


@pytest.mark.parametrize("status", ["pending", "failed", "unknown"])
def test_a_due_notice_is_moved_on_and_then_queued_at_its_new_revision(world, gate, status):
    leave(world, status)
    before = world.the_notice()
    now = world.clock.advance(QUARTER)

    run = world.worker(gate).run_retry()

    assert (run.enqueued, run.given_up, run.overtaken, run.in_error) == (1, 0, 0, 0)
    notice = world.the_notice()
    assert notice.next_attempt_at == now + QUARTER
    assert notice.revision == before.revision + 1
    assert (notice.status, notice.claim_id, notice.error) == (before.status, before.claim_id, before.error)
    assert world.queues.events() == [
        {"type": "job.settled", "version": "1", "job_id": "job-1", "outcome": "succeeded", "retry": notice.revision}
    ]
    assert gate.calls.index("UpdateItem") < gate.calls.index("SendMessageBatch")
    assert world.telemetry.total("RetryEnqueued") == 1


def test_a_notice_due_at_this_very_moment_is_due(world):
    leave(world, "pending")
    world.clock.at = world.the_notice().next_attempt_at
    assert world.worker().run_retry().enqueued == 1


@pytest.mark.parametrize("status", ["delivered", "for good"])
def test_what_is_done_is_never_due(world, status):
    leave(world, status)
    before = world.store.snapshot()
    world.clock.advance(timedelta(days=2))
    assert world.worker().run_retry().enqueued == 0
    assert world.store.snapshot() == before


def test_a_suppressed_notice_is_never_due():
    world = World(production=False)
    world.worker().told()
    world.clock.advance(timedelta(days=2))
    assert world.worker().run_retry().enqueued == 0


def test_what_is_not_due_yet_is_left_alone(world):
    leave(world, "pending")
    world.clock.advance(QUARTER - timedelta(seconds=1))
    assert world.worker().run_retry().enqueued == 0


def test_a_notice_that_was_moved_on_is_not_queued_again_before_its_time(world):
    leave(world, "failed")
    world.clock.advance(QUARTER)
    assert [world.worker().run_retry().enqueued for _ in range(3)] == [1, 0, 0]
    world.clock.advance(QUARTER)
    assert world.worker().run_retry().enqueued == 1


@pytest.mark.parametrize("page", [1, 2, 25, 100])
def test_all_that_is_due_is_queued_over_many_pages_in_batches_of_ten(page):
    world = World(page=page)
    for number in range(31):
        leave(world, "pending" if number % 2 else "failed", f"job-{number}")
    world.clock.advance(QUARTER)
    gate = Gate()

    run = world.worker(gate).run_retry()

    assert run.enqueued == 31
    assert len({event["job_id"] for event in world.queues.events()}) == 31
    assert gate.calls.count("SendMessageBatch") == 4
    assert world.telemetry.total("RetryEnqueued") == 31


def test_an_empty_page_is_not_the_end(world):
    leave(world, "pending")
    world.clock.advance(QUARTER)
    world.store.empty_pages = {1}
    assert world.worker().run_retry().enqueued == 1
    assert world.store.calls["Query"] == 3


def test_three_hundred_due_over_many_pages_are_all_queued():
    world = World(page=25)
    for number in range(300):
        leave(world, "pending", f"job-{number}")
    world.clock.advance(QUARTER)
    assert world.worker().run_retry().enqueued == 300
    assert world.worker().run_retry().enqueued == 0


def test_its_reads_grow_with_what_is_due_and_not_with_the_table(world):
    leave(world, "delivered")
    handled = dict(world.store.item(NOTICES, "job-1", "succeeded"))
    for number in range(100_000):
        world.store.place(NOTICES, {**handled, "job_id": {"S": f"handled-{number}"}})
    leave(world, "pending", "due")
    world.clock.advance(QUARTER)
    world.store.rows.clear()
    gate = Gate()
    assert world.worker(gate).run_retry().enqueued == 1
    assert world.store.rows == {"Query": 1}
    assert gate.calls == ["Query", "UpdateItem", "Query", "SendMessageBatch"]


# -- stale rows and others at work --------------------------------------------------------------------------------


def test_a_stale_row_of_a_delivered_notice_changes_and_queues_nothing(world):
    leave(world, "pending")
    world.clock.advance(QUARTER)
    world.store.hold_indexes(NOTICES)
    world.worker().told()
    before = world.store.snapshot()

    run = world.worker().run_retry()

    assert (run.enqueued, run.overtaken) == (0, 1)
    assert world.store.snapshot() == before
    assert world.queues.sent == []


def test_a_stale_row_of_a_notice_that_expired_creates_nothing(world):
    leave(world, "pending")
    world.clock.advance(QUARTER)
    world.store.hold_indexes(NOTICES)
    world.store.discard(NOTICES, "job-1", "succeeded")
    assert world.worker().run_retry().overtaken == 1
    assert world.notice() is None


def test_a_stale_row_past_the_horizon_of_a_delivered_notice_gives_nothing_up(world):
    leave(world, "pending")
    world.clock.advance(timedelta(hours=73))
    world.store.hold_indexes(NOTICES)
    world.worker().told()
    assert world.worker().run_retry().given_up == 0
    assert world.the_notice().status == "delivered"


# -- giving up ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [("failed", "gave_up: throttled: TooManyRequestsException"), ("pending", "gave_up: abandoned")],
)
def test_past_the_horizon_a_notice_is_given_up_loudly(world, status, error):
    leave(world, status)
    now = world.clock.advance(timedelta(hours=72))

    run = world.worker().run_retry()

    assert (run.given_up, run.enqueued) == (1, 0)
    notice = world.the_notice()
    assert (notice.status, notice.error, notice.next_attempt_at) == ("failed", error, None)
    assert notice.handled_at == now
    assert (notice.attempt_log[-1].result, notice.attempt_log[-1].claim_id) == ("failed", "claim-1")
    assert world.telemetry.total("NoticeGivenUp") == 1
    (line,) = world.telemetry.said("notice given up")
    assert (line.level, line.fields["job_id"]) == ("error", "job-1")


def test_just_before_the_horizon_a_notice_is_queued(world):
    leave(world, "failed")
    world.clock.advance(timedelta(hours=72) - timedelta(seconds=1))
    assert world.worker().run_retry().enqueued == 1


def test_the_horizon_counts_from_the_first_claim(world):
    leave(world, "failed")
    world.clock.advance(timedelta(hours=71))
    leave(world, "failed")
    world.clock.advance(timedelta(hours=2))
    assert world.worker().run_retry().given_up == 1


def test_a_long_error_given_up_keeps_to_its_length(world):
    leave(world, "failed")
    item = dict(world.store.item(NOTICES, "job-1", "succeeded"))
    world.store.place(NOTICES, {**item, "error": {"S": "x" * 256}})
    world.clock.advance(timedelta(hours=73))
    world.worker().run_retry()
    assert world.the_notice().error.startswith("gave_up: xxx")
    assert len(world.the_notice().error) == 256


def test_a_give_up_whose_reply_was_lost_is_as_loud(world, gate):
    leave(world, "failed")
    world.clock.advance(timedelta(hours=73))
    gate.after_call = Lever(raising(ReplyLost()), operation="UpdateItem")

    world.worker(gate).run_retry()

    assert world.the_notice().error.startswith("gave_up")
    assert world.telemetry.total("NoticeGivenUp") == 1


def test_a_given_up_notice_may_be_claimed_by_a_fresh_event(world):
    leave(world, "failed")
    world.clock.advance(timedelta(hours=73))
    world.worker().run_retry()
    assert world.worker().told().result == "delivered"


@pytest.mark.parametrize("ended", ["for good", "failed"], ids=["failed for good", "given up"])
def test_the_horizon_counts_anew_for_a_notice_that_another_event_brought_back(world, ended):
    leave(world, ended)
    world.clock.advance(timedelta(hours=100))
    world.worker().run_retry()  # which gives up the one that was still tried
    leave(world, "failed")
    world.clock.advance(timedelta(hours=71))

    assert world.worker().run_retry().enqueued == 1

    world.clock.advance(timedelta(hours=102))
    assert world.worker().run_retry().given_up == 1


def test_the_horizon_counts_anew_for_a_notice_that_was_re_opened():
    world = World(production=False)
    world.worker().told()
    world.clock.advance(timedelta(hours=73))
    worker = world.worker()
    assert worker.notices.reopen(world.the_notice())

    run = world.worker().run_retry()

    assert (run.enqueued, run.given_up) == (1, 0)
    world.production = True
    world.provider.script.append(THROTTLED)
    assert world.worker().handle(world.queues.sent.pop().body) == []
    assert world.the_notice().error.startswith("throttled")
    world.clock.advance(QUARTER)
    assert world.worker().run_retry().enqueued == 1
    world.clock.advance(timedelta(hours=73))
    assert world.worker().run_retry().given_up == 1


# -- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_send_that_fails_only_delays_the_notice(world):
    leave(world, "failed")
    world.clock.advance(QUARTER)
    world.queues.faults.append(sqs_error("AccessDenied"))

    run = world.worker().run_retry()

    assert (run.enqueued, run.not_queued) == (0, 1)
    assert world.telemetry.said("retries not queued")
    world.clock.advance(QUARTER)
    assert world.worker().run_retry().enqueued == 1


def test_entries_that_the_queue_refuses_only_delay_their_notices(world):
    for number in range(3):
        leave(world, "failed", f"job-{number}")
    world.clock.advance(QUARTER)
    world.queues.refused_entries = {1}
    run = world.worker().run_retry()
    assert (run.enqueued, run.not_queued) == (2, 1)


def test_one_notice_that_cannot_be_moved_does_not_keep_the_others_waiting(world, gate):
    for number in range(3):
        leave(world, "failed", f"job-{number}")
    world.clock.advance(QUARTER)
    gate.on_call = Lever(raising(refusal("UpdateItem", "ThrottlingException")), operation="UpdateItem", nth=2)
    run = world.worker(gate).run_retry()
    assert (run.enqueued, run.in_error) == (2, 1)
    (line,) = world.telemetry.said("notice not moved")
    assert line.fields["job_id"].startswith("job-")


def test_an_item_that_cannot_be_read_does_not_keep_the_others_waiting(world):
    leave(world, "failed", "job-1")
    leave(world, "failed", "job-2")
    item = dict(world.store.item(NOTICES, "job-1", "succeeded"))
    world.store.place(NOTICES, {**item, "created_at": {"S": "the other day"}})
    world.clock.advance(QUARTER)
    run = world.worker().run_retry()
    assert (run.enqueued, run.in_error) == (1, 1)


@pytest.mark.parametrize(
    "error", [refusal("Query", "ThrottlingException"), read_timeout()], ids=["throttled", "time-out"]
)
def test_when_the_index_cannot_be_read_what_was_moved_is_queued_and_reported_first(world, gate, error):
    leave(world, "pending")
    world.clock.advance(QUARTER)
    gate.on_call = Lever(raising(error), operation="Query", nth=2)

    with pytest.raises(DatabaseError):
        world.worker(gate).run_retry()

    assert len(world.queues.sent) == 1
    assert "OldestUnsettledSeconds" in world.telemetry.metrics()


@pytest.mark.parametrize("looks", range(6))
def test_it_stops_between_two_notices_when_time_runs_short_and_the_next_run_carries_on(world, looks):
    for number in range(5):
        leave(world, "failed", f"job-{number}")
    world.clock.advance(QUARTER)
    times = iter([STEP_SECONDS] * looks)
    worker = world.worker()

    run = worker.retry(lambda: next(times, 0))

    assert run.enqueued == min(looks, 5)
    assert run.stopped_early is (looks < 5)
    moved = [item for item in world.store.items(NOTICES) if item["next_attempt_at"]["S"] > "2026-11-29T10:15:00"]
    assert len(moved) == run.enqueued
    assert "OldestUnsettledSeconds" in world.telemetry.metrics()
    assert world.worker().run_retry().enqueued == 5 - run.enqueued


# -- what it reports ----------------------------------------------------------------------------------------------


def test_the_age_of_the_oldest_counts_from_its_first_claim(world):
    leave(world, "failed", "job-1")
    world.clock.advance(seconds=100)
    leave(world, "failed", "job-2")
    world.clock.at = START + timedelta(seconds=901)
    world.worker().run_retry()
    assert world.telemetry.values["OldestUnsettledSeconds"] == [901]


def test_a_run_with_nothing_due_reports_an_age_of_nought(world):
    world.worker().run_retry()
    assert world.telemetry.values == {"OldestUnsettledSeconds": [0]}
    (line,) = world.telemetry.lines
    assert line.message == "retry run"


def test_a_given_up_notice_counts_in_the_age_too(world):
    leave(world, "failed")
    world.clock.advance(timedelta(hours=73))
    world.worker().run_retry()
    assert world.telemetry.values["OldestUnsettledSeconds"] == [73 * 3600]


def test_a_retried_notice_is_told(world):
    leave(world, "failed")
    world.clock.advance(QUARTER)
    world.worker().run_retry()
    (message,) = world.queues.sent
    assert world.worker().handle(message.body) == []
    assert world.the_notice().status == "delivered"
    assert world.telemetry.counts["NoticeDelivered", KIND] == 1
