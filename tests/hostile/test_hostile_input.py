"""Whatever arrives: a small run of the fuzzer, the inputs that once did harm, and the largest that there can be.

`make fuzz` is the large run (`hostile.fuzz`).
"""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from collections.abc import Callable

import pytest

from fakes.world import World, catalogue, settled
from hostile.fuzz import SAVED, Chunk, made, saved, try_chunk
from hostile.inputs import MARKER, TARGETS
from hostile.mutation import mutate, shrink
from hostile.properties import check, check_letter, check_message
from notices.mail import Letter
from notices.message import Message

INPUTS = 500
SAVED_INPUTS = sorted(SAVED.glob("*.json"))
LARGEST = 1_048_576  # SQS: 1 MiB with its attributes


@pytest.mark.parametrize("target", TARGETS)
def test_what_must_hold_holds_for_hostile_input(target: str) -> None:
    chunk = Chunk(target, random.randrange(2**31), INPUTS)
    done = try_chunk(chunk)
    assert done.failure is None, f"{chunk}: {done.failure}"
    assert done.inputs >= INPUTS


@pytest.mark.parametrize("path", SAVED_INPUTS, ids=[path.stem for path in SAVED_INPUTS])
def test_an_input_that_was_kept_does_no_harm(path) -> None:
    check(json.loads(path.read_text(encoding="utf-8")))


