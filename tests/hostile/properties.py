"""What must hold whatever arrives (issue: "nothing escapes the handler ..."); `check` raises AssertionError where not.

    check({"target": "job_settled", "records": [...], ...})

It runs the real code in the world of `fakes.world`: receiving, parsing, the workflow, rendering, SES events.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from fakes.context import FakeContext
from fakes.world import JOBS, NOTICES, REQUESTERS, Worker, World, catalogue, settled
from hostile.inputs import (
    CLAIM_ID,
    EXECUTED,
    JOB_ID,
    MARKER,
    NEIGHBOUR,
    NEIGHBOURS_REQUESTER,
    OUTCOME,
    REQUESTER_ID,
    tag,
)
from notices.batch import Batch, Unreportable, in_order
from notices.feedback import News
from notices.jobs import Job, JobItem, Requester, RequesterItem, job_of, requester_of
from notices.kinds import KINDS, Catalogue, load_catalogue
from notices.mail import Letter, Mail, usable_address
from notices.message import BaseUrls, Message, render

STAFF_URL, CUSTOMER_URL = "https://hq.example.com", "https://app.example.com"
SECONDS = 5.0  # of processor time for one input, on a slow and busy machine; the usual one takes milliseconds

ERROR = re.compile(r"[a-z_]+(: [^\n\r]*)?")
CODES = frozenset(
    [
        "address_missing",
        "address_invalid",
        "tenant_mismatch",
        "provider_refused",
        "requester_missing",
        "template_error",
        "throttled",
        "quota_exceeded",
        "provider_unreachable",
        "provider_misconfigured",
        "sender_unset",
        "internal_error",
        "provider_unknown",
        "reopened",
        "gave_up",
        "job_removed",
        "no_requester",
        "undeclared",
        "kind_mismatch",
    ]
)
REASONS = frozenset(
    {"not_json", "not_an_object", "unknown_type", "unsupported_version", "invalid_field", "kind_mismatch"}
)
MAILBOX = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}")
TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
JOB = re.compile(r"[\x21-\x7e]{1,128}")
IDS = {"job_id", "requester_id", "tenant_id", "provider_reference", "reference", "message_id", "source_message_id"}
UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ufffe\uffff\ud800-\udfff]")


def check(hostile: Mapping[str, Any]) -> None:
    """Run one input and check all that must hold.

    Raises:
        AssertionError: something that must hold does not. Anything else that is raised has escaped the code.
    """
    started = time.process_time()
    {"job_settled": _job_settled, "data": _data, "feedback": _feedback, "message": _message}[hostile["target"]](hostile)
    took = time.process_time() - started
    assert took < SECONDS, f"one input took {took:.1f} s"


# --- The targets -----------------------------------------------------------------------------------


def _job_settled(hostile: Mapping[str, Any]) -> None:
    world = _world_with_neighbour()
    world.job("job-2", requester_id="requester-1")
    worker, records = world.worker(), _with_neighbour(hostile, settled(NEIGHBOUR))

    answer = _answer(Batch(worker.receive, worst_case=60, telemetry=world.telemetry), records)

    _check_answer(answer, records)
    reported = len(answer["batchItemFailures"]) if answer else 0
    handled, parked = world.telemetry.said("record handled"), world.telemetry.said("event parked")
    assert reported == 0, f"an event that is neither handled nor parked: {world.telemetry.said('record goes back')}"
    assert len(handled) + len(parked) == len(records), "each record has one fate"
    assert len(world.queues.parked) == len(parked) == world.telemetry.total("EventParked")
    assert all(message.attributes["reason"] in REASONS and message.body for message in world.queues.parked)
    # nothing is sent for what was parked: every letter answers to one line of a handled record
    letters = sorted(letter.tags["notice_job"] for letter in world.provider.letters)
    assert letters == sorted(tag(line.fields["job_id"]) for line in handled if line.fields["result"] == "delivered")
    _check_neighbour_was_told(world)
    for letter in world.provider.letters:
        neighbours = letter.tags["notice_job"] == tag(NEIGHBOUR)
        check_letter(letter, "customer", "neighbour@example.com" if neighbours else "dana@example.com")
    _check_nothing_personal_is_kept(world)


def _data(hostile: Mapping[str, Any]) -> None:
    world = _world_with_neighbour(production=hostile["production"])
    job_id, outcome = hostile["job"]["job_id"]["S"], hostile["outcome"]
    if job_id == NEIGHBOUR:
        return
    world.store.place(JOBS, hostile["job"])
    world.store.place(REQUESTERS, hostile["requester"])
    if "notice" in hostile:
        world.store.place(NOTICES, hostile["notice"])
    worker = world.worker()
    if "refusal" in hostile:
        _refuse(worker, hostile["refusal"], world)
    records = [_record("message-1", settled(job_id, outcome)), _record("message-good", settled(NEIGHBOUR))]

    answer = _answer(Batch(worker.receive, worst_case=60, telemetry=world.telemetry), records)

    _check_answer(answer, records)
    assert answer is not None
    if "notice" not in hostile:
        assert answer["batchItemFailures"] == []
        _check_stored(world, job_id, outcome)
    if "refusal" not in hostile:
        _check_neighbour_was_told(world, mails=hostile["production"])
    assert hostile["production"] or not world.provider.letters
    requester = requester_of(RequesterItem.from_raw_data(hostile["requester"]))
    for letter in world.provider.letters:
        if letter.tags["notice_job"] == tag(job_id):
            job = job_of(JobItem.from_raw_data(hostile["job"]))
            assert requester.audience == "staff" or (job.tenant_id and job.tenant_id == requester.tenant_id)
            check_letter(letter, requester.audience, requester.email)
            assert letter.tags["notice_outcome"] == outcome
    if "notice" in hostile:
        world.store.discard(NOTICES, job_id, outcome)  # what was in it before is not our doing
    _check_nothing_personal_is_kept(world)


def _feedback(hostile: Mapping[str, Any]) -> None:
    world = _world_with_neighbour()
    for job_id, status in ((JOB_ID, hostile["status"]), (NEIGHBOUR, "pending")):
        world.store.place(NOTICES, _notice(job_id, status))
    good = json.dumps(
        {
            "eventType": "Send",
            "mail": {
                "messageId": "message-good",
                "tags": {"notice_job": [tag(NEIGHBOUR)], "notice_outcome": [OUTCOME], "notice_claim": [CLAIM_ID]},
            },
            "send": {},
        }
    )
    records = _with_neighbour(hostile, good)

    answer = _answer(
        Batch(in_order(world.worker().receive_feedback), worst_case=60, telemetry=world.telemetry), records
    )

    _check_answer(answer, records)
    assert world.the_notice(NEIGHBOUR).status == "delivered"
    assert not world.provider.letters
    assert not world.queues.by_url
    stored = [(item["job_id"]["S"], item["outcome"]["S"]) for item in world.store.items(NOTICES)]
    assert stored == sorted([(JOB_ID, OUTCOME), (NEIGHBOUR, OUTCOME)]), "an event never creates an item"
    notice = world.the_notice()
    assert notice.status in (hostile["status"], "delivered"), "feedback settles, and does nothing else to a status"
    if notice.feedback is not None:
        assert notice.feedback.type in set(News)
        assert re.fullmatch(r"[A-Za-z0-9_./ -]{0,200}", notice.feedback.detail or "")
    _check_nothing_personal_is_kept(world)


def _message(hostile: Mapping[str, Any]) -> None:
    kind = _everything().get("everything")
    assert kind is not None
    job = Job(hostile["job_id"], "everything", "tenant-1", "requester-1", hostile["details"])
    requester = Requester(
        "requester-1",
        "tenant-1",
        name=hostile["name"],
        audience=hostile["audience"],
        time_zone=hostile["time_zone"],
        locale=hostile["locale"],
    )
    rendered = render(kind, hostile["outcome"], job, requester, BASE_URLS)
    check_message(rendered, hostile["audience"], _everything)


# --- What must hold --------------------------------------------------------------------------------


def _check_answer(answer: Mapping[str, Any] | None, records: list[dict[str, Any]]) -> None:
    """The answer's shape is exact, and it names records of the batch alone, once each."""
    if answer is None:  # the one exception that DESIGN 2 names
        assert any(not record.get("messageId") or not isinstance(record["messageId"], str) for record in records)
        return
    assert set(answer) == {"batchItemFailures"}
    identifiers = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
    assert all(set(failure) == {"itemIdentifier"} for failure in answer["batchItemFailures"])
    assert len(set(identifiers)) == len(identifiers)
    assert set(identifiers) <= {record.get("messageId") for record in records}
    assert "message-good" not in identifiers, "no input makes one record cost another"
    json.dumps(answer)


