"""No personal data in a log line, a metric, a trace or a stored item (DESIGN 2), whatever happens.

The address, the name, the link, the message's text and the words of others that quote them are marked. Every path is
taken, and no mark may turn up anywhere but in the message itself and in what is parked.
"""

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cases import book, kinds, wire
from cases.stage import Stage, job_settled, plain, sqs_event
from fakes import ses_server

PERSON = "zzlocal@zzdomain.example.com"
MARKS = ("zzlocal", "zzdomain", "zzname", "zzlink", "zztext", "zzplace", "zzreason", "zzquote", "zzbody", "zzsender")
QUOTE = f"zzquote <{PERSON}> zzname zztext: https://zzlink.example.com/workspaces/zzplace"

JOB: dict[str, Any] = {
    "kind": "workspace_provisioning", "tenant_id": "tenant", "requester_id": "req",
    "details": {"workspace_id": "zzplace", "workspace_name": "zztext", "failure_reason": "zzreason"},
}  # fmt: skip
REQUESTER = {"requester_id": "req", "tenant_id": "tenant", "email": PERSON, "name": "zzname", "audience": "customer"}
ENVIRON = {
    "CUSTOMER_BASE_URL": "https://zzlink.example.com",
    "HQ_BASE_URL": "https://zzlink-hq.example.com",
    "NOTICE_FROM_ADDRESS": "zzsender <zzsender@example.com>",
    "POWERTOOLS_LOG_LEVEL": "DEBUG",
    "UNTOLD_CHECK": "scan",
}

Way = Callable[[Stage], object]


class _Kept(logging.Handler):
    """Keeps all that a record holds, its traceback too. (Powertools' own lines go to stdout and past this.)"""

    def __init__(self) -> None:
        super().__init__(0)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(json.dumps(record.__dict__, default=repr))
        if record.exc_info:
            self.texts.append("".join(traceback.format_exception(*record.exc_info)))


@pytest.fixture
def kept() -> Iterator[list[str]]:
    """What goes to the root logger: of our own from DEBUG on, of others from WARNING on."""
    handler, root, own = _Kept(), logging.getLogger(), logging.getLogger("notices")
    levels = root.level, own.level
    root.setLevel(logging.WARNING)
    own.setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield handler.texts
    root.removeHandler(handler)
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def tell(*bodies: str) -> Way:
    """The path of these events."""

    def go(stage: Stage) -> None:
        stage.invoke("tell_requester", sqs_event(*bodies))

    return go


GOOD = job_settled("job", note="zzbody")


def answered(*steps: ses_server.Step) -> Way:
    """The path of an event to whose send SES answers so."""

    def go(stage: Stage) -> None:
        stage.ses.script(*steps)
        tell(GOOD)(stage)

    return go


def fails(operation: str, code: str, *bodies: str, table: str | None = None) -> Way:
    """The path of events during which a call fails, in words that quote what they were sent."""

    def go(stage: Stage) -> None:
        fault = wire.error(code, message=QUOTE)
        stage.wire.on(operation, fault, when=lambda call: table in (None, *call.resources))
        tell(*(bodies or (GOOD,)))(stage)

    return go


def requester(**fields: Any) -> Way:
    """The path of an event whose requester is like this."""

    def go(stage: Stage) -> None:
        stage.put("RequestersTable", [REQUESTER | fields])
        tell(GOOD)(stage)

    return go


def job(**fields: Any) -> Way:
    """The path of an event whose job is like this."""

    def go(stage: Stage) -> None:
        stage.put("JobsTable", [{"job_id": "job", **JOB, **fields}])
        tell(GOOD)(stage)

    return go


def without_requester(stage: Stage) -> None:
    stage.dynamodb.delete_item(TableName="RequestersTable", Key={"requester_id": {"S": "req"}})
    tell(GOOD)(stage)


def unreachable(stage: Stage) -> None:
    stage.ses.refuse_connections()
    tell(GOOD)(stage)


def kind_mismatch(stage: Stage) -> None:
    stage.put("JobsTable", [{"job_id": "job", **JOB, "kind": "no_such_kind"}])
    tell(job_settled("job", kind="workspace_provisioning", note="zzbody"))(stage)


def without_message_id(stage: Stage) -> None:
    stage.wire.on("SendMessage", wire.error("AccessDeniedException", 403, QUOTE))
    event = sqs_event("{zzbody")
    del event["Records"][0]["messageId"]
    stage.invoke("tell_requester", event)


