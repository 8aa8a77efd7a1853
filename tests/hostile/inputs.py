"""What may arrive: SQS records, items of the platform's tables, answers of SES, as Hypothesis strategies.

An input is a plain JSON object, so that a failing one can be saved, read and replayed:

    {"target": "job_settled", "records": [...]}                              event bodies, envelopes, records
    {"target": "data", "job": {...}, "requester": {...}, "notice": {...}}    items in wire form, as DynamoDB has them
    {"target": "feedback", "records": [...], "status": "..."}                SES events
    {"target": "message", "details": {...}, ...}                             rendering, with a kind that has every fact

Everything personal in them may hold MARKER, and every text may hold EXECUTED_IF's expression.
"""

from __future__ import annotations

import base64
import json
import string
from typing import Any

from hypothesis import strategies as st

MARKER = "qz.Personal.qz"
"""Stands for what is personal: it may be in a letter, and nowhere else. An address can hold it, an SES tag cannot."""

EXECUTED = "60481729"
"""What the template syntax in the data would print if anybody executed it: 7777 * 7777."""

JOB_ID, NEIGHBOUR = "job-1", "job-neighbour"
REQUESTER_ID, NEIGHBOURS_REQUESTER = "requester-1", "requester-neighbour"
KIND, OUTCOME = "workspace_provisioning", "succeeded"
CLAIM_ID = "claim-of-old"

PIECES = (
    MARKER,
    "{{ 7777*7777 }}",
    "{% set x = 7777*7777 %}{{ x }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{% include '/etc/passwd' %}",
    "{# a comment #}",
    "{% endblock %}",
    "{% raw %}",
    "${7777*7777}",
    "#{7777*7777}",
    "%(job_id)s",
    "%s%n",
    "{0.__class__}",
    "{workspace_id}",
    "<script>alert(1)</script>",
    '"><a href="https://evil.example/">x</a>',
    "' onmouseover='alert(1)",
    "</title></style><img src=x onerror=alert(1)>",
    "<!--",
    "-->",
    "<![endif]-->",
    "&#x6a;avascript:alert(1)",
    "&lt;b&gt;",
    "javascript:alert(1)",
    "https://evil.example/x",
    "//evil.example",
    "@evil.example/",
    "\r\nBcc: evil@example.com\r\n",
    "\nSubject: evil",
    "\r\n\r\n--boundary",
    "a@example.com, evil@example.com",
    "evil@example.com",
    "Evil <evil@example.com>",
    "=?utf-8?q?evil=0D=0A?=",
    "=?utf-8?b?ZXZpbA==?=",
    "\x00",
    "\x02- ",
    "- ",
    "> ",
    "\t",
    "\x1b[31m",
    "\x7f",
    "\x85",
    "\u2028",
    "\u2029",
    "\u202e",
    "\u2066",
    "\u2069",
    "\u200b",
    "\u00ad",
    "\ufeff",
    "\ufffe",
    "\ud800",
    "\udc00",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e6\U0001f1e9",
    "\u0644\u0645",
    "e\u0301" * 40,
    "\u1100\u1161\u11a8",
    "\ufdfa" * 18,
    "ß",
    "İ",
    "ex\u00e4mple.com",
    "xn--",
    "xn--a",
    "..",
    ".",
    "/",
    "\\",
    "../../admin",
    "%2e%2e",
    "%252e",
    "?",
    "#",
    "&",
    "%",
    "..;/",
    " ",
    "",
    "null",
    "None",
    "true",
    "0",
    "-1",
    "1e400",
    "NaN",
    "A" * 300,
    "W" * 2100,
)

