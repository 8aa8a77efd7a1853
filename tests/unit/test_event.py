"""The job.settled event (DESIGN 3.1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notices.event import JobSettled, Unprocessable, parse

EVENT = {"type": "job.settled", "job_id": "job-1", "outcome": "succeeded"}
PARSED = JobSettled("job-1", "succeeded")


def body(**changes) -> str:
    return json.dumps({**EVENT, **changes})


def without(name: str) -> str:
    return json.dumps({key: value for key, value in EVENT.items() if key != name})


def refusal(text: str | None) -> tuple[str, str | None]:
    with pytest.raises(Unprocessable) as refused:
        parse(text)
    return refused.value.reason, refused.value.field


def sns(message: object) -> dict:
    return {"Type": "Notification", "MessageId": "1", "Message": message, "SigningCertURL": "https://x.example"}


def eventbridge(detail: object, detail_type: object = "job.settled") -> dict:
    return {"version": "0", "id": "1", "detail-type": detail_type, "source": "jobs", "detail": detail}


def cloudevent(data: object, **changes) -> dict:
    return {"specversion": "1.0", "type": "job.settled", "id": "1", "source": "/jobs", "data": data, **changes}


# -- the event itself ---------------------------------------------------------------------------------------------


def test_the_required_fields_are_enough():
    assert parse(body()) == PARSED


def test_all_fields_are_read():
    parsed = parse(body(version="1", kind="export", settled_at="2026-11-29T11:00:00+01:00", retry=7))
    assert parsed == JobSettled("job-1", "succeeded", "export", datetime(2026, 11, 29, 10, tzinfo=UTC), 7)


def test_unknown_fields_are_ignored():
    assert parse('{"x": 12.5, "y": 1e400, "z": ' + "9" * 40 + "," + body()[1:]) == PARSED


@pytest.mark.parametrize("field", ["version", "kind", "settled_at", "retry"])
def test_null_counts_as_absent(field):
    assert parse(body(**{field: None})) == PARSED


@pytest.mark.parametrize("field", ["job_id", "outcome"])
def test_a_required_field_that_is_missing_or_null_is_invalid(field):
    assert refusal(without(field)) == ("invalid_field", field)
    assert refusal(body(**{field: None})) == ("invalid_field", field)


@pytest.mark.parametrize("job_id", ["x", "x" * 128, "~!/:@", "team/42:run-7"])
def test_a_job_id_is_printable_ascii_up_to_128_characters(job_id):
    assert parse(body(job_id=job_id)).job_id == job_id


@pytest.mark.parametrize("job_id", ["", "x" * 129, "a b", "é", "a\n", "a\x00", "\x7f", 5, [], {}, True, "٣"])
def test_any_other_job_id_is_invalid(job_id):
    assert refusal(body(job_id=job_id)) == ("invalid_field", "job_id")


@pytest.mark.parametrize("outcome", ["succeeded", "a", "a" * 32, "a_1"])
def test_an_outcome_is_a_short_word(outcome):
    assert parse(body(outcome=outcome)).outcome == outcome


@pytest.mark.parametrize("outcome", ["", "a" * 33, "Failed", "1a", "_a", "a-b", "a\n", 1, ["a"]])
def test_any_other_outcome_is_invalid(outcome):
    assert refusal(body(outcome=outcome)) == ("invalid_field", "outcome")


@pytest.mark.parametrize("version", ["1", 1, "1.0", "1.17", 1.0, 1.5])
def test_major_version_one_is_taken(version):
    assert parse(body(version=version)) == PARSED


@pytest.mark.parametrize("version", ["2", 2, "0", 0, "1.", "1.2.3", "", "one", " 1", 2.5, "11", 10**400, -1])
def test_another_version_is_unsupported(version):
    assert refusal(body(version=version)) == ("unsupported_version", "version")


@pytest.mark.parametrize("version", [True, [], {}, ["1"]])
def test_a_version_that_is_none_is_invalid(version):
    assert refusal(body(version=version)) == ("invalid_field", "version")


@pytest.mark.parametrize("kind", ["export", "", "../../etc/passwd", "WORKSPACE"])
def test_any_text_may_be_a_kind(kind):
    assert parse(body(kind=kind)).kind == kind


@pytest.mark.parametrize("kind", [1, True, [], {}])
def test_a_kind_that_is_no_text_is_invalid(kind):
    assert refusal(body(kind=kind)) == ("invalid_field", "kind")


@pytest.mark.parametrize(
    "text", ["2026-11-29T10:00:00Z", "2026-11-29T10:00:00.123456+00:00", "2026-11-29 05:00:00-05:00"]
)
def test_settled_at_is_iso_8601_with_an_offset(text):
    assert parse(body(settled_at=text)).settled_at.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    ["2026-11-29T10:00:00", "2026-11-29", "yesterday", "", 1764410400, True, [], "0001-01-01T00:00:00+14:00", "\ud800"],
)
def test_any_other_settled_at_is_invalid(value):
    assert refusal(body(settled_at=value)) == ("invalid_field", "settled_at")


@pytest.mark.parametrize("retry", [1, 7, 2**53])
def test_retry_is_a_revision(retry):
    assert parse(body(retry=retry)).retry == retry


@pytest.mark.parametrize("retry", [0, -1, 2**53 + 1, 1.5, 1.0, "1", True, False, []])
def test_any_other_retry_is_invalid(retry):
    assert refusal(body(retry=retry)) == ("invalid_field", "retry")


@pytest.mark.parametrize("declared", ["job.started", "JOB.SETTLED", "", 1, ["job.settled"]])
def test_a_foreign_type_is_unknown(declared):
    assert refusal(body(type=declared)) == ("unknown_type", None)


def test_a_missing_type_is_unknown():
    assert refusal(without("type")) == ("unknown_type", None)
    assert refusal(body(type=None)) == ("unknown_type", None)


@pytest.mark.parametrize(
    "text",
    [None, "", " ", "{", "nope", "{'a': 1}", body()[:-1], body() + "x", '{"a": NaN}', '{"a": -Infinity}',
     "[" * 100_000, '{"a": ' * 5_000, '{"a": ' + "9" * 5_000 + "}"],
    ids=range(13),
)  # fmt: skip
def test_what_is_not_json_is_not_json(text):
    assert refusal(text) == ("not_json", None)


@pytest.mark.parametrize("text", ["[]", "null", "1", '"text"', "true", json.dumps([EVENT])])
def test_json_that_is_no_object_is_not_an_object(text):
    assert refusal(text) == ("not_an_object", None)


@pytest.mark.parametrize("text", ["\ufeff{}", "\ufeff \r\n\t{}\n ", " {} "])
def test_a_byte_order_mark_and_white_space_are_dropped(text):
    assert parse(text.replace("{}", body())) == PARSED


def test_a_refusal_names_the_field_and_never_its_value():
    with pytest.raises(Unprocessable) as refused:
        parse(body(job_id="dana@example.com is not an id"))
    assert str(refused.value) == "invalid_field: job_id"


# -- envelopes ----------------------------------------------------------------------------------------------------

BARE = body()
WRAPPED = {
    "EventBridge": eventbridge(EVENT),
    "EventBridge, detail as text": eventbridge(BARE),
    "EventBridge, detail-type stands for type": eventbridge(json.loads(without("type"))),
    "EventBridge, another detail-type": eventbridge(EVENT, "Job Settled"),
    "EventBridge, replayed": {**eventbridge(EVENT), "replay-name": "r"},
    "SNS": sns(BARE),
    "SNS, the other key spelling": {**sns(BARE), "SigningCertUrl": "https://x.example"},
    "SNS with a byte-order mark": sns("\ufeff" + BARE),
    "CloudEvents": cloudevent(json.loads(without("type"))),
    "CloudEvents, data as text": cloudevent(without("type")),
    "CloudEvents that its data agrees with": cloudevent(EVENT),
    "CloudEvents without a type": cloudevent(EVENT, type=None),
    "EventBridge in SNS": sns(json.dumps(eventbridge(EVENT))),
    "SNS in EventBridge": eventbridge(sns(BARE)),
    "SNS in SNS": sns(json.dumps(sns(BARE))),
    "CloudEvents in EventBridge": eventbridge(cloudevent(json.loads(without("type")))),
    "CloudEvents in SNS": sns(json.dumps(cloudevent(EVENT))),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_event_is_found_in_its_envelopes(name):
    assert parse(json.dumps(WRAPPED[name])) == PARSED


@pytest.mark.parametrize(
    ("envelope", "reason"),
    [
        (eventbridge("text"), "not_json"),
        (eventbridge("[]"), "not_an_object"),
        (eventbridge([EVENT]), "not_an_object"),
        (eventbridge(5), "not_an_object"),
        (eventbridge({}), "invalid_field"),
        (eventbridge(json.loads(without("type")), "Job Settled"), "unknown_type"),
        (eventbridge(None), "unknown_type"),
        (sns("plain words"), "not_json"),
        (sns(None), "unknown_type"),
        ({**sns(BARE), "Type": "SubscriptionConfirmation"}, "unknown_type"),
        (cloudevent(EVENT, type="job.started"), "unknown_type"),
        (cloudevent({**EVENT, "type": "job.started"}), "unknown_type"),
        (cloudevent(json.loads(without("type")), type="job.started"), "unknown_type"),
        (cloudevent(json.loads(without("type")), type=None), "unknown_type"),
        (cloudevent(None), "invalid_field"),
        (sns(json.dumps(sns(json.dumps(sns(BARE))))), "unknown_type"),
    ],
)
def test_an_envelope_with_nothing_for_us_in_it_is_refused(envelope, reason):
    assert refusal(json.dumps(envelope))[0] == reason


def test_the_envelopes_own_version_and_ids_play_no_part():
    assert parse(json.dumps({**eventbridge(EVENT), "version": "0", "job_id": "other", "retry": 9})) == PARSED


NAMES = st.sampled_from(
    ["type", "version", "job_id", "outcome", "kind", "settled_at", "retry", "detail", "detail-type", "Message", "Type",
     "specversion", "data"]
) | st.text(max_size=5)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=12,
)
LIKELY = st.fixed_dictionaries(
    {"type": st.just("job.settled") | JSON, "job_id": st.just("job-1") | JSON, "outcome": st.just("failed") | JSON},
    optional=dict.fromkeys(("version", "kind", "settled_at", "retry", "detail", "Message", "data"), JSON),
)


@settings(max_examples=200, deadline=None, database=None)
@given(text=st.one_of(st.text(), st.none(), JSON.map(json.dumps), LIKELY.map(json.dumps)))
@example(text='{"type": "job.settled", "job_id": "j", "outcome": "o", "version": 1e400}')
@example(text='{"type": "job.settled", "job_id": "j", "outcome": "o", "settled_at": "9999-12-31T23:59:59-12:00"}')
@example(text='{"type": "job.settled", "job_id": "j", "outcome": "o", "settled_at": "2026-W01-1T00Z"}')
def test_nothing_but_unprocessable_is_ever_raised(text):
    try:
        parsed: object = parse(text)
    except Unprocessable as refused:
        parsed = refused.reason
    reasons = ("not_json", "not_an_object", "unknown_type", "unsupported_version", "invalid_field")
    assert isinstance(parsed, JobSettled) or parsed in reasons
