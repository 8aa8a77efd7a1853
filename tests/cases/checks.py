"""What a run came to against what a case says it should (the words are those of the cases)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cases.stage import Stage

Expected = dict[str, Any]
Item = dict[str, Any]

ELAPSED = timedelta(seconds=20)  # a slow machine between the start of a call and its writes
_WORDS = re.compile(r"(about now \+|>= now \+|claimed_at \+) (\d+) (s|min)")


@dataclass(frozen=True, slots=True)
class Played:
    """One call of a handler."""

    event: dict[str, Any]
    answer: Any
    raised: Exception | None
    ses_calls: int
    started: datetime


def check(stage: Stage, expected: Expected, played: Played, seed: Item) -> None:
    """Every key that a machine can check; absent ones are not checked."""
    if expected.get("raises"):
        assert played.raised is not None
    elif played.raised is not None:
        raise played.raised
    if "failures" in expected:
        assert _failures(played) == sorted(expected["failures"])
    if "ses_calls" in expected:
        assert played.ses_calls == expected["ses_calls"]
    if "parked" in expected:
        _check_parked(stage, expected["parked"], played)
    for wanted in expected.get("notices", ()):
        _check_notice(stage, wanted, played)
    for job_id in expected.get("no_notice", ()):
        assert not [notice for notice in stage.notices() if notice["job_id"] == job_id]
    for job_id, address in expected.get("recipients", {}).items():
        assert [mail.to for mail in stage.mails(job_id)] == [address]
    for job_id, tags in expected.get("tags", {}).items():
        (mail,) = stage.mails(job_id)
        assert tags.items() <= mail.tags.items()
    for key in expected.get("untouched", ()):
        assert stage.notice(*key) == _seeded(seed, *key)
    for key in expected.get("given_up", ()):
        _check_given_up(stage, *key)
    if "enqueued" in expected or "enqueued_count" in expected:
        _check_enqueued(stage, expected)


def check_answer(played: Played) -> None:
    """The exact shape of a batch's answer: ids of the batch alone, each once (BA-02)."""
    if played.raised is not None or "Records" not in played.event:
        return
    assert list(played.answer) == ["batchItemFailures"]
    assert all(list(each) == ["itemIdentifier"] for each in played.answer["batchItemFailures"])
    ids = _failures(played)
    assert len(ids) == len(set(ids))
    assert all(ids)
    assert set(ids) <= {record.get("messageId") for record in played.event["Records"]}


def check_lines(played: Played, lines: list[Item]) -> None:
    """One line for each record; of one that was told, with its job, its outcome, its result and the time it took."""
    ids = Counter(record["messageId"] for record in played.event.get("Records", ()) if record.get("messageId"))
    assert Counter(line["message_id"] for line in lines if line.get("message_id") in ids) == ids
    for line in lines:
        if "milliseconds" in line:
            assert {"job_id", "outcome", "result"} <= line.keys()
            assert line["result"] == "skipped" or line["kind"]
            assert "attempt" in line or line["result"] not in ("delivered", "failed", "suppressed")


def check_notices(stage: Stage) -> None:
    """What holds of every notice at any time (DESIGN 2): handled without a next attempt, pending with one."""
    for notice in stage.notices():
        assert notice["status"] in ("pending", "delivered", "suppressed", "failed")
        handled = notice["status"] in ("delivered", "suppressed")
        assert not (handled and ("next_attempt_at" in notice or "error" in notice)), notice
        assert notice["status"] != "pending" or "next_attempt_at" in notice, notice
        assert notice["status"] != "failed" or notice["error"], notice
        assert (notice["status"] == "pending") == ("handled_at" not in notice), notice
        error = notice.get("error", "x")
        assert len(error) <= 256
        assert error.isprintable()


def check_privacy(stage: Stage, seed: Item, event: Item) -> None:
    """No body, address, name, message text or link in a log line, a metric or a notice."""
    stored = json.dumps(stage.notices(), default=str, ensure_ascii=False)
    written = stage.output.text
    for text in filter(_private_enough, _private(seed, event)):
        for form in {text, json.dumps(text)[1:-1], text.strip().lower()}:
            assert form not in stored, f"stored: {form[:80]!r}"
            assert form not in written, f"written: {form[:80]!r}"