def _check_neighbour_was_told(world: World, *, mails: bool = True) -> None:
    """No input makes one record cost another."""
    assert world.the_notice(NEIGHBOUR).status == ("delivered" if mails else "suppressed")
    letters = [letter for letter in world.provider.accepted if letter.letter.recipient == "neighbour@example.com"]
    assert len(letters) == (1 if mails else 0)


def _check_stored(world: World, job_id: str, outcome: str) -> None:
    """The record of an attempt, if one was made, is one that DESIGN 3.4 knows."""
    notice = world.notice(job_id, outcome)
    if notice is None:
        return
    assert notice.status in {"delivered", "suppressed", "failed"}, "it was attempted, and it has a result"
    if notice.status == "failed":
        assert notice.error is not None
        assert len(notice.error) <= 256
        assert ERROR.fullmatch(notice.error)
        assert notice.error.partition(":")[0] in CODES
        assert not notice.error.startswith("internal_error"), "no data is an error of ours"


def check_letter(letter: Letter, audience: str, email: str | None) -> None:
    """No header, recipient or link is injected."""
    assert letter.recipient == usable_address(email)
    assert MAILBOX.fullmatch(letter.recipient), "one mailbox"
    assert set(letter.tags) == {"notice_job", "notice_outcome", "notice_claim"}
    assert all(TAG.fullmatch(value) for value in letter.tags.values())
    check_message(Message(letter.subject, letter.text, letter.html), audience, catalogue)


