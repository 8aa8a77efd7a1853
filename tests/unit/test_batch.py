"""An SQS batch in, its partial failures out (DESIGN 3.1, 3.5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.context import FakeContext
from fakes.telemetry import FakeTelemetry
from notices.batch import Batch, Record, Unreportable, in_order
from notices.database import DatabaseError


class Handler:
    """Fails for the bodies named, and remembers what it was given."""

    def __init__(self, *failing: str, error: Exception | None = None) -> None:
        self.failing = failing
        self.error = error or RuntimeError("dana@example.com")
        self.given: list[str | None] = []

    def __call__(self, record: Record) -> None:
        self.given.append(record.body)
        if record.body in self.failing:
            raise self.error


def event(*records: tuple[object, object]) -> dict:
    return {"Records": [{"messageId": message_id, "body": body} for message_id, body in records]}


def run(handler, batch: dict, context: FakeContext | None = None, telemetry: FakeTelemetry | None = None) -> dict:
    return Batch(in_order(handler), worst_case=30, telemetry=telemetry or FakeTelemetry())(
        batch, context or FakeContext()
    )


def test_a_batch_that_goes_well_reports_nothing():
    assert run(Handler(), event(("1", "a"), ("2", "b"))) == {"batchItemFailures": []}


@pytest.mark.parametrize("batch", [{}, {"Records": []}, {"Records": None}])
def test_an_empty_batch_is_no_failure(batch):
    assert run(Handler(), batch) == {"batchItemFailures": []}


def test_only_what_failed_is_reported_and_the_rest_is_handled_in_order():
    handler = Handler("b")
    answer = run(handler, event(("1", "a"), ("2", "b"), ("3", "c")))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert handler.given == ["a", "b", "c"]


def test_when_every_record_fails_they_are_listed_instead_of_raised():
    answer = run(Handler("a", "b"), event(("1", "a"), ("2", "b")))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}, {"itemIdentifier": "2"}]}


def test_no_id_is_listed_twice():
    answer = run(Handler("a"), event(("1", "a"), ("1", "a"), ("2", "a")))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}, {"itemIdentifier": "2"}]}


@pytest.mark.parametrize("missing", [None, "", 5])
def test_a_record_without_a_message_id_that_is_handled_is_no_matter(missing):
    assert run(Handler(), event((missing, "a"))) == {"batchItemFailures": []}
    assert run(Handler(), {"Records": [{"body": "a"}]}) == {"batchItemFailures": []}


@pytest.mark.parametrize("missing", [None, "", 5])
def test_a_record_without_a_message_id_that_fails_makes_the_invocation_raise_after_the_others(missing):
    handler = Handler("b")
    with pytest.raises(Unreportable):
        run(handler, event(("1", "a"), (missing, "b"), ("3", "c")))
    assert handler.given == ["a", "b", "c"]


@pytest.mark.parametrize("nonsense", [None, 5, "record", ["a"]])
def test_what_is_no_record_is_one_without_id_and_body(nonsense):
    handler = Handler()
    assert run(handler, {"Records": [nonsense, {"messageId": "2", "body": "b"}]}) == {"batchItemFailures": []}
    assert handler.given == [None, "b"]


@pytest.mark.parametrize("body", [None, 5, {"type": "job.settled"}, []])
def test_a_body_that_is_no_text_is_none(body):
    handler = Handler()
    run(handler, event(("1", body)))
    assert handler.given == [None]


def test_a_record_is_started_only_while_there_is_time_to_finish_it():
    handler = Handler()
    telemetry = FakeTelemetry()
    context = FakeContext(script=[90_000, 60_000, 30_000, 29_999], remaining=1_000)
    answer = run(handler, event(*((str(number), str(number)) for number in range(1, 6))), context, telemetry)
    assert handler.given == ["1", "2", "3"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "4"}, {"itemIdentifier": "5"}]}
    assert len(telemetry.said("record not started, no time left")) == 2
    assert not [line for line in telemetry.lines if line.level == "error"]


def test_a_failure_is_logged_with_its_place_and_without_its_text():
    telemetry = FakeTelemetry()
    run(Handler("a"), event(("1", "a")), telemetry=telemetry)
    (line,) = telemetry.said("record goes back")
    assert line.fields["message_id"] == "1"
    assert line.fields["fault"].startswith("RuntimeError in __call__ (test_batch.py:")
    assert "dana" not in str(telemetry.lines)


def test_a_database_error_is_logged_with_its_table():
    telemetry = FakeTelemetry()
    error = DatabaseError("PutItem", "Notices", "AccessDeniedException")
    run(Handler("a", error=error), event(("1", "a")), telemetry=telemetry)
    (line,) = telemetry.said("record goes back")
    assert line.fields["fault"] == "DatabaseError: PutItem on Notices: AccessDeniedException"


def test_nothing_is_carried_over_from_one_batch_to_the_next():
    handler = Handler("a")
    batch = Batch(in_order(handler), worst_case=30, telemetry=FakeTelemetry())
    assert batch(event(("1", "a")), FakeContext()) == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    assert batch(event(("2", "b")), FakeContext()) == {"batchItemFailures": []}


RECORDS = st.lists(st.tuples(st.text(min_size=1, max_size=5), st.sampled_from(["good", "bad"])), max_size=12)


@settings(database=None, deadline=None)
@given(records=RECORDS, times=st.lists(st.integers(0, 60_000), max_size=12))
def test_the_answer_has_exactly_the_shape_that_lambda_wants(records, times):
    handler = Handler("bad")
    answer = run(handler, event(*records), FakeContext(script=times))

    assert list(answer) == ["batchItemFailures"]
    ids = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
    assert all(list(failure) == ["itemIdentifier"] for failure in answer["batchItemFailures"])
    assert all(isinstance(message_id, str) and message_id for message_id in ids)
    assert len(set(ids)) == len(ids)
    assert set(ids) <= {message_id for message_id, _ in records}
    assert {message_id for message_id, body in records if body == "bad"} <= set(ids)
    assert json.loads(json.dumps(answer)) == answer
