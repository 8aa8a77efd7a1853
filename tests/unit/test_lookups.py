"""What a batch needs to know is read together (DESIGN 3.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future

import pytest

from fakes.gate import Gate, Lever, raising
from fakes.store import refusal
from fakes.world import World, settled
from notices.database import CALL_SECONDS
from notices.jobs import Requester
from notices.lookups import OnTheirWay


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


def test_one_requester_that_cannot_be_read_fails_for_its_own_notice_alone(world):
    world.job(job_id="job-2", requester_id="requester-2")
    item = dict(world.store.item("Requesters", "requester-1"))
    world.store.place("Requesters", item | {"requester_id": {"S": "requester-2"}, "name": {"N": "no number"}})

    assert world.worker().handle(settled(), settled("job-2")) == []

    assert world.notice("job-1").status == "delivered"
    assert (world.notice("job-2").status, world.notice("job-2").error) == (
        "failed",
        "internal_error: InvalidOperation",
    )


def test_a_joint_read_that_hangs_is_waited_for_no_longer_than_a_call_may_take():
    class Alone:
        def get(self, requester_id: str) -> Requester | None:
            return Requester(requester_id)

    hanging: Future[Mapping[str, Requester]] = Future()
    assert OnTheirWay(hanging, Alone()).patience == CALL_SECONDS
    assert OnTheirWay(hanging, Alone(), patience=0).get("requester-1") == Requester("requester-1")


def test_one_notice_in_several_envelopes_is_told_once_in_a_batch(world):
    bare = settled()
    wrapped = json.dumps({"detail-type": "job.settled", "detail": json.loads(bare)})
    by_sns = json.dumps({"Type": "Notification", "Message": wrapped})

    assert world.worker().handle(by_sns, bare, wrapped) == []

    assert len(world.provider.accepted) == 1
    assert world.telemetry.total("NoticeAlreadyHandled") == 2