def twice_delivered(stage: Stage) -> None:
    def another() -> None:
        notice = stage.notice("job")
        assert notice is not None
        entry = {"attempt": 1, "claim_id": "other", "recorded_at": notice["claimed_at"], "result": "delivered"}
        stage.change(
            "job",
            status="delivered",
            handled_at=notice["claimed_at"],
            attempt_log=[entry],
            revision=9,
            claim_id="other",
        )

    stage.wire.on("UpdateItem", wire.after(another), times=1)
    tell(GOOD)(stage)


def retried(fault: wire.Action | None = None, operation: str = "", **changes: Any) -> Way:
    """The path of a notice that failed, is brought back and is told, or meets what there is then."""

    def go(stage: Stage) -> None:
        answered(ses_server.error("TooManyRequestsException", 429, QUOTE))(stage)
        stage.change("job", next_attempt_at="2020-01-01T00:00:00.000000+0000", **changes)
        if fault is not None:
            stage.wire.on(operation, fault)
        stage.invoke("retry_due_notices", book.sample("schedule.json"))
        bodies = [message["Body"] for message in stage.take("JOB_SETTLED_QUEUE_URL")]
        stage.wire.clear()
        tell(*bodies, *bodies)(stage)

    return go


def closed(stage: Stage) -> None:
    tell(GOOD)(stage)
    stage.change(
        "job", status="failed", error="throttled", revision=2, next_attempt_at="2020-01-01T00:00:00.000000+0000"
    )
    job(removed_at="now")(stage)
    tell(job_settled("job", retry=2))(stage)


def feedback(name: str, road: str = "ses-eventbridge", fault: str | None = None) -> Way:
    """The path of an SES event that quotes whom it is about wherever SES does."""

    def go(stage: Stage) -> None:
        stage.put("NoticesTable", book.sample("tables.json")["notices"])
        if fault is not None:
            stage.wire.on(fault, wire.error("ValidationException", message=QUOTE))
        text = json.dumps(book.sample(f"{road}/{name}.json"))
        for quoted in ("dana@example.com", "Dana Example", "5.1.1 user unknown", "message expired"):
            text = text.replace(quoted, PERSON if "@" in quoted else "zzquote")
        event = json.loads(text)
        for record in event["Records"]:
            record["body"] = _with_diagnostics(record["body"])
        stage.invoke("record_feedback", event)

    return go


def _with_diagnostics(body: str) -> str:
    """The body with 20 KB of what mail servers say in every free text."""
    try:
        envelope = json.loads(body)
    except ValueError:
        return body + "zzbody"
    inner = envelope.get("detail") or {}
    for part in inner.values():
        if isinstance(part, dict):
            for name in ("smtpResponse", "diagnosticCode", "reason", "errorMessage", "templateName", "userAgent"):
                part[name] = (QUOTE + " ") * 200
            for recipient in (each for value in part.values() if isinstance(value, list) for each in value):
                if isinstance(recipient, dict):
                    recipient["diagnosticCode"] = (QUOTE + " ") * 200
    return json.dumps(envelope)


def feedback_bodies(*bodies: str) -> Way:
    """The path of other things on the feedback queue."""

    def go(stage: Stage) -> None:
        stage.invoke("record_feedback", sqs_event(*bodies))

    return go


def untold(stage: Stage) -> None:
    settled_at = f"{book.real_now() - book.HOUR:%Y-%m-%dT%H:%M:%SZ}"
    stage.put("JobsTable", [{"job_id": "job", **JOB, "outcome": "succeeded", "settled_at": settled_at}])
    stage.invoke("find_untold", {})


def untold_unreadable(stage: Stage) -> None:
    stage.wire.on("Scan", wire.error("ValidationException", message=QUOTE))
    stage.invoke("find_untold", {})


ROADS = ("ses-eventbridge", "ses-sns")
NEWS = (
    "send", "delivery", "delivery-delay", "bounce-permanent", "bounce-suppression-list", "bounce-mailbox-full",
    "bounce-out-of-office", "complaint", "reject", "rendering-failure",
)  # fmt: skip

