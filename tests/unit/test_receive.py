"""One record of a queue (DESIGN 3.1, 3.6)."""

from __future__ import annotations

import json

import pytest

from fakes.gate import Gate, Lever, raising
from fakes.mail import Accepted, ses_event
from fakes.queues import sqs_error
from fakes.store import refusal
from fakes.world import KIND, World, settled
from notices.batch import Record
from notices.mail import Letter, notice_tags

LETTER = Letter("dana@example.com", "subject", "text", "html", notice_tags("job-1", "succeeded", "claim-1"))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_a_record_that_is_handled_is_one_line(world):
    assert world.worker().handle(settled()) == []
    (line,) = world.telemetry.lines
    assert (line.level, line.message) == ("info", "record handled")
    assert line.fields.pop("milliseconds") >= 0
    assert line.fields == {
        "message_id": "message-1",
        "job_id": "job-1",
        "outcome": "succeeded",
        "kind": KIND,
        "result": "delivered",
        "reason": None,
        "attempt": 1,
        "error": None,
        "recorded": None,
    }


def test_a_skip_is_one_line_with_its_reason(world):
    world.job(requester_id=None)
    world.worker().handle(settled())
    (line,) = world.telemetry.lines
    assert (line.fields["result"], line.fields["reason"]) == ("skipped", "no_requester")


@pytest.mark.parametrize(
    ("body", "reason", "field"),
    [
        ('{"job_id"', "not_json", None),
        ("[" * 100_000, "not_json", None),
        ("[]", "not_an_object", None),
        (settled(type="job.started"), "unknown_type", None),
        (settled(version="2"), "unsupported_version", "version"),
        (settled(job_id="a b"), "invalid_field", "job_id"),
        (settled(kind=KIND), "kind_mismatch", "kind"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_can_never_be_processed_is_parked_and_acknowledged(world, body, reason, field):
    if reason == "kind_mismatch":
        world.job(kind="no_such_kind")

    assert world.worker().handle(body) == []

    (message,) = world.queues.parked
    assert message.body == body
    assert message.attributes == {"reason": reason, "source_message_id": "message-1"}
    (line,) = world.telemetry.lines
    assert (line.level, line.message) == ("warning", "event parked")
    assert (line.fields["reason"], line.fields["field"]) == (reason, field)
    assert world.telemetry.total("EventParked") == 1
    assert world.provider.letters == []


def test_a_kind_mismatch_is_logged_with_its_job(world):
    world.job(kind="no_such_kind")
    world.worker().handle(settled(kind=KIND))
    assert world.telemetry.lines[0].fields["job_id"] == "job-1"


def test_a_body_is_never_logged(world):
    world.worker().handle('{"secret": "dana@example.com"', settled(job_id="dana@example.com dana"))
    assert "dana" not in str(world.telemetry.lines)


def test_a_bad_record_never_touches_its_neighbours(world):
    assert world.worker().handle(settled(), "{", settled(outcome="failed")) == []
    assert len(world.provider.letters) == 2
    assert len(world.queues.parked) == 1


def test_an_error_of_parsing_goes_back_with_its_own_record(world):
    plan = world.worker().receive([Record("message-1", 5), Record("message-2", settled())])  # type: ignore[arg-type]
    (broken,), (good,) = plan

    with pytest.raises(AttributeError):
        broken.do()
    good.do()

    assert len(world.provider.letters) == 1


def test_if_parking_fails_the_record_is_reported_and_nothing_else(world):
    world.queues.faults.extend([sqs_error("AccessDenied")])
    assert world.worker().handle(settled(), "{", settled(outcome="failed")) == ["message-2"]
    assert world.telemetry.total("EventParked") == 0
    assert len(world.provider.letters) == 2


def test_a_record_whose_claim_fails_is_reported_and_its_table_is_named(world, gate):
    gate.on_call = Lever(raising(refusal("PutItem", "AccessDeniedException", table="Notices")), operation="PutItem")
    assert world.worker(gate).handle(settled()) == ["message-1"]
    (line,) = world.telemetry.said("record goes back")
    assert line.level == "error"
    assert "Notices" in line.fields["fault"]
    assert "AccessDeniedException" in line.fields["fault"]


def test_a_delivery_that_fails_is_acknowledged(world, gate):
    world.provider.script.append(RuntimeError("x"))
    assert world.worker().handle(settled()) == []


def test_records_of_one_notice_are_handled_one_after_the_other(world):
    assert world.worker().handle(settled(), settled(), settled()) == []
    assert len(world.provider.letters) == 1
    assert world.telemetry.total("NoticeAlreadyHandled") == 2
    assert world.telemetry.total("DuplicateDelivery") == 0


# -- feedback -----------------------------------------------------------------------------------------------------


def test_feedback_that_is_handled_is_one_line(world):
    world.worker().told()
    world.telemetry.lines.clear()
    assert world.worker().handle_feedback(ses_event(Accepted(LETTER, "message-1"), "Delivery")) == []
    (line,) = world.telemetry.lines
    assert line.message == "feedback handled"
    assert line.fields == {
        "message_id": "message-1",
        "job_id": "job-1",
        "outcome": "succeeded",
        "type": "delivery",
        "result": "recorded",
    }


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"Type": "Notification", "Message": "Successfully validated SNS topic for Amazon SES.\n"}),
        json.dumps({"Type": "Notification", "Message": " "}),
        json.dumps({"Type": "SubscriptionConfirmation", "Message": "You have chosen to subscribe", "Token": "t"}),
        json.dumps({"Type": "Notification", "Message": json.dumps({"notificationType": "Received", "mail": {}})}),
        json.dumps({"Type": "Notification", "Message": "[]"}),
        "{}",
        json.dumps({"detail": None}),
        json.dumps({"eventType": "Bounce", "mail": {"messageId": "m"}}),
        ses_event(Accepted(LETTER, "message-1"), "SomethingNew"),
        ses_event(Accepted(LETTER, "message-1"), "Open"),
    ],
)
def test_what_is_no_event_of_ours_is_acknowledged_with_one_line(world, body):
    world.worker().told()
    before = world.store.snapshot()
    world.telemetry.lines.clear()

    assert world.worker().handle_feedback(body) == []

    (line,) = world.telemetry.lines
    assert (line.level, line.message) == ("info", "feedback ignored")
    assert world.store.snapshot() == before


@pytest.mark.parametrize("body", ["", "{", "[]", "5", '"text"', "[" * 100_000])
def test_feedback_that_is_no_json_object_is_reported_and_so_reaches_the_dead_letter_queue(world, body):
    good = ses_event(Accepted(LETTER, "message-1"))
    assert world.worker().handle_feedback(good, body) == ["message-2"]
    assert world.queues.parked == []


def test_feedback_of_a_notice_that_we_do_not_have_creates_none(world):
    assert world.worker().handle_feedback(ses_event(Accepted(LETTER, "message-1"))) == []
    assert world.notice() is None
    assert world.telemetry.lines[0].fields["result"] == "no_notice"


def test_feedback_that_cannot_be_written_goes_back(world, gate):
    world.worker().told()
    gate.on_call = Lever(raising(refusal("UpdateItem", "ThrottlingException")), operation="UpdateItem")
    assert world.worker(gate).handle_feedback(ses_event(Accepted(LETTER, "message-1"))) == ["message-1"]
