"""`notices parked`: what is on the dead-letter queue, put back where that helps, and never lost."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cli.operator import Operator
from fakes.gate import Lever, raising
from fakes.queues import DEAD_LETTERS_URL, sqs_error
from fakes.world import KIND, settled


@pytest.fixture
def operator() -> Operator:
    """One message of each fate, one of them parked long ago under a reason that was repaired."""
    operator = Operator()
    world = operator.world
    for number in range(2, 6):
        world.job(f"job-{number}")
    world.job("job-3", removed_at="2026-11-29")
    world.worker().told("job-4")
    operator.parks(settled("job-1"))
    operator.parks("{", "not_json")
    operator.parks(settled("job-3"))
    operator.parks(settled("job-4"))
    operator.parks(settled("job-5", retry=7))
    operator.parks(settled("job-2", kind=KIND), "kind_mismatch")
    return operator


def fates(operator: Operator, *words: str) -> list[tuple[str | None, str]]:
    return [(each["job_id"], each["fate"]) for each in operator.asks("parked", *words)["messages"]]


ALL = [
    ("job-1", "ready"),
    (None, "broken"),
    ("job-3", "skipped"),
    ("job-4", "handled"),
    ("job-5", "void"),
    ("job-2", "ready"),
]


def test_each_message_is_read_again_and_its_fate_told(operator):
    assert fates(operator) == ALL


def test_looking_takes_nothing_off_and_hides_nothing_afterwards(operator):
    before = list(operator.world.queues.parked)
    operator.types("parked")
    assert operator.world.queues.parked == before
    assert not operator.sqs.hidden


@pytest.mark.parametrize(
    "body",
    [
        settled(settled_at="yesterday"),
        "[1]",
        '{"type": "other"}',
        settled(version="2"),
        "",
        settled("job 1"),
        "{" * 100_000,
    ],
)
def test_what_would_be_parked_again_is_broken(body):
    operator = Operator()
    operator.parks(body or "(no body)", "invalid_field")
    assert [fate for _, fate in fates(operator)] == ["broken"]


def test_a_kind_that_still_contradicts_the_job_is_broken():
    operator = Operator()
    operator.world.job(kind="export")
    operator.parks(settled(kind=KIND), "kind_mismatch")
    assert fates(operator) == [("job-1", "broken")]


def test_a_retry_that_still_counts_is_ready():
    operator = Operator()
    worker = operator.world.worker()
    worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    operator.parks(settled(retry=operator.world.the_notice().revision))
    assert fates(operator) == [("job-1", "ready")]


def test_judging_a_retry_closes_nothing():
    operator = Operator()
    worker = operator.world.worker()
    worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    operator.parks(settled(retry=operator.world.the_notice().revision))
    operator.world.job(removed_at="2026-11-29")
    before = operator.world.store.snapshot()
    assert fates(operator) == [("job-1", "skipped")]
    assert operator.world.store.snapshot() == before


def test_what_is_ready_is_put_back_and_the_rest_stays(operator):
    assert operator.asks("parked", "--redrive", "--yes") == {"done": ["parked-1", "parked-6"], "not_done": []}
    assert [event["job_id"] for event in operator.world.queues.events()] == ["job-1", "job-2"]
    assert fates(operator) == ALL[1:-1]
    operator.runs_the_queue()
    assert operator.world.the_notice("job-1").status == "delivered"
    assert operator.world.the_notice("job-2").status == "delivered"


def test_a_message_is_deleted_only_after_it_was_sent(operator):
    operator.types("parked", "--redrive", "--yes")
    calls = [call for call in operator.gate.calls if call in ("SendMessage", "DeleteMessage")]
    assert calls == ["SendMessage", "DeleteMessage"] * 2


def test_a_send_that_fails_leaves_the_message_where_it_is(operator):
    operator.world.queues.faults.append(sqs_error("ServiceUnavailable"))
    document = operator.asks("parked", "--redrive", "--yes", code=1)
    assert document["not_done"] == ["parked-1", "parked-6"]
    assert fates(operator) == ALL


def test_a_delete_that_fails_after_the_send_is_repeated_without_harm(operator):
    operator.gate.on_call = Lever(raising(sqs_error("ServiceUnavailable")), operation="DeleteMessage")
    operator.types("parked", "--redrive", "--yes", code=1)
    operator.types("parked", "--redrive", "--yes")
    operator.runs_the_queue()
    assert len(operator.world.provider.accepted) == 3  # job-4 was told before


def test_an_interruption_leaves_what_was_not_yet_put_back(operator):
    operator.gate.on_call = Lever(raising(KeyboardInterrupt()), operation="SendMessage", nth=2)
    operator.types("parked", "--redrive", "--yes", code=130)
    assert not operator.sqs.hidden
    assert fates(operator) == ALL[1:]


def test_only_the_messages_chosen_are_put_back(operator):
    assert operator.asks("parked", "--redrive", "--yes", "--message", "parked-6")["done"] == ["parked-6"]
    assert operator.asks("parked", "--redrive", "--yes", "--parked-as", "receives")["done"] == ["parked-1"]


def test_nothing_is_done_without_a_yes(operator):
    for words in (("--redrive",), ("--drop", "--fate", "broken", "--reason", "x")):
        operator.types("parked", *words, answer="n\n", code=4)
    assert fates(operator) == ALL
    assert not operator.world.queues.sent


def test_dropping_names_what_was_dropped_and_why_and_saves_it_first(operator, tmp_path):
    saved = tmp_path / "dropped.jsonl"
    words = (
        "parked",
        "--drop",
        "--fate",
        "broken",
        "--fate",
        "void",
        "--reason",
        "producer mended",
        "--save",
        str(saved),
    )
    document = operator.asks(*words, "--yes")
    assert document == {"done": ["parked-2", "parked-5"], "not_done": [], "reason": "producer mended"}
    assert [json.loads(line)["body"] for line in saved.read_text().splitlines()] == ["{", settled("job-5", retry=7)]
    assert [fate for _, fate in fates(operator)] == ["ready", "skipped", "handled", "ready"]


def test_what_cannot_be_saved_is_not_dropped(operator, tmp_path):
    operator.types(
        "parked", "--drop", "--fate", "broken", "--reason", "x", "--save", str(tmp_path / "no" / "x"), "--yes", code=4
    )
    assert fates(operator) == ALL


@pytest.mark.parametrize(
    "words",
    [
        ("--drop",),
        ("--drop", "--reason", "x"),
        ("--drop", "--fate", "broken"),
        ("--drop", "--fate", "broken", "--reason", "..."),
        ("--redrive", "--drop", "--reason", "x"),
        ("--reason", "x"),
        ("--save", "x"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(operator, words):
    operator.types("parked", *words, code=2)
    assert operator.gate.calls == []


def test_bodies_are_shown_on_demand_alone(operator):
    assert '"job.settled"' not in operator.types("parked").output
    assert '"job.settled"' in operator.types("parked", "--bodies").output


def test_a_look_that_is_bounded_says_so(operator):
    text = operator.types("parked", "--most", "2").output
    assert "looked at 2 messages of about 6; --most looks at more" in text


def test_an_empty_queue_has_nothing_to_say():
    assert Operator().asks("parked") == {"messages": [], "about": 0, "complete": True, "hidden": 0}
    assert "nothing to do" in Operator().types("parked", "--redrive").output


def test_each_message_says_when_it_is_deleted_and_the_oldest_comes_first():
    operator = Operator()
    operator.parks(settled("job-1"), "not_json")
    operator.parks(settled("job-2"), sent=timedelta(days=9))
    operator.parks(settled("job-3"), sent=timedelta(days=13))
    messages = operator.asks("parked")["messages"]
    assert [(each["job_id"], each["deleted_at"]) for each in messages] == [
        ("job-3", "2026-11-30T10:00:00.000Z"),
        ("job-2", "2026-12-04T10:00:00.000Z"),
        ("job-1", "2026-12-13T10:00:00.000Z"),
    ]
    text = operator.types("parked").output
    assert "kept until  2026-11-30 10:00:00 UTC (in 1 day)" in text
    assert text.index("in 1 day)") < text.index("in 5 days)") < text.index("in 14 days)")


def test_what_somebody_else_holds_is_not_passed_over_in_silence():
    operator = Operator()
    operator.sqs.attributes[DEAD_LETTERS_URL]["ApproximateNumberOfMessagesNotVisible"] = "25"
    assert operator.asks("parked")["hidden"] == 25
    text = " ".join(operator.types("parked", "--redrive").output.split())
    assert "About 25 more are held by somebody else who looks now" in text


def test_what_somebody_took_since_the_count_is_not_passed_over_either():
    operator = Operator()
    operator.parks(settled("job-1"))
    operator.sqs.hidden["parked-1"] = 60
    assert operator.asks("parked")["hidden"] == 1