def _private(seed: Item, event: Item) -> Iterator[str]:
    for requester in seed.get("requesters", ()):
        yield from (requester.get("email") or "", requester.get("name") or "")
    for job in seed.get("jobs", ()):
        yield from (value for value in (job.get("details") or {}).values() if isinstance(value, str))
    for record in event.get("Records", ()):
        yield record["body"]
    yield from ("dana@", "https://", "spy@", "example.com>")


def _private_enough(text: str) -> bool:
    return len(text.strip()) > 3


def _failures(played: Played) -> list[str]:
    return sorted(each["itemIdentifier"] for each in played.answer["batchItemFailures"])


def _check_parked(stage: Stage, expected: list[Item], played: Played) -> None:
    """On the dead-letter queue, with the body as it came; one warning each, and counted."""
    bodies = {record.get("messageId"): record["body"] for record in played.event["Records"]}
    found: list[tuple[str | None, str]] = []
    for message in stage.take("JOB_SETTLED_DEAD_LETTER_QUEUE_URL"):
        values = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
        assert set(values) == {"reason", "source_message_id"}
        source = values["source_message_id"]
        message_id = source if source in bodies else None
        assert source
        assert message["Body"] == bodies[message_id]
        found.append((message_id, values["reason"]))
    wanted = [(each["source_message_id"], each["reason"]) for each in expected]
    assert Counter(found) == Counter(wanted)
    warnings = [(line.get("message_id"), line["reason"]) for line in stage.output.at("WARNING") if "reason" in line]
    assert Counter(warnings) == Counter(wanted)
    assert stage.output.total("EventParked") == len(wanted)


def _check_notice(stage: Stage, wanted: Item, played: Played) -> None:
    notice = stage.notice(wanted["job_id"], wanted["outcome"])
    assert notice is not None, f"no notice for {wanted['job_id']}"
    for name, value in wanted.items():
        if name == "error_starts_with":
            codes = value if isinstance(value, list) else [value]
            assert notice["error"].startswith(tuple(codes)), notice["error"]
        elif name == "attempt_log_results":
            assert sorted(entry["result"] for entry in notice["attempt_log"]) == sorted(value)
        elif name == "feedback":
            found = notice.get("feedback")
            assert (found and found["type"]) == (value and value.replace(" ", "_"))
        elif name == "next_attempt_at" and value is not None:
            _check_time(value, notice, played.started)
        else:
            assert notice.get(name) == value, f"{name} of {wanted['job_id']}: {notice.get(name)!r}"


def _check_time(words: str, notice: Item, now: datetime) -> None:
    match = _WORDS.fullmatch(words)
    assert match, words
    wait = timedelta(seconds=int(match[2]) * (60 if match[3] == "min" else 1))
    found = time_of(notice["next_attempt_at"])
    match match[1]:
        case "about now +":
            assert now + 0.8 * wait <= found <= now + 1.2 * wait + ELAPSED
        case ">= now +":
            assert found >= now + wait
        case "claimed_at +":
            assert found == time_of(notice["claimed_at"]) + wait


def _check_given_up(stage: Stage, job_id: str, outcome: str) -> None:
    notice = stage.notice(job_id, outcome)
    assert notice is not None
    assert notice["status"] == "failed"
    assert notice["error"].startswith("gave_up: ")
    assert "next_attempt_at" not in notice


def _check_enqueued(stage: Stage, expected: Expected) -> None:
    """Each once, naming the revision that the move wrote."""
    bodies = [json.loads(message["Body"]) for message in stage.take("JOB_SETTLED_QUEUE_URL")]
    found = [(body["job_id"], body["outcome"]) for body in bodies]
    if "enqueued" in expected:
        assert sorted(found) == sorted(tuple(key) for key in expected["enqueued"])
    if "enqueued_count" in expected:
        assert len(found) == len(set(found)) == expected["enqueued_count"]
    for body in bodies:
        assert body["type"] == "job.settled"
        notice = stage.notice(body["job_id"], body["outcome"])
        assert notice is not None
        assert body["retry"] == notice["revision"]


def _seeded(seed: Item, job_id: str, outcome: str) -> Item:
    return next(each for each in seed["notices"] if (each["job_id"], each["outcome"]) == (job_id, outcome))


def time_of(text: str) -> datetime:
    """A time as the table stores it."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")