def check_message(message: Message, audience: str, kinds: Callable[[], Catalogue]) -> None:
    """The subject is one line; nothing in the data is executed or becomes markup; all links are the audience's own."""
    assert 0 < len(message.subject) <= 150
    assert "\n" not in message.subject
    for part in (message.subject, message.text, message.html):
        assert not UNPRINTABLE.search(part), f"{UNPRINTABLE.search(part)}"
        assert EXECUTED not in part, "template syntax in the data was executed"
        part.encode("utf-8")
        assert len(part) < 100_000
    for line in (message.subject, *message.text.split("\n")):
        assert line.count("\u2068") == line.count("\u2069"), "isolates end where they began"
    page = Page.of(message.html)
    assert page.shapes <= _shapes(kinds), f"markup that no layout has: {page.shapes - _shapes(kinds)}"
    base = STAFF_URL if audience == "staff" else CUSTOMER_URL
    for url in page.links:
        assert url.startswith(f"{base}/"), "every link begins with the base URL of the reader's audience"
        assert urlsplit(url).netloc == urlsplit(base).netloc
        assert not {".", ".."} & set(urlsplit(url).path.split("/"))
        assert re.fullmatch(r"[\x21-\x7e]+", url)
        assert message.text.count(f"\n{url}\n") >= 1, "the text has the same link, on a line of its own"
    assert len(page.links) <= 1