PATHS: dict[str, Way] = {
    "delivered": tell(GOOD),
    "delivered-failed-outcome": tell(job_settled("job", "failed", settled_at="2026-03-01T09:59:30+00:00")),
    "already-handled": tell(GOOD, GOOD),
    "delivered-twice": twice_delivered,
    "content-refused": answered(ses_server.error("MessageRejected", 400, QUOTE)),
    "identity-not-verified": answered(
        ses_server.error("MessageRejected", 400, f"Email address is not verified. {QUOTE}")
    ),
    "address-refused": answered(ses_server.error("BadRequestException", 400, f"Illegal address {PERSON}")),
    "bad-request": answered(ses_server.error("BadRequestException", 400, QUOTE)),
    "throttled": answered(ses_server.error("TooManyRequestsException", 429, QUOTE)),
    "quota": answered(ses_server.error("LimitExceededException", 400, QUOTE)),
    "access-denied": answered(ses_server.error("AccessDeniedException", 403, QUOTE)),
    "unknown-4xx": answered(ses_server.raw(418, QUOTE.encode(), Content_Type="text/html")),
    "server-error": answered(ses_server.error("InternalServiceError", 500, QUOTE)),
    "an-error-code-that-quotes": answered(ses_server.error(QUOTE, 400, QUOTE)),
    "no-answer": answered(ses_server.drop()),
    "no-message-id": answered(ses_server.raw(200, json.dumps({"Note": QUOTE}).encode())),
    "answer-cut-short": answered(ses_server.raw(200, b'{"MessageId": "zzquote')),
    "unreachable": unreachable,
    "address-missing": requester(email=None),
    "address-invalid": requester(email=f"{PERSON}, {PERSON}"),
    "address-of-an-odd-type": requester(email=[PERSON]),
    "time-zone-unknown": requester(time_zone="zzname/zztext", locale="zzname"),
    "tenant-mismatch": requester(tenant_id="another"),
    "requester-missing": without_requester,
    "job-removed": job(removed_at="now"),
    "no-requester": job(requester_id=None),
    "odd-details": job(details={"workspace_name": {"zztext": "zztext"}, "zzreason": ["zzreason"]}),
    "not-there": tell(job_settled("nowhere")),
    "unknown-kind": tell(job_settled("job", kind="zzbody")),
    "undeclared-outcome": tell(job_settled("job", "cancelled", note="zzbody")),
    "parked-not-json": tell("{zzbody"),
    "parked-not-an-object": tell('["zzbody"]'),
    "parked-type": tell('{"type": "zzbody"}'),
    "parked-version": tell('{"type": "job.settled", "version": "zzbody"}'),
    "parked-field": tell(
        job_settled("zzbody zzbody"), job_settled("job", "ZZbody"), job_settled("job", retry="zzbody")
    ),
    "skipped-kind-of-the-job": job(kind="no_such_kind"),
    "parked-kind-mismatch": kind_mismatch,
    "not-parked": fails("SendMessage", "AccessDeniedException", "{zzbody"),
    "not-parked-without-a-message-id": without_message_id,
    "job-not-readable": fails("GetItem", "ValidationException", table="JobsTable"),
    "requester-not-readable": fails("GetItem", "ValidationException", table="RequestersTable"),
    "not-claimed": fails("PutItem", "ValidationException"),
    "outcome-not-recorded": fails("UpdateItem", "ValidationException"),
    "retried": retried(),
    "retry-not-queued": retried(wire.error("AccessDeniedException", 403, QUOTE), "SendMessageBatch"),
    "retry-not-moved": retried(wire.error("ValidationException", message=QUOTE), "UpdateItem"),
    "due-not-readable": retried(wire.error("ValidationException", message=QUOTE), "Query"),
    "given-up": retried(created_at="2020-01-01T00:00:00.000000+0000"),
    "closed": closed,
    **{f"feedback-{name}-{road}": feedback(name, road) for road in ROADS for name in NEWS},
    "feedback-not-ours": feedback("not-ours-without-tags"),
    "feedback-identity-complaint": feedback("not-ours-identity-complaint", "ses-sns"),
    "feedback-control-text": feedback("not-ours-topic-validated", "ses-sns"),
    "feedback-broken": feedback_bodies("{zzbody", '["zzbody"]', '{"zzbody": "zzquote"}'),
    "feedback-odd-tags": feedback_bodies(
        json.dumps({"eventType": "zzbody", "mail": {"tags": {"notice_job": ["zzbody!"], "notice_outcome": [QUOTE]}}})
    ),
    "feedback-not-readable": feedback("send", fault="GetItem"),
    "feedback-not-written": feedback("bounce-permanent", fault="UpdateItem"),
    "untold": untold,
    "untold-not-readable": untold_unreadable,
}