LARGE: dict[str, Callable[[int], str]] = {
    "nested lists": lambda size: "[" * size,
    "nested objects": lambda size: '{"a":' * (size // 5),
    "one long number": lambda size: '{"job_id":' + "9" * (size - 20) + "}",
    "one long text": lambda size: '{"type":"' + "x" * (size - 20) + '"}',
    "escapes": lambda size: '{"job_id":"' + "\\u0041" * (size // 6 - 10) + '"}',
    "many fields": lambda size: "{" + ",".join(f'"{number}":0' for number in range(size // 10)) + "}",
    "the same field": lambda size: "{" + ",".join(['"type":0'] * (size // 9 - 1)) + "}",
    "many numbers": lambda size: '{"a":[' + "1," * (size // 2 - 10) + "1]}",
    "many lists": lambda size: '{"a":[' + "[]," * (size // 3 - 10) + "[]]}",
    "texts in texts": lambda size: _in_texts(size),
    "a moment": lambda size: settled(settled_at="2026-01-01T00:00:00" + "0" * (size - 200) + "+00:00"),
    "a kind": lambda size: settled(kind="k" * (size - 200)),
    "an unknown field": lambda size: settled(more="\u00e9" * (size // 6 - 40)),
    "white space": lambda size: " " * (size - 2) + "{}",
}


def _in_texts(size: int) -> str:
    event = settled()
    while len(event) < size // 3:
        event = json.dumps({"detail-type": "job.settled", "detail": event})
    return event


@pytest.mark.parametrize("shape", LARGE)
def test_the_largest_message_costs_little_time_and_memory_and_its_neighbour_nothing(shape: str) -> None:
    body = LARGE[shape](LARGEST)
    assert len(body.encode()) <= LARGEST
    world = World()
    world.worker().handle(settled("none"))  # what is made once is made
    tracemalloc.start()
    try:
        started = time.process_time()
        assert world.worker().handle(body, settled(outcome="failed")) == []
        seconds = time.process_time() - started
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seconds < 10, "tracing included, which makes it several times slower"
    assert peak < 150 * 1024 * 1024, "a function has 512 MiB"
    assert world.the_notice(outcome="failed").status == "delivered"


LARGEST_TEXT = 60_000  # DynamoDB: an item has 400 KB, and six attributes share them
TEXTS: dict[str, str] = {
    "spaces": " ",
    "spaces within": " " * 10_000 + "x",
    "line breaks and spaces": "\n ",
    "parts of a language": "en-",
    "folders of a time zone": "a/",
    "marks on one letter": "\u0301",
    "joined signs": "\U0001f468\u200d",
    "halves of flags": "\U0001f1e6",
    "isolates": "\u2068",
    "addresses": "a@",
    "labels of a domain": "a.",
    "template syntax": "{{ 7777*7777 }}",
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_largest_texts_of_a_job_and_its_requester_cost_little_time_and_their_neighbour_nothing(text: str) -> None:
    large = (TEXTS[text] * LARGEST_TEXT)[:LARGEST_TEXT] + "x"
    facts = {"workspace_id": "ws-1", "workspace_name": large, "failure_reason": large}
    world = World()
    world.job("job-2", requester_id="requester-2", details={**facts, "finished_at": "2026-03-01T10:00:00+00:00"})
    world.requester("requester-2", name=large, locale=large, time_zone=large)
    world.job("job-3", requester_id="requester-3", details=facts)
    world.requester("requester-3", email=f"x{large}@example.com")
    world.worker().handle(settled("none"))  # what is made once is made

    started = time.process_time()
    assert world.worker().handle(settled("job-2"), settled("job-3"), settled()) == []
    seconds = time.process_time() - started

    assert seconds < 1
    assert world.the_notice().status == "delivered"
    assert world.the_notice("job-2").status == "delivered"
    assert world.the_notice("job-3").error == "address_invalid"
    for sent in world.provider.letters:
        check_letter(sent, "customer", "dana@example.com")


# --- The fuzzer itself can fail --------------------------------------------------------------------

BASE = "https://app.example.com/workspaces/ws-1"


def letter(**changes: str) -> Letter:
    world = World()
    world.worker().handle(settled())
    sent = world.provider.letters[0]
    fields = {name: getattr(sent, name) for name in ("recipient", "subject", "text", "html", "tags")}
    for name, value in changes.items():
        old, _, new = value.partition("=>")
        fields[name] = fields[name].replace(old, new) if old else fields[name] + new
    return Letter(**fields)


HARM = {
    "another recipient": {"recipient": "=>, evil@example.com"},
    "a second line in the subject": {"subject": "=>\r\nBcc: evil@example.com"},
    "a script": {"html": "</body>=><script>alert(1)</script></body>"},
    "an attribute": {"html": "<h1 =><h1 onclick='x' "},
    "an image": {"html": "</body>=><img src='https://evil.example/x'></body>"},
    "another link": {"html": f'href="{BASE}"=>href="https://evil.example/"'},
    "a link of the same beginning": {"html": f'href="{BASE}"=>href="https://app.example.com.evil.example/"'},
    "a staff link": {"html": f'href="{BASE}"=>href="https://hq.example.com/workspaces/ws-1"'},
    "another link in the text": {"text": f"{BASE}=>https://evil.example/"},
    "an executed template": {"text": "=>60481729"},
    "a control character": {"text": "=>\x07"},
    "a comment": {"html": "</body>=><!-- x --></body>"},
}


@pytest.mark.parametrize("harm", HARM)
def test_harm_done_to_a_letter_is_seen(harm: str) -> None:
    check_letter(letter(), "customer", "dana@example.com")
    with pytest.raises(AssertionError):
        check_letter(letter(**HARM[harm]), "customer", "dana@example.com")


def test_a_failing_input_is_found_made_small_and_saved(monkeypatch, tmp_path) -> None:
    def fails_for_evil(hostile: dict) -> None:
        assert "evil" not in json.dumps(hostile), "evil"

    monkeypatch.setattr("hostile.fuzz.check", fails_for_evil)
    monkeypatch.setattr("hostile.fuzz.FOLDER", tmp_path)
    done = try_chunk(Chunk("data", 1, 2000))
    assert done.failure is not None
    (path,) = (tmp_path / "failures").iterdir()
    assert "evil" in path.read_text(encoding="utf-8")
    assert len(path.read_text(encoding="utf-8")) < 2000


@pytest.mark.parametrize("target", TARGETS)
def test_mutants_of_mutants_are_inputs_of_the_same_target_and_most_differ(target: str) -> None:
    chance = random.Random(1)
    pool: list[dict] = saved(target)
    made(target, 1, 20, pool.append)
    changed = 0
    for _ in range(2000):
        at = chance.randrange(len(pool))
        mutant = mutate(pool[at], chance, chance.choice(pool))
        assert mutant["target"] == target
        assert len(json.dumps(mutant)) < 2_000_000
        changed += mutant != pool[at]
        pool[at] = mutant
    assert changed > 1500


def test_shrinking_keeps_what_fails() -> None:
    records = [{"messageId": f"message-{number}", "body": "x" * 50 + MARKER} for number in range(3)]
    lesser = shrink({"target": "feedback", "records": records}, lambda each: MARKER in json.dumps(each))
    assert lesser["records"] == [{"messageId": lesser["records"][0]["messageId"], "body": MARKER}]


def test_a_message_whose_isolates_stay_open_is_seen() -> None:
    good = letter()
    with pytest.raises(AssertionError):
        check_message(Message("\u2068" + good.subject, good.text, good.html), "customer", catalogue)
