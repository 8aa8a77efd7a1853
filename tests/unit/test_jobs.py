"""Jobs and requesters as the platform wrote them, whatever that is (DESIGN 3.2)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fakes.gate import Gate, Lever, raising
from fakes.store import refusal
from fakes.world import JOB, JOBS, REQUESTERS, World
from notices.database import DatabaseError, Table
from notices.jobs import JOB_KEYS, REQUESTER_KEYS, Job, Jobs, Requester, Requesters


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def gate() -> Gate:
    return Gate()


def job_in(world: World, gate: Gate | None = None) -> Job | None:
    return Jobs(Table(world.store.connect(gate), JOBS, JOB_KEYS)).get("job-1")


def requester_in(world: World) -> Requester | None:
    return Requesters(Table(world.store.connect(), REQUESTERS, REQUESTER_KEYS)).get("requester-1")


def test_a_job_is_read(world):
    assert job_in(world) == JOB


def test_a_job_is_read_consistently(world, gate):
    seen = []
    gate.on_call = lambda operation, kwargs: seen.append(kwargs["ConsistentRead"])
    job_in(world, gate)
    assert seen == [True]


def test_a_job_that_is_not_there_is_none(world):
    world.store.discard(JOBS, "job-1")
    assert job_in(world) is None


def test_a_look_up_that_fails_is_no_absent_job(world, gate):
    gate.on_call = Lever(raising(refusal("GetItem", "ThrottlingException")))
    with pytest.raises(DatabaseError):
        job_in(world, gate)


@pytest.mark.parametrize("removed_at", ["2026-11-29T10:00:00Z", 1764410400, ""])
def test_a_job_with_removed_at_is_removed(world, removed_at):
    world.job(removed_at=removed_at)
    assert job_in(world).removed


def test_a_removed_at_of_null_is_not_present(world):
    world.store.place(JOBS, {"job_id": {"S": "job-1"}, "removed_at": {"NULL": True}})
    assert not job_in(world).removed


def test_what_is_absent_null_or_empty_is_none(world):
    world.store.place(
        JOBS, {"job_id": {"S": "job-1"}, "tenant_id": {"NULL": True}, "requester_id": {"S": ""}, "kind": {"BOOL": True}}
    )
    assert job_in(world) == Job("job-1", "")


def test_ids_that_are_numbers_are_read_as_text(world):
    world.job(tenant_id=7, requester_id=42)
    assert (job_in(world).tenant_id, job_in(world).requester_id) == ("7", "42")


def test_details_of_every_type_become_plain_values(world):
    details = {
        "text": {"S": "x"},
        "whole": {"N": "12"},
        "broken": {"N": "1.5"},
        "flag": {"BOOL": False},
        "nothing": {"NULL": True},
        "list": {"L": [{"S": "a"}, {"M": {"b": {"N": "1"}}}]},
        "set": {"SS": ["b", "a"]},
        "numbers": {"NS": ["2", "1"]},
        "bytes": {"B": b"x"},
    }
    world.store.place(JOBS, {"job_id": {"S": "job-1"}, "details": {"M": details}})
    assert job_in(world).details == {
        "text": "x",
        "whole": 12,
        "broken": Decimal("1.5"),
        "flag": False,
        "nothing": None,
        "list": ["a", {"b": 1}],
        "set": ["a", "b"],
        "numbers": [1, 2],
        "bytes": None,
    }


@pytest.mark.parametrize("details", ["text", 5, ["a"], None])
def test_details_that_are_no_map_are_empty(world, details):
    world.job(details=details)
    assert job_in(world).details == {}


def test_a_requester_is_read(world):
    world.requester(audience="staff", time_zone="Europe/Vienna", locale="de-AT")
    assert requester_in(world) == Requester(
        "requester-1", "tenant-1", "dana@example.com", "Dana", "staff", "Europe/Vienna", "de-AT"
    )


def test_a_requester_that_is_not_there_is_none(world):
    world.store.discard(REQUESTERS, "requester-1")
    assert requester_in(world) is None


@pytest.mark.parametrize("audience", [None, "", "customer", "Staff", "STAFF", "staff ", True, 1, ["staff"]])
def test_anything_but_the_exact_word_staff_is_a_customer(world, audience):
    world.requester(audience=audience)
    assert requester_in(world).audience == "customer"


def test_a_requesters_null_and_empty_are_absent(world):
    world.store.place(REQUESTERS, {"requester_id": {"S": "requester-1"}, "email": {"S": ""}, "name": {"NULL": True}})
    assert requester_in(world) == Requester("requester-1")