ZONES = ("Europe/Berlin", "UTC", "../../etc/passwd", "Europe", "/etc/localtime", "localtime", "posixrules", "zone.tab")
LOCALES = ("en", "en_GB", "de-AT", "ar", "_layout", "../en", "C", "x" * 500, "-".join(["en"] * 200))
ADDRESSES = (
    "dana@example.com",
    f"{MARKER}@example.com",
    f" {MARKER}@example.com\r\n",
    f"Dana <{MARKER}@example.com>",
    f"{MARKER}@example.com,evil@example.com",
    f"{MARKER}@example.com\nBcc: evil@example.com",
    f"{MARKER}@ex\u00e4mple.com",
    f"{MARKER}@{'a.' * 130}com",
    f"{MARKER}@{chr(0xFDFA) * 60}.com",
    f"{MARKER}@xn--zzzzzzzzzz.com",
    f"{MARKER}@example..com",
    f'"{MARKER} x"@example.com',
    f"{MARKER}@[127.0.0.1]",
    f"{MARKER}@localhost",
    f"{MARKER}",
    "@",
    "",
)

texts = st.one_of(
    st.sampled_from(PIECES),
    st.text(max_size=24),
    st.lists(st.sampled_from(PIECES) | st.text(max_size=6), min_size=2, max_size=4).map("".join),
)
numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([1.5, -0.0, 1e308, 2**53, 2**53 + 1, -(2**63), 10**40, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)

# --- job.settled -----------------------------------------------------------------------------------

JOB_IDS = (JOB_ID, JOB_ID, JOB_ID, "job-2", "no-such-job", "{{7777*7777}}", "a" * 128, "a" * 129, "job 1", "jöb-1", "")
OUTCOMES = (OUTCOME, OUTCOME, OUTCOME, "failed", "cancelled", "Succeeded", "a" * 33, "succeeded\n", "")
MOMENTS = (
    "2026-03-01T09:59:30+00:00",
    "2026-03-01T09:59:30Z",
    "20260301T095930+0000",
    "0001-01-01T00:00:00+00:00",
    "9999-12-31T23:59:59.999999+00:00",
)
NO_MOMENTS = ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-03-01T09:59:30", "2026-W09-7", "now")


@st.composite
def job_settled(draw: st.DrawFn) -> dict[str, Any]:
    """An event, right or wrong in some of its fields."""
    event = {
        "type": draw(st.sampled_from(["job.settled"] * 6 + ["job.started", "", "JOB.SETTLED"])),
        "version": draw(st.sampled_from(["1", "1", 1, "1.7", 1.0, "2", "1.x", 2, 1e400, True, "1\n"])),
        "job_id": draw(st.sampled_from(JOB_IDS)),
        "outcome": draw(st.sampled_from(OUTCOMES)),
    }
    if draw(st.booleans()):
        event["settled_at"] = draw(st.sampled_from(MOMENTS + NO_MOMENTS))
    if draw(st.integers(0, 3)) == 0:
        event["kind"] = draw(st.sampled_from([KIND, "export", "", MARKER, "../workspace_provisioning"]))
    if draw(st.integers(0, 5)) == 0:
        event["retry"] = draw(st.sampled_from([1, 0, -1, 2, 2**53, 2**53 + 1, True, 1.0, "1"]))
    for field in draw(st.lists(st.sampled_from([*event, "email", "detail", "data", "Message"]), max_size=2)):
        event[field] = draw(values)
    return event


def envelope(kind: str, inner: Any, outer_type: Any) -> dict[str, Any]:
    """Return something in an envelope."""
    match kind:
        case "eventbridge":
            return {"version": "0", "detail-type": outer_type, "source": MARKER, "detail": inner}
        case "eventbridge text":
            return {"detail-type": outer_type, "detail": json.dumps(inner)}
        case "sns":
            return {"Type": "Notification", "Message": json.dumps(inner), "Subject": MARKER}
        case "sns control":
            return {"Type": "SubscriptionConfirmation", "Message": json.dumps(inner), "SubscribeURL": "https://evil"}
        case "cloudevents":
            return {"specversion": "1.0", "type": outer_type, "data": inner}
        case _:
            return {"specversion": "1.0", "type": outer_type, "data": json.dumps(inner)}


ENVELOPES = ("eventbridge", "eventbridge text", "sns", "sns control", "cloudevents", "cloudevents text")


@st.composite
def wrapped(draw: st.DrawFn, event: st.SearchStrategy[Any]) -> Any:
    """Something in up to three envelopes."""
    inner = draw(event)
    for kind in draw(st.lists(st.sampled_from(ENVELOPES), max_size=3)):
        outer_type = draw(st.sampled_from(["job.settled"] * 4 + ["", None, "other"]) | values)
        inner = envelope(kind, inner, outer_type)
    return inner


@st.composite
def body(draw: st.DrawFn, event: st.SearchStrategy[Any]) -> str:
    """The text of a body: JSON mostly, and mangled at times."""
    text = json.dumps(draw(wrapped(event)), ensure_ascii=draw(st.booleans()))
    match draw(st.integers(0, 14)):
        case 0:
            text = text[: draw(st.integers(0, len(text)))]
        case 1:
            text = "\ufeff \r\n" + text + "\r\n"
        case 2:
            text += draw(texts)
        case 3:
            at = draw(st.integers(0, len(text)))
            text = text[:at] + draw(texts) + text[at:]
        case 4:
            text = text.replace("null", draw(st.sampled_from(["NaN", "-Infinity", "1e999", "9" * 5000, "[" * 3000])), 1)
        case 5:
            text = draw(st.sampled_from(["", "[]", "null", "0", '"', "{}", "{" * 2000, '{"a":' * 3000, "[" * 50_000]))
        case 6:
            depth = draw(st.sampled_from([10, 300, 900, 990, 1000, 5000]))
            deep = '{"a":' * depth + "1" + "}" * depth
            text = f'{{"specversion":"1.0","type":{deep},"data":{{"type":{deep}}}}}'
        case 7:
            text = text[:-1] + ', "type": "job.settled", "job_id": "job-1"}'  # a key twice: the last one counts
    return text.encode("utf-8", "replace").decode("utf-8")  # SQS carries no half of a surrogate pair


@st.composite
def records(draw: st.DrawFn, event: st.SearchStrategy[Any]) -> list[dict[str, Any]]:
    """Records as SQS delivers them, and as nobody should."""
    made = []
    for number in range(draw(st.integers(1, 3))):
        record: dict[str, Any] = {"messageId": f"message-{number}", "eventSource": "aws:sqs", "body": draw(body(event))}
        match draw(st.integers(0, 24)):
            case 0:
                del record["body"]
            case 1:
                record["body"] = draw(st.none() | st.integers() | st.just({"type": "job.settled"}))
            case 2:
                record["messageId"] = "message-0"
            case 3:
                record["messageId"] = draw(st.sampled_from([None, "", 7]))
            case 4:
                record |= {"attributes": draw(values), "messageAttributes": draw(values), "eventSource": draw(texts)}
        made.append(record)
    return made


# --- The platform's tables -------------------------------------------------------------------------

wire_values = st.recursive(
    st.one_of(
        texts.map(lambda text: {"S": text}),
        st.sampled_from([{"NULL": True}, {"BOOL": True}, {"B": "aGVsbG8="}, {"SS": ["b", MARKER]}, {"NS": ["2", "1"]}]),
        st.sampled_from(["0", "-1", "1.50", "1E+125", "-9.9E-130", "9" * 38, "1E-40"]).map(lambda text: {"N": text}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda each: {"L": each}),
        st.dictionaries(texts, inner, max_size=3).map(lambda each: {"M": each}),
    ),
    max_leaves=6,
)


def _texts_or_anything(*likely: str) -> st.SearchStrategy[dict[str, Any]]:
    likely_texts = st.sampled_from(likely).map(lambda text: {"S": text})
    return likely_texts | texts.map(lambda text: {"S": text}) | wire_values


FACTS = ("workspace_id", "workspace_name", "failure_reason", "finished_at", "items", "count", "flag")
details = st.dictionaries(st.sampled_from(FACTS) | texts, wire_values, max_size=6)
ANSWERS = ("MessageRejected", "BadRequestException", "TooManyRequestsException", "LimitExceededException", "Nonsense")
printable = st.text(string.printable[:94], min_size=1, max_size=20)


@st.composite
def data(draw: st.DrawFn) -> dict[str, Any]:
    """A job, its requester and perhaps its notice, as the tables have them; and what SES answers, if it refuses."""
    job_id = draw(st.just(JOB_ID) | printable)
    job: dict[str, Any] = {
        "job_id": {"S": job_id},
        "kind": {"S": KIND},
        "tenant_id": {"S": "tenant-1"},
        "requester_id": {"S": REQUESTER_ID},
        "details": {"M": draw(details)},
    }
    requester: dict[str, Any] = {
        "requester_id": {"S": REQUESTER_ID},
        "tenant_id": {"S": "tenant-1"},
        "email": {"S": draw(st.sampled_from(ADDRESSES) | texts.map(lambda text: f"{text}@example.com"))},
        "name": {"S": draw(texts)},
        "audience": draw(_texts_or_anything("staff", "customer", "STAFF")),
        "time_zone": draw(_texts_or_anything(*ZONES)),
        "locale": draw(_texts_or_anything(*LOCALES)),
    }
    for item in (job, requester):
        for field in draw(st.lists(st.sampled_from([*item, "removed_at"][1:]), max_size=1)):
            item[field] = draw(wire_values)
        for field in draw(st.lists(st.sampled_from([*item][1:]), max_size=1)):
            del item[field]
    made: dict[str, Any] = {
        "target": "data",
        "outcome": draw(st.sampled_from([OUTCOME, "failed"])),
        "production": draw(st.integers(0, 5)) > 0,
        "job": job,
        "requester": requester,
    }
    if draw(st.integers(0, 5)) == 0:
        made["notice"] = draw(notice(job_id, made["outcome"]))
    if draw(st.integers(0, 5)) == 0:
        made["refusal"] = [draw(st.sampled_from(ANSWERS)), draw(texts), draw(st.sampled_from([400, 403, 429, 500, 0]))]
    return made


@st.composite
def notice(draw: st.DrawFn, job_id: str, outcome: str) -> dict[str, Any]:
    """A notice from an earlier attempt, spoilt in one attribute by whoever could write it."""
    item: dict[str, Any] = {
        "job_id": {"S": job_id},
        "outcome": {"S": outcome},
        "status": {"S": draw(st.sampled_from(["pending", "failed", "delivered", "suppressed"]))},
        "kind": {"S": KIND},
        "tenant_id": {"S": "tenant-1"},
        "requester_id": {"S": REQUESTER_ID},
        "attempts": {"N": "1"},
        "claim_id": {"S": CLAIM_ID},
        "claimed_at": {"S": "2026-11-29T09:00:00.000000+0000"},
        "created_at": {"S": "2026-11-29T09:00:00.000000+0000"},
        "next_attempt_at": {"S": "2026-11-29T09:15:00.000000+0000"},
        "attempt_log": {"L": []},
        "revision": {"N": "1"},
        "expires_at": {"N": "1900000000"},
    }
    for field in draw(st.lists(st.sampled_from([*item][2:]), max_size=1)):
        item[field] = draw(wire_values)
    return item


# --- SES events ------------------------------------------------------------------------------------

SES_TYPES = ("Send", "Delivery", "DeliveryDelay", "Bounce", "Complaint", "Reject", "Rendering Failure", "Open", "")
SES_MOMENTS = (
    "2026-03-01T10:00:05.000Z",
    "Sun, 01 Mar 2026 10:00:05 +0000",
    1772359205000,
    1e300,
    -1e300,
    10**400,
    True,
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "Sun, 99 Foo 99999 99:99:99 +9999",
    "1 Jan",
    ", ,",
    "Mon, ",
    "1" * 60,
)


def tag(job_id: str) -> str:
    """Return a job id as the sender tags a letter with it."""
    return base64.urlsafe_b64encode(job_id.encode("utf-8", "replace")).decode().rstrip("=")


@st.composite
def ses_event(draw: st.DrawFn) -> dict[str, Any]:
    """An SES event, right or wrong in some of its parts."""
    kind = draw(st.sampled_from(SES_TYPES))
    name = {"DeliveryDelay": "deliveryDelay", "Rendering Failure": "failure"}.get(kind, kind.lower())
    people = [
        {"emailAddress": f"{MARKER}@example.com", "status": draw(st.sampled_from(["5.1.1", MARKER, "5.1.1 " + MARKER]))}
    ]
    facts: dict[str, Any] = {
        "timestamp": draw(st.sampled_from(SES_MOMENTS) | texts),
        "bounceType": draw(st.sampled_from(["Permanent", "Transient", "Undetermined", f"{MARKER}@example.com"])),
        "bounceSubType": draw(st.sampled_from(["General", f"{MARKER} x"])),
        "complaintFeedbackType": draw(st.sampled_from(["abuse", "not-spam", f"<{MARKER}>"])),
        "delayType": draw(st.sampled_from(["MailboxFull", f"{MARKER}!"])),
        "bouncedRecipients": people,
        "delayedRecipients": people,
        "diagnosticCode": f"smtp; 550 {MARKER}@example.com unknown",
        "reason": f"{MARKER}@example.com",
    }
    job = draw(st.sampled_from([tag(JOB_ID)] * 5 + [tag("job-none"), "a", "_w", "", "e" * 256]) | texts.map(tag))
    tags: dict[str, Any] = {
        "notice_job": [job],
        "notice_outcome": [draw(st.sampled_from([OUTCOME] * 5 + ["failed", "", "a" * 256, f"{MARKER}@example.com"]))],
        "notice_claim": [draw(st.sampled_from([CLAIM_ID, "claim-other", "", f"x {MARKER}"]))],
    }
    mail: dict[str, Any] = {
        "timestamp": draw(st.sampled_from(SES_MOMENTS)),
        "messageId": draw(st.sampled_from(["message-1", "message-2", "", f"with space {MARKER}", 7])),
        "destination": [f"{MARKER}@example.com"],
        "commonHeaders": {"subject": MARKER},
        "tags": tags,
    }
    event: dict[str, Any] = {draw(st.sampled_from(["eventType", "notificationType"])): kind, "mail": mail, name: facts}
    for part in draw(st.lists(st.sampled_from([event, mail, tags, facts]), max_size=2)):
        part[draw(st.sampled_from([*part]))] = draw(values)
    return event


# --- Messages --------------------------------------------------------------------------------------

details_of_everything = st.dictionaries(
    st.sampled_from(["a_text", "a_long_text", "a_number", "a_flag", "a_list", "a_time"]),
    values | st.lists(texts, max_size=60) | st.sampled_from(MOMENTS + NO_MOMENTS),
)


@st.composite
def message(draw: st.DrawFn) -> dict[str, Any]:
    """What a message is rendered from, with a kind that has every type of fact."""
    return {
        "target": "message",
        "outcome": draw(st.sampled_from(["plain", "full"])),
        "job_id": draw(printable),
        "details": draw(details_of_everything),
        "name": draw(texts),
        "audience": draw(st.sampled_from(["staff", "customer"])),
        "locale": draw(st.sampled_from(LOCALES) | texts),
        "time_zone": draw(st.sampled_from(ZONES) | texts),
    }


def batches(target: str, event: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return batches of records for one of the two queues."""
    return st.fixed_dictionaries(
        {
            "target": st.just(target),
            "records": records(event),
            "neighbour_at": st.integers(0, 3),
            "status": st.sampled_from(["pending", "failed", "delivered", "suppressed"]),
        }
    )


TARGETS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "job_settled": batches("job_settled", job_settled() | values),
    "data": data(),
    "feedback": batches("feedback", ses_event() | values),
    "message": message(),
}