def _check_nothing_personal_is_kept(world: World) -> None:
    """Nothing personal in a log line, a metric, a stored notice or an attribute; an id is what it should be."""
    for line in world.telemetry.lines:
        json.dumps(line.fields)  # as the logger writes it
        assert JOB.fullmatch(line.fields.get("job_id") or "-"), "the job id of a log line is one"
        _check_not_personal({"message": line.message, **line.fields})
    _check_not_personal({str(key): value for key, value in world.telemetry.counts.items()})
    for item in world.store.items(NOTICES):
        _check_not_personal(item)
    for message in world.queues.parked:
        _check_not_personal(message.attributes)


def _check_not_personal(kept: Any, name: str = "") -> None:
    if isinstance(kept, Mapping):
        for key, value in kept.items():
            assert MARKER not in key
            if key not in IDS:
                _check_not_personal(value, key)
    elif isinstance(kept, list):
        for value in kept:
            _check_not_personal(value, name)
    else:
        assert MARKER not in str(kept), f"{name} holds something personal: {kept}"


# --- Pages -----------------------------------------------------------------------------------------


@dataclass
class Page(HTMLParser):
    """A page as a mail client reads it: the shapes of its elements, and where it links to."""

    shapes: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    __hash__ = object.__hash__

    @classmethod
    def of(cls, html: str) -> Page:
        """Read a page."""
        page = cls()
        page.feed(html)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        self.shapes.add((tag, tuple(name for name, _ in attrs)))
        self.links += [
            value or "" for name, value in attrs if name in {"href", "src", "action", "background", "srcset"}
        ]

    def handle_comment(self, data: str) -> None:
        """See HTMLParser; a comment is a shape too, and the layout's own are few."""
        self.shapes.add((f"<!--{data}-->", ()))

    def handle_decl(self, decl: str) -> None:
        """See HTMLParser."""
        self.shapes.add((f"<!{decl}>", ()))

    def unknown_decl(self, data: str) -> None:
        """See HTMLParser."""
        self.shapes.add((f"<![{data}]>", ()))

    def handle_pi(self, data: str) -> None:
        """See HTMLParser."""
        self.shapes.add((f"<?{data}>", ()))


BASE_URLS = BaseUrls(staff=STAFF_URL, customer=CUSTOMER_URL)
_HARMLESS = {
    "workspace_id": "ws-1",
    "workspace_name": "Blue \u05d0",
    "failure_reason": "No space.",
    "finished_at": "2026-03-01T10:00:00+00:00",
    "a_text": "words",
    "a_long_text": "more words \u05d0",
    "a_number": 7,
    "a_flag": True,
    "a_list": ["one", "two"],
    "a_time": "2026-03-01T10:00:00+00:00",
}


@cache
def _shapes(kinds: Callable[[], Catalogue]) -> frozenset[tuple[str, tuple[str, ...]]]:
    """Return every shape that a kind's pages have with harmless data, with a link and without."""
    shapes: set[tuple[str, tuple[str, ...]]] = set()
    for kind in kinds():
        for outcome in kind.outcomes:
            for urls in (BASE_URLS, BaseUrls()):
                job, dana = Job("job-1", kind.name, "t", "r", _HARMLESS), Requester("r", "t", name="Dana")
                shapes |= Page.of(render(kind, outcome, job, dana, urls).html).shapes
    return frozenset(shapes)


@cache
def _everything() -> Catalogue:
    """Return a catalogue of one kind that prints every type of fact."""
    with TemporaryDirectory() as folder:
        kinds = Path(folder)
        (kinds / "_layout").symlink_to(KINDS / "_layout")
        (kinds / "everything" / "en").mkdir(parents=True)
        (kinds / "everything" / "kind.toml").write_text(_KIND, encoding="utf-8")
        for outcome, body in (("plain", _PLAIN), ("full", _FULL)):
            (kinds / "everything" / "en" / f"{outcome}.j2").write_text(body, encoding="utf-8")
        return load_catalogue(kinds)