def _check(stage: Stage, kept: list[str], raised: BaseException | None = None) -> None:
    trace = _as_lambda_writes(raised) if raised is not None else ""
    items = [plain(item) for item in stage.dynamodb.scan(TableName="NoticesTable")["Items"]]
    places = {
        "the output": stage.output.text,
        "the log": "\n".join(kept),
        "the trace": trace,
        "the notices": json.dumps(items, default=str),
    }
    for place, text in places.items():
        found = [mark for mark in MARKS if mark in text.lower()]
        assert not found, f"{found} in {place}: {text[:2000]}"
    assert stage.output.text
    stage.output.logs  # noqa: B018 - every line has to be a JSON object


def _as_lambda_writes(raised: BaseException) -> str:
    """Lambda's runtime writes an exception that leaves a handler with its trace, but not what caused it."""
    return "".join(traceback.format_exception(raised, chain=False))


def _take(path: Way, stage: Stage) -> BaseException | None:
    stage.seed(jobs=[{"job_id": "job", **JOB}], requesters=[REQUESTER])
    try:
        path(stage)
    except Exception as error:  # noqa: BLE001 - Lambda writes it to the log with its trace
        return error
    return None


@pytest.mark.parametrize("name", PATHS)
def test_nothing_personal_is_written_when(name: str, kept: list[str]) -> None:
    with Stage(ENVIRON) as stage:
        raised = _take(PATHS[name], stage)
        _check(stage, kept, raised)


@pytest.mark.parametrize(
    "environ",
    [
        {"ENVIRONMENT": "staging"},
        {"NOTICE_FROM_ADDRESS": None, "MAIL_FROM_ADDRESS": None},
        {"CUSTOMER_BASE_URL": None},
        {"CLAIM_LEASE_SECONDS": "900"},
    ],
    ids=["suppressed", "sender-unset", "without-a-link", "in-progress"],
)
def test_nothing_personal_is_written_where_the_settings_are(environ: dict[str, str | None], kept: list[str]) -> None:
    with Stage(ENVIRON | environ) as stage:
        stage.wire.on("UpdateItem", wire.error("ValidationException", message=QUOTE), times=1)
        raised = _take(tell(GOOD, GOOD), stage)
        _check(stage, kept, raised)


@pytest.mark.parametrize(
    "variable", ["NOTICE_FROM_ADDRESS", "MAIL_FROM_ADDRESS", "HQ_BASE_URL", "CUSTOMER_BASE_URL", "CLAIM_LEASE_SECONDS"]
)
def test_the_value_of_a_wrong_setting_is_not_written(variable: str) -> None:
    with Stage({variable: "zzsender zzlink <<@"}) as stage, pytest.raises(Exception, match=variable) as raised:
        stage.start("tell_requester")
    assert not [mark for mark in MARKS if mark in "".join(traceback.format_exception(raised.value))]


def test_nothing_personal_is_written_when_a_text_lacks_a_fact(
    kept: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kinds.break_a_text(monkeypatch, tmp_path)
    with Stage(ENVIRON) as stage:
        details = {name: value for name, value in JOB["details"].items() if name != "failure_reason"}
        raised = _take(job(details=details), stage)
        notice = stage.notice("job")
        assert notice is not None
        assert notice["error"].startswith("template_error")
        _check(stage, kept, raised)


@pytest.mark.parametrize("place", ["render", "usable_address", "notice_tags"])
def test_nothing_personal_is_written_when_our_own_code_fails(
    place: str, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError(QUOTE)

    monkeypatch.setattr(f"notices.tell.{place}", broken)
    with Stage(ENVIRON) as stage:
        raised = _take(tell(GOOD), stage)
        notice = stage.notice("job")
        assert notice is not None
        assert notice["error"].startswith("internal_error")
        _check(stage, kept, raised)


def test_the_marks_are_in_the_message() -> None:
    with Stage(ENVIRON) as stage:
        _take(tell(job_settled("job", "failed")), stage)
        (mail,) = stage.mails()
    message = " ".join((mail.to, mail.sender, mail.subject, mail.text, mail.html))
    assert [mark for mark in MARKS if mark not in message] == ["zzquote", "zzbody"]
