"""What a batch needs to know is read together (DESIGN 3.5)."""

from __future__ import annotations

import pytest

from fakes.gate import Gate, Lever, raising
from fakes.store import refusal
from fakes.world import World, settled


@pytest.fixture
def world() -> World:
    return World()


def test_a_fresh_notice_alone_costs_five_calls(world):
    gate = Gate()
    world.worker(gate).handle(settled())
    assert gate.calls == ["BatchGetItem", "BatchGetItem", "PutItem", "SendEmail", "UpdateItem"]


def test_ten_fresh_notices_cost_thirty_two_calls(world):
    for number in range(10):
        world.job(job_id=f"job-{number}")
    gate = Gate()
    world.worker(gate).handle(*(settled(f"job-{number}") for number in range(10)))
    assert len(gate.calls) == 32
    assert len(world.provider.accepted) == 10


def test_a_handled_notice_costs_one_call(world):
    world.worker().handle(settled())
    gate = Gate()
    world.worker(gate).handle(settled())
    assert gate.calls == ["BatchGetItem"]
    assert world.telemetry.total("NoticeAlreadyHandled") == 1


def test_an_event_of_a_kind_that_does_not_notify_costs_none(world):
    gate = Gate()
    world.worker(gate).handle(settled(kind="export"))
    assert gate.calls == []


def test_a_failed_notice_is_claimed_at_the_revision_that_was_read_with_the_job(world):
    world.job(requester_id="nobody")
    world.worker().handle(settled())
    world.job()
    gate = Gate()
    world.worker(gate).handle(settled())
    assert gate.calls.count("PutItem") == 1
    assert world.the_notice().status == "delivered"


@pytest.mark.parametrize(("nth", "alone"), [(1, 2), (2, 1)], ids=["jobs and notices", "requesters"])
def test_a_joint_read_that_fails_is_made_alone(world, nth, alone):
    gate = Gate()
    gate.on_call = Lever(raising(refusal("BatchGetItem", "ThrottlingException")), nth=nth)

    assert world.worker(gate).handle(settled()) == []

    assert gate.calls.count("GetItem") == alone
    assert world.the_notice().status == "delivered"


def test_keys_that_are_left_unprocessed_are_read_again(world):
    for number in range(4):
        world.job(job_id=f"job-{number}")
    world.store.batch_get_serves = 3

    assert world.worker().handle(*(settled(f"job-{number}") for number in range(4))) == []

    assert len(world.provider.accepted) == 4


@pytest.mark.parametrize(("field", "value"), [("claimed_at", "yesterday"), ("status", "lost")])
def test_one_item_that_cannot_be_read_fails_for_its_own_record_alone(world, field, value):
    world.job(job_id="job-2")
    world.worker().handle(settled())
    item = dict(world.store.item("Notices", "job-1", "succeeded"))
    item[field] = {"S": value}
    world.store.place("Notices", item)

    assert world.worker().handle(settled(), settled("job-2")) == ["message-1"]

    assert len(world.provider.accepted) == 2
