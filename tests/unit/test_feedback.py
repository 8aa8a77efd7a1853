"""What SES says of a message after it accepted it (DESIGN 3.6)."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.clock import START
from fakes.gate import Gate, Lever, ReplyLost, raising
from fakes.mail import THROTTLED, UNKNOWN, Accepted, ses_event
from fakes.store import refusal
from fakes.world import KIND, NOTICES, World
from notices.database import DatabaseError
from notices.feedback import Contended, NotOurs, SesEvent, parse
from notices.mail import Letter, notice_tags


def letter(claim_id: str = "claim-1", reference: str = "message-1", job_id: str = "job-1") -> Accepted:
    tags = notice_tags(job_id, "succeeded", claim_id)
    return Accepted(Letter("dana@example.com", "subject", "text", "html", tags), reference)


def detail(event_type: str = "Send", **facts) -> dict:
    return json.loads(ses_event(letter(), event_type, **facts))["detail"]


def parsed(event_type: str = "Send", **facts) -> SesEvent:
    return parse(ses_event(letter(), event_type, **facts))


PERMANENT = {"bounceType": "Permanent", "bounceSubType": "General"}
TRANSIENT = {"bounceType": "Transient", "bounceSubType": "General"}
EVENTS = {
    "send": ("Send", {}),
    "delivery_delay": ("DeliveryDelay", {"delayType": "TransientCommunicationFailure"}),
    "delivery": ("Delivery", {}),
    "transient_bounce": ("Bounce", TRANSIENT),
    "permanent_bounce": ("Bounce", PERMANENT),
    "reject": ("Reject", {"reason": "Bad content"}),
    "rendering_failure": ("Rendering Failure", {"errorMessage": "x", "templateName": "t"}),
    "complaint": ("Complaint", {"complaintFeedbackType": "abuse"}),
}
PROVES = {"send", "delivery_delay", "delivery", "transient_bounce", "permanent_bounce", "complaint"}


def job_tag(job_id: str) -> str:
    return notice_tags(job_id, "succeeded", "claim-1")["notice_job"]


def body_of(feedback_type: str, accepted: Accepted | None = None) -> str:
    event_type, facts = EVENTS[feedback_type]
    return ses_event(accepted or letter(), event_type, **facts)


# -- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVENTS)
def test_each_type_is_read(name):
    event = parse(body_of(name))
    assert (event.job_id, event.outcome, event.claim_id, event.message_id) == (
        "job-1",
        "succeeded",
        "claim-1",
        "message-1",
    )
    assert event.news.value == name
    assert event.proves_acceptance is (name in PROVES)
    assert event.is_send is (name == "send")


@pytest.mark.parametrize(
    "wrap",
    [
        json.dumps,
        lambda event: json.dumps({"detail-type": "Email Sent", "source": "aws.ses", "detail": event}),
        lambda event: json.dumps({"detail": json.dumps(event)}),
        lambda event: json.dumps({"Type": "Notification", "Message": json.dumps(event)}),
        lambda event: json.dumps({"Type": "Notification", "Message": json.dumps({"detail": event})}),
        lambda event: "\ufeff" + json.dumps(event),
    ],
    ids=["bare", "EventBridge", "EventBridge, text", "SNS", "EventBridge in SNS", "byte-order mark"],
)
def test_it_comes_bare_or_wrapped(wrap):
    assert parse(wrap(detail("Delivery"))).news.value == "delivery"


def test_notification_type_stands_for_event_type():
    event = detail("Complaint")
    event["notificationType"] = event.pop("eventType")
    assert parse(json.dumps(event)).news.value == "complaint"


@pytest.mark.parametrize("bounce_type", ["Transient", "Undetermined", None, 5, "permanent"])
def test_a_bounce_that_is_not_permanent_is_transient(bounce_type):
    assert parsed("Bounce", bounceType=bounce_type).news.value == "transient_bounce"


def test_not_spam_is_no_complaint_but_proves_acceptance():
    event = parsed("Complaint", complaintFeedbackType="not-spam")
    assert (event.news, event.proves_acceptance) == (None, True)


@pytest.mark.parametrize(
    ("event_type", "facts", "expected"),
    [
        ("Bounce", PERMANENT, "Permanent/General"),
        ("Bounce", {**PERMANENT, "bouncedRecipients": [{"status": "5.1.1"}]}, "Permanent/General 5.1.1"),
        ("Bounce", {"bounceType": "Permanent", "bounceSubType": None}, "Permanent"),
        ("Bounce", {**TRANSIENT, "bouncedRecipients": [{"emailAddress": "a@example.com"}]}, "Transient/General"),
        ("Bounce", {**TRANSIENT, "bouncedRecipients": [{"status": "5.1.1 dana@example.com"}]}, "Transient/General"),
        ("Bounce", {"bounceType": "dana@example.com", "bounceSubType": "General"}, "General"),
        ("Bounce", {**PERMANENT, "bounceSubType": "x" * 65}, "Permanent"),
        ("Bounce", {**PERMANENT, "bouncedRecipients": [{}, {"status": "4.4.7"}]}, "Permanent/General 4.4.7"),
        ("Bounce", {}, None),
        ("Complaint", {"complaintFeedbackType": "abuse", "complaintSubType": None}, "abuse"),
        ("Complaint", {"complaintSubType": "OnAccountSuppressionList"}, "OnAccountSuppressionList"),
        ("Complaint", {"complaintFeedbackType": "my mail dana@example.com"}, None),
        ("DeliveryDelay", {"delayType": "IPFailure", "delayedRecipients": [{"status": "4.4.1"}]}, "IPFailure 4.4.1"),
        ("Reject", {"reason": "Bad content"}, None),
        ("Delivery", {"smtpResponse": "250 dana@example.com"}, None),
        ("Bounce", {**PERMANENT, "bouncedRecipients": "dana"}, "Permanent/General"),
        ("Bounce", {**PERMANENT, "bouncedRecipients": ["dana", None]}, "Permanent/General"),
    ],
)
def test_detail_holds_sess_own_words_and_no_free_text(event_type, facts, expected):
    assert parsed(event_type, **facts).detail == expected


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-11-29T10:00:05.000Z", datetime(2026, 11, 29, 10, 0, 5, tzinfo=UTC)),
        ("2026-11-29T11:00:05+01:00", datetime(2026, 11, 29, 10, 0, 5, tzinfo=UTC)),
        ("2026-11-29T10:00:05", datetime(2026, 11, 29, 10, 0, 5, tzinfo=UTC)),
        ("Sun, 29 Nov 2026 10:00:05 +0000", datetime(2026, 11, 29, 10, 0, 5, tzinfo=UTC)),
        ("Sun, 29 Nov 2026 11:00:05 +0100", datetime(2026, 11, 29, 10, 0, 5, tzinfo=UTC)),
        (1795946405000, datetime(2026, 11, 29, 10, 0, 5, tzinfo=UTC)),
    ],
)
def test_times_come_in_several_forms(timestamp, expected):
    assert parsed("Bounce", timestamp=timestamp).at == expected


@pytest.mark.parametrize(
    "timestamp", [None, "", "soon", True, [], 1e30, -1e30, "9" * 10_000, "0001-01-01T00:00:00+14:00"]
)
def test_a_time_that_cannot_be_read_is_taken_from_the_mail(timestamp):
    assert parsed("Bounce", timestamp=timestamp).at == datetime(2026, 11, 29, 10, 0, 1, tzinfo=UTC)


def test_without_any_time_there_is_none():
    event = detail("Bounce")
    del event["mail"]["timestamp"]
    assert parse(json.dumps(event)).at is None


@pytest.mark.parametrize("message_id", [None, "", 5, "a b", "x" * 257, ["m"]])
def test_a_message_id_that_is_none_is_absent(message_id):
    event = detail("Send")
    event["mail"]["messageId"] = message_id
    assert parse(json.dumps(event)).message_id is None


@pytest.mark.parametrize("event_type", ["Open", "Click", "Subscription", "SomethingNew", "", None, 5, ["Bounce"]])
def test_a_type_that_is_not_used_is_not_ours(event_type):
    with pytest.raises(NotOurs):
        parse(json.dumps({**detail(), "eventType": event_type}))


@pytest.mark.parametrize(
    "tags",
    [
        None,
        {},
        [],
        "tags",
        {"notice_job": ["am9iLTE"]},
        {"notice_outcome": ["succeeded"]},
        {"notice_job": [], "notice_outcome": ["succeeded"]},
        {"notice_job": ["not base64url!"], "notice_outcome": ["succeeded"]},
        {"notice_job": ["_w"], "notice_outcome": ["succeeded"]},
        {"notice_job": [5], "notice_outcome": ["succeeded"]},
        {"notice_job": ["am9iLTE"], "notice_outcome": [""]},
        {"notice_job": ["am9iLTE"], "notice_outcome": ["dana@example.com"]},
        {"notice_job": ["am9iLTE"], "notice_outcome": ["Succeeded"]},
        {"notice_job": [job_tag("Dana Doe")], "notice_outcome": ["succeeded"]},
        {"notice_job": [job_tag("j\u00f6b-1")], "notice_outcome": ["succeeded"]},
        {"notice_job": [job_tag("j" * 129)], "notice_outcome": ["succeeded"]},
    ],
)
def test_an_event_without_our_tags_is_not_ours(tags):
    event = detail("Bounce")
    event["mail"]["tags"] = tags
    with pytest.raises(NotOurs):
        parse(json.dumps(event))


def test_a_claim_tag_that_the_sender_cannot_have_written_is_left_out():
    event = detail()
    event["mail"]["tags"]["notice_claim"] = ["dana@example.com"]
    assert parse(json.dumps(event)).claim_id is None


@pytest.mark.parametrize("mail", [None, [], "mail"])
def test_an_event_without_a_mail_is_not_ours(mail):
    with pytest.raises(NotOurs):
        parse(json.dumps({"eventType": "Bounce", "bounce": {}, "mail": mail}))


@pytest.mark.parametrize("facts", [None, [], "x", 5])
def test_facts_that_are_absent_or_odd_do_no_harm(facts):
    event = detail("Complaint")
    event["complaint"] = facts
    assert parse(json.dumps(event)).news.value == "complaint"


@pytest.mark.parametrize("body", [None, "", "{", "[]", "7", "null", "NaN", "[" * 100_000])
def test_what_is_no_json_object_is_a_value_error(body):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the words are json's
        parse(body)
    assert not isinstance(raised.value, NotOurs)


def test_a_diagnostic_of_twenty_kilobytes_is_nothing_special():
    text = "smtp; 550 5.1.1 <dana@example.com> " + "x" * 20_000
    event = parsed("Bounce", **PERMANENT, bouncedRecipients=[{"diagnosticCode": text, "status": "5.1.1"}])
    assert event.detail == "Permanent/General 5.1.1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
TAGS = st.just({"notice_job": ["am9iLTE"], "notice_outcome": ["succeeded"]}) | JSON
NAMES = ["bounce", "complaint", "delivery", "deliveryDelay", "failure", "send", "reject"]


@settings(max_examples=150, deadline=None, database=None)
@given(
    event=st.fixed_dictionaries(
        {
            "eventType": st.sampled_from([event_type for event_type, _ in EVENTS.values()]) | JSON,
            "mail": st.fixed_dictionaries({"tags": TAGS}, optional={"messageId": JSON, "timestamp": JSON}) | JSON,
        },
        optional={
            name: st.dictionaries(
                st.sampled_from(["timestamp", "bounceType", "bouncedRecipients", "delayedRecipients"]), JSON
            )
            | JSON
            for name in NAMES
        },
    )
)
def test_nothing_but_not_ours_is_ever_raised_for_an_object(event):
    try:
        found: object = parse(json.dumps(event))
    except NotOurs:
        found = None
    assert found is None or isinstance(found, SesEvent)


# -- writing ------------------------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def gate() -> Gate:
    return Gate()


def told(world: World, *answers) -> None:
    world.provider.script.extend(answers)
    world.worker().told()
    world.telemetry.counts.clear()
    world.telemetry.values.clear()
    world.telemetry.lines.clear()
    world.clock.advance(seconds=30)


def record(world: World, body: str, gate: Gate | None = None) -> str:
    return world.worker(gate).feedback(parse(body))


@pytest.mark.parametrize("name", sorted(PROVES))
@pytest.mark.parametrize("answer", [THROTTLED, UNKNOWN], ids=["failed", "unknown"])
def test_every_event_that_proves_acceptance_settles_a_failed_notice(world, name, answer):
    told(world, answer)

    assert record(world, body_of(name)) == "settled"

    notice = world.the_notice()
    assert (notice.status, notice.provider_reference) == ("delivered", "message-1")
    assert (notice.next_attempt_at, notice.error) == (None, None)
    assert notice.handled_at == world.clock()
    entry = notice.attempt_log[-1]
    assert (entry.attempt, entry.claim_id, entry.result, entry.reference) == (1, "claim-1", "delivered", "message-1")
    assert notice.feedback.type == name
    assert world.telemetry.counts["NoticeDelivered", KIND] == 1


def test_a_pending_notice_is_settled_under_the_claim_that_the_tag_names(world):
    worker = world.worker()
    for _ in range(2):
        worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")

    assert record(world, ses_event(letter("claim-1"))) == "settled"

    entry = world.the_notice().attempt_log[-1]
    assert (entry.attempt, entry.claim_id) == (1, "claim-1")


def test_an_event_without_a_claim_tag_is_logged_under_the_latest_claim(world):
    told(world, UNKNOWN)
    event = detail()
    del event["mail"]["tags"]["notice_claim"]
    record(world, json.dumps(event))
    assert world.the_notice().attempt_log[-1].claim_id == "claim-1"


@pytest.mark.parametrize("name", ["reject", "rendering_failure"])
def test_a_refusal_by_ses_is_kept_but_proves_nothing(world, name):
    told(world, UNKNOWN)
    due = world.the_notice().next_attempt_at
    assert record(world, body_of(name)) == "recorded"
    notice = world.the_notice()
    assert (notice.status, notice.next_attempt_at, notice.feedback.type) == ("failed", due, name)


@pytest.mark.parametrize("first", EVENTS)
@pytest.mark.parametrize("second", EVENTS)
def test_the_gravest_news_stays_whatever_the_order(world, first, second):
    gravity = {name: rank for rank, name in enumerate(EVENTS)}
    gravity["reject"] = gravity["rendering_failure"] = gravity["permanent_bounce"]
    told(world)
    record(world, body_of(first))
    record(world, body_of(second))
    expected = second if gravity[second] > gravity[first] else first
    assert world.the_notice().feedback.type == expected
    assert world.the_notice().status == "delivered"


@pytest.mark.parametrize("names", [*itertools.permutations(["send", "delivery", "transient_bounce", "complaint"])])
def test_any_order_and_any_repeats_end_the_same(world, names):
    told(world, UNKNOWN)
    for name in (*names, *names):
        record(world, body_of(name))
    notice = world.the_notice()
    assert (notice.status, notice.provider_reference, notice.feedback.type) == ("delivered", "message-1", "complaint")
    assert [entry.result for entry in notice.attempt_log] == ["failed", "delivered"]
    assert world.telemetry.total("NoticeDelivered") == 1
    assert world.telemetry.total("FeedbackComplaint") == 1


@pytest.mark.parametrize("name", EVENTS)
def test_a_repeat_changes_nothing_and_writes_nothing(world, name, gate):
    told(world)
    record(world, body_of(name))
    before = world.store.snapshot()
    assert record(world, body_of(name), gate) == "nothing_new"
    assert world.store.snapshot() == before
    assert gate.calls == ["GetItem"]


def test_news_that_is_lighter_writes_nothing(world, gate):
    told(world)
    record(world, body_of("permanent_bounce"))
    assert record(world, body_of("delivery"), gate) == "nothing_new"
    assert gate.calls == ["GetItem"]


def test_feedback_keeps_its_time_detail_and_message_id(world):
    told(world)
    record(world, ses_event(letter(), "Bounce", timestamp="2026-11-29T10:00:05Z", **PERMANENT))
    feedback = world.the_notice().feedback
    assert (feedback.type, feedback.detail, feedback.message_id) == (
        "permanent_bounce",
        "Permanent/General",
        "message-1",
    )
    assert feedback.at == datetime(2026, 11, 29, 10, 0, 5, tzinfo=UTC)


def test_feedback_without_a_time_gets_ours(world):
    told(world)
    event = detail("Bounce")
    del event["mail"]["timestamp"]
    record(world, json.dumps(event))
    assert world.the_notice().feedback.at == START + timedelta(seconds=30)


@pytest.mark.parametrize("name", ["transient_bounce", "permanent_bounce", "complaint"])
def test_a_bounce_or_complaint_never_makes_a_notice_claimable(world, name):
    told(world)
    record(world, body_of(name))
    assert world.the_notice().status == "delivered"
    assert world.worker().told().result == "already_handled"
    world.clock.advance(timedelta(days=1))
    assert world.worker().run_retry().enqueued == 0


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("transient_bounce", "FeedbackBounce"),
        ("permanent_bounce", "FeedbackBounce"),
        ("complaint", "FeedbackComplaint"),
    ],
)
def test_a_bounce_and_a_complaint_are_counted_once_by_kind(world, name, metric):
    told(world)
    record(world, body_of(name))
    record(world, body_of(name))
    assert world.telemetry.counts == {(metric, KIND): 1}


def test_not_spam_is_neither_counted_nor_kept(world):
    told(world)
    body = ses_event(letter(), "Complaint", complaintFeedbackType="not-spam")
    assert record(world, body) == "nothing_new"
    assert world.the_notice().feedback is None
    assert world.telemetry.metrics() == set()


def test_not_spam_proves_acceptance(world):
    told(world, UNKNOWN)
    record(world, ses_event(letter(), "Complaint", complaintFeedbackType="not-spam"))
    assert (world.the_notice().status, world.the_notice().feedback) == ("delivered", None)


def test_the_seconds_to_tell_of_a_notice_that_feedback_settles_are_counted(world):
    world.provider.script.append(UNKNOWN)
    world.worker().told(settled_at=START - timedelta(seconds=10))
    world.clock.at = START + timedelta(seconds=50)
    record(world, body_of("send"))
    assert world.telemetry.values["SecondsToTell"] == [60]


# -- a second delivery --------------------------------------------------------------------------------------------


def test_a_send_with_another_message_id_is_a_second_delivery(world):
    told(world)

    assert record(world, ses_event(letter("claim-0", "message-0"))) == "second_delivery"

    notice = world.the_notice()
    assert notice.provider_reference == "message-1"
    assert [(entry.claim_id, entry.reference) for entry in notice.attempt_log] == [
        ("claim-1", "message-1"),
        ("claim-0", "message-0"),
    ]
    assert world.telemetry.counts["DuplicateDelivery", KIND] == 1
    (line,) = world.telemetry.said("delivered twice")
    assert line.fields["provider_reference"] == "message-0"


def test_a_second_delivery_is_counted_once(world):
    told(world)
    for _ in range(3):
        record(world, ses_event(letter("claim-0", "message-0")))
    assert world.telemetry.total("DuplicateDelivery") == 1


@pytest.mark.parametrize("name", sorted(PROVES - {"send"}))
def test_only_a_send_tells_of_a_second_delivery(world, name):
    told(world)
    record(world, body_of(name, letter("claim-0", "message-0")))
    assert world.telemetry.total("DuplicateDelivery") == 0
    assert len(world.the_notice().attempt_log) == 1


def test_the_send_of_a_delivery_that_was_recorded_without_an_id_is_no_second_one(world):
    told(world, UNKNOWN)
    event = detail("Delivery")
    del event["mail"]["messageId"]
    record(world, json.dumps(event))
    assert world.the_notice().status == "delivered"

    record(world, body_of("send"))

    assert world.telemetry.total("DuplicateDelivery") == 0
    assert world.telemetry.total("NoticeDelivered") == 1


def test_a_duplicate_that_the_sender_reported_is_not_counted_again_by_its_send(world, gate):
    gate.on_call = Lever(lambda: world.worker().told(), operation="SendEmail")
    world.worker(gate).told()
    assert world.telemetry.total("DuplicateDelivery") == 1

    for accepted in world.provider.accepted:
        record(world, ses_event(accepted))

    assert world.telemetry.total("DuplicateDelivery") == 1


# -- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_of_a_notice_that_we_do_not_have_creates_none(world, name):
    assert record(world, body_of(name)) == "no_notice"
    assert world.store.items(NOTICES) == []
    assert world.telemetry.metrics() == set()


def test_a_notice_that_expires_meanwhile_is_not_created(world, gate):
    told(world)
    gate.on_call = Lever(lambda: world.store.discard(NOTICES, "job-1", "succeeded"), operation="UpdateItem")
    assert record(world, body_of("delivery"), gate) == "no_notice"
    assert world.store.items(NOTICES) == []


def test_a_write_in_between_is_read_and_kept(world, gate):
    told(world, UNKNOWN)
    gate.on_call = Lever(lambda: world.worker().told(), operation="UpdateItem")

    record(world, ses_event(letter("claim-1", "message-0")), gate)

    notice = world.the_notice()
    assert (notice.status, notice.provider_reference) == ("delivered", "message-1")
    assert world.telemetry.total("DuplicateDelivery") == 1


def test_others_at_every_try_send_it_back_to_the_queue(world, gate):
    told(world, THROTTLED)

    def another_writes(operation, kwargs) -> None:
        if operation == "UpdateItem":
            worker = world.worker()
            worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")

    gate.on_call = another_writes
    with pytest.raises(Contended):
        record(world, body_of("delivery"), gate)


@pytest.mark.parametrize("operation", ["GetItem", "UpdateItem"])
def test_a_call_that_fails_sends_it_back_to_the_queue(world, gate, operation):
    told(world)
    gate.on_call = Lever(raising(refusal(operation, "ThrottlingException")), operation=operation)
    with pytest.raises(DatabaseError):
        record(world, body_of("delivery"), gate)
    assert world.the_notice().feedback is None


@pytest.mark.parametrize(
    ("name", "metric"),
    [("delivery", "NoticeDelivered"), ("permanent_bounce", "FeedbackBounce"), ("complaint", "FeedbackComplaint")],
)
def test_news_whose_reply_was_lost_is_counted_all_the_same(world, gate, name, metric):
    told(world, UNKNOWN)
    gate.after_call = Lever(raising(ReplyLost()), operation="UpdateItem")
    record(world, body_of(name), gate)
    assert world.the_notice().feedback.type == name
    assert world.telemetry.total(metric) == 1


def test_nothing_personal_is_stored_or_logged(world):
    told(world, UNKNOWN)
    facts = {
        "bouncedRecipients": [{"emailAddress": "dana@example.com", "diagnosticCode": "550 <dana@example.com>"}],
        "feedbackId": "dana@example.com",
    }
    assert world.worker().handle_feedback(ses_event(letter(), "Bounce", **PERMANENT, **facts)) == []
    assert "dana" not in str(world.store.items(NOTICES))
    assert "dana" not in str(world.telemetry.lines)