_KIND = """
title = "Everything"
default_locale = "en"
[facts]
a_text = "text"
a_long_text = "long_text"
a_number = "number"
a_flag = "flag"
a_list = "list"
a_time = "time"
[links]
staff = "/staff/{job_id}/{a_text}?n={a_number}"
customer = "/{a_text}/{job_id}#{a_text}"
[outcomes.plain]
tone = "good"
[outcomes.full]
tone = "problem"
[ask.en]
staff = "the platform team"
customer = "our support team"
"""
_PLAIN = """
{% block subject %}Done{% if facts.a_text %}: {{ facts.a_text }}{% endif %}{% endblock %}
{% block body %}It is done.{% endblock %}
{% block link %}See it{% endblock %}
"""
_FULL = """
{% block subject %}{% if facts.a_long_text %}{{ facts.a_long_text }}{% else %}Done{% endif %}{% endblock %}
{% block body %}
{% if facts.a_text %}{{ facts.a_text }}{% endif %} is how it begins
{% if facts.a_number %}{{ facts.a_number }}{% endif %}

{% if facts.a_list %}
{% for line in facts.a_list %}
- {{ line }}
{% endfor %}
{% endif %}

{% if facts.a_flag %}It is so.{% endif %}

{% if facts.a_long_text %}
> {{ facts.a_long_text }}
{% endif %}
{% endblock %}
{% block link %}See it{% endblock %}
{% block details %}
{% if facts.a_text %}
Text: {{ facts.a_text }}
{% endif %}
{% if facts.a_number %}
Number: {{ facts.a_number }}
{% endif %}
{% if facts.a_time %}
When: {{ facts.a_time }}
{% endif %}
{% endblock %}
"""


# --- The world -------------------------------------------------------------------------------------


def _world_with_neighbour(*, production: bool = True) -> World:
    world = World(production=production)
    world.job(NEIGHBOUR, requester_id=NEIGHBOURS_REQUESTER)
    world.requester(NEIGHBOURS_REQUESTER, email="neighbour@example.com")
    return world


def _record(message_id: str, body: str) -> dict[str, Any]:
    return {"messageId": message_id, "eventSource": "aws:sqs", "body": body}


def _with_neighbour(hostile: Mapping[str, Any], body: str) -> list[dict[str, Any]]:
    records = list(hostile["records"])
    records.insert(hostile["neighbour_at"], _record("message-good", body))
    return records


def _answer(batch: Batch, records: list[dict[str, Any]]) -> Mapping[str, Any] | None:
    try:
        return batch({"Records": records}, FakeContext())
    except Unreportable:
        return None


def _notice(job_id: str, status: str) -> dict[str, Any]:
    item: dict[str, Any] = {
        "job_id": {"S": job_id},
        "outcome": {"S": OUTCOME},
        "status": {"S": status},
        "kind": {"S": "workspace_provisioning"},
        "tenant_id": {"S": "tenant-1"},
        "requester_id": {"S": REQUESTER_ID},
        "attempts": {"N": "1"},
        "claim_id": {"S": CLAIM_ID},
        "claimed_at": {"S": "2026-11-29T09:00:00.000000+0000"},
        "created_at": {"S": "2026-11-29T09:00:00.000000+0000"},
        "attempt_log": {"L": []},
        "revision": {"N": "1"},
        "expires_at": {"N": "1900000000"},
    }
    if status in ("pending", "failed"):
        item["next_attempt_at"] = {"S": "2026-11-29T09:15:00.000000+0000"}
    return item


def _refuse(worker: Worker, refusal: list[Any], world: World) -> None:
    """Have SES refuse every send of a worker, in words that quote what is personal."""
    code, text, status = refusal
    error = {"Error": {"Code": code, "Message": f"{text} <{MARKER}@example.com>"}}
    response = {**error, "ResponseMetadata": {"HTTPStatusCode": status}}

    class Refusing:
        def send_email(self, **_request: Any) -> Mapping[str, Any]:
            raise ClientError(response, "SendEmail")

    mail = Mail(Refusing(), sender="notices@example.com", configuration_set=None)
    world.provider.script.clear()
    worker.mail.send = mail.send  # type: ignore[method-assign]
