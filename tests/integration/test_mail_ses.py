"""The shared sender through a real SDK client against a strict SES v2 on a loopback socket (DESIGN 3.5)."""

from __future__ import annotations

import dataclasses
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.config import Config  # type: ignore[import-untyped]

from fakes.ses_server import FakeSes, Step, drop, error, raw, stall
from notices.mail import (
    AddressError,
    Answer,
    Letter,
    Mail,
    Verdict,
    mailbox,
    notice_tags,
    ses_client_config,
    usable_address,
)

SENDER = '"Example, Inc." <notices@example.com>'
LETTER = Letter(
    recipient="dana@example.com",
    subject="Größe is ready ✓",
    text="It is ready: größe.\n",
    html="<p>It is ready: größe.</p>",
    tags=notice_tags("team/42:run-7", "succeeded", "0c9d"),
)


@pytest.fixture
def ses() -> Iterator[FakeSes]:
    with FakeSes() as server:
        yield server


@contextmanager
def ses_client(url: str, *, credentials: bool = True, **changes: Any) -> Iterator[Any]:
    """A client as the functions make it, but for the endpoint and the `changes` to its settings."""
    session = botocore.session.Session()
    client = session.create_client(
        "sesv2",
        region_name="eu-west-1",
        endpoint_url=url,
        aws_access_key_id="test" if credentials else None,
        aws_secret_access_key="test" if credentials else None,
        config=ses_client_config().merge(Config(**changes)),
    )
    try:
        yield client
    finally:
        client.close()


def send(url: str, letter: Letter = LETTER, *, sender: str | None = SENDER, **changes: Any) -> Answer:
    with ses_client(url, **changes) as client:
        return Mail(client, sender=sender, configuration_set="notices").send(letter)


def test_an_accepted_letter_arrives_whole_with_its_tags_headers_and_configuration_set(ses: FakeSes) -> None:
    answer = send(ses.url)
    (mail,) = ses.mails
    assert answer == Answer(Verdict.ACCEPTED, reference=mail.message_id)
    assert mail.sender == SENDER
    assert (mail.to, mail.subject, mail.text, mail.html) == (
        LETTER.recipient,
        LETTER.subject,
        LETTER.text,
        LETTER.html,
    )
    assert mail.headers["Auto-Submitted"] == "auto-generated"
    assert mail.tags == {
        "notice_job": "dGVhbS80MjpydW4tNw",
        "notice_outcome": "succeeded",
        "notice_claim": "0c9d",
    }
    assert mail.configuration_set == "notices"
    assert ses.request_count == 1


@pytest.mark.parametrize(
    ("step", "verdict", "code", "name"),
    [
        (
            error("TooManyRequestsException", 429, "Maximum sending rate exceeded."),
            Verdict.UNAVAILABLE,
            "throttled",
            "TooManyRequestsException",
        ),
        (
            error("TooManyRequestsException", 429, "Daily message quota exceeded"),
            Verdict.UNAVAILABLE,
            "quota_exceeded",
            "TooManyRequestsException",
        ),
        (
            error("LimitExceededException", 400, "limit"),
            Verdict.UNAVAILABLE,
            "quota_exceeded",
            "LimitExceededException",
        ),
        (raw(429, b"slow down"), Verdict.UNAVAILABLE, "throttled", "429"),
        (
            error("MessageRejected", 400, "Message contains a virus."),
            Verdict.REFUSED,
            "provider_refused",
            "MessageRejected",
        ),
        (
            error("BadRequestException", 400, "Illegal address"),
            Verdict.REFUSED,
            "provider_refused",
            "BadRequestException",
        ),
        (
            error("BadRequestException", 400, None),
            Verdict.MISCONFIGURED,
            "provider_misconfigured",
            "BadRequestException",
        ),
        (
            error("SendingPausedException", 400, "Sending is paused."),
            Verdict.MISCONFIGURED,
            "provider_misconfigured",
            "SendingPausedException",
        ),
        (
            error("AccountSuspendedException", 400),
            Verdict.MISCONFIGURED,
            "provider_misconfigured",
            "AccountSuspendedException",
        ),
        (
            error("AccessDeniedException", 403, "not authorized to perform ses:SendEmail on dana@example.com"),
            Verdict.MISCONFIGURED,
            "provider_misconfigured",
            "AccessDeniedException",
        ),
        (
            error("ExpiredTokenException", 403, "expired"),
            Verdict.MISCONFIGURED,
            "provider_misconfigured",
            "ExpiredTokenException",
        ),
        (raw(404, b"<html>no such page</html>"), Verdict.MISCONFIGURED, "provider_misconfigured", "404"),
        (
            raw(302, b"", Location="http://127.0.0.1:9/"),
            Verdict.MISCONFIGURED,
            "provider_misconfigured",
            "302",
        ),
        (
            error("InternalServiceErrorException", 500, "try again"),
            Verdict.UNKNOWN,
            "provider_unknown",
            "InternalServiceErrorException",
        ),
        (raw(502, b"<html>Bad Gateway</html>"), Verdict.UNKNOWN, "provider_unknown", "502"),
        (raw(503), Verdict.UNKNOWN, "provider_unknown", "503"),
        (raw(504, b"<!DOCTYPE html>"), Verdict.UNKNOWN, "provider_unknown", "504"),
        (raw(200), Verdict.UNKNOWN, "provider_unknown", "NoMessageId"),
        (raw(200, b"{}"), Verdict.UNKNOWN, "provider_unknown", "NoMessageId"),
        (raw(200, b'{"MessageId": nu'), Verdict.UNKNOWN, "provider_unknown", "NoMessageId"),
        (raw(200, b"<html>Welcome</html>"), Verdict.UNKNOWN, "provider_unknown", "NoMessageId"),
        (raw(200, b"[1]"), Verdict.UNKNOWN, "provider_unknown", None),
        (raw(400, b"[1]"), Verdict.UNKNOWN, "provider_unknown", None),
        (drop(), Verdict.UNKNOWN, "provider_unknown", "ConnectionClosedError"),
        (drop(counts=False), Verdict.UNKNOWN, "provider_unknown", "ConnectionClosedError"),
    ],
)
def test_each_row_of_the_table_is_one_request_and_its_answer(
    ses: FakeSes, step: Step, verdict: Verdict, code: str, name: str | None
) -> None:
    ses.otherwise(step)
    answer = send(ses.url)
    assert (answer.verdict, answer.code) == (verdict, code)
    assert answer.error is not None
    assert "@" not in answer.error
    if name is not None:
        assert answer.error == f"{code}: {name}"
    assert ses.request_count == 1


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"AWS_MAX_ATTEMPTS": "5"},
        {"AWS_MAX_ATTEMPTS": "5", "AWS_RETRY_MODE": "legacy"},
        {"AWS_MAX_ATTEMPTS": "5", "AWS_RETRY_MODE": "standard"},
        {"AWS_MAX_ATTEMPTS": "5", "AWS_RETRY_MODE": "adaptive"},
        {"AWS_DEFAULTS_MODE": "standard", "AWS_MAX_ATTEMPTS": "5"},
        {"AWS_NEW_RETRIES_2026": "true", "AWS_MAX_ATTEMPTS": "5"},
    ],
    ids=lambda environment: " ".join(environment.values()) or "bare",
)
@pytest.mark.parametrize(
    "step",
    [stall(10), drop(), error("TooManyRequestsException", 429), error("InternalServiceErrorException", 500)],
    ids=["stalls", "drops", "throttles", "fails"],
)
def test_a_send_is_one_request_whatever_happens_and_whatever_the_environment_says(
    ses: FakeSes, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], step: Step
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ses.otherwise(step)
    send(ses.url, read_timeout=0.1)
    assert not ses.wait_for_requests(2, timeout=0.05)
    assert ses.request_count == 1


def test_the_shared_configuration_file_cannot_bring_the_retries_back(
    ses: FakeSes, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    file = tmp_path / "config"
    file.write_text("[default]\nmax_attempts = 5\nretry_mode = adaptive\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    ses.otherwise(drop())
    send(ses.url)
    assert ses.request_count == 1


def test_an_answer_that_comes_too_late_is_unknown_although_ses_has_the_message(ses: FakeSes) -> None:
    ses.script(stall(10))
    answer = send(ses.url, read_timeout=0.1)
    assert answer == Answer(Verdict.UNKNOWN, code="provider_unknown", error="provider_unknown: ReadTimeoutError")
    assert len(ses.mails) == 1


def test_a_refused_connection_is_unreachable(ses: FakeSes) -> None:
    ses.refuse_connections()
    answer = send(ses.url)
    assert answer == Answer(
        Verdict.UNAVAILABLE,
        code="provider_unreachable",
        error="provider_unreachable: EndpointConnectionError",
    )
    ses.accept_connections()
    assert send(ses.url).verdict is Verdict.ACCEPTED


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    # Longer than DNS allows, so that no name server is asked.
    answer = send("http://" + ".".join(["x" * 63] * 4))
    assert answer.error == "provider_unreachable: EndpointConnectionError"


def test_a_connection_that_is_not_taken_in_time_is_unreachable() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = []
        try:
            for _ in range(8):  # fills the queue of connections, so that the next one is left waiting
                each = socket.socket()
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", port))
                waiting.append(each)
            answer = send(f"http://127.0.0.1:{port}", connect_timeout=0.2, read_timeout=0.2)
        finally:
            for each in waiting:
                each.close()
    assert answer.error == "provider_unreachable: ConnectTimeoutError"


def test_a_proxy_that_is_not_there_is_unreachable(ses: FakeSes) -> None:
    ses.refuse_connections()
    answer = send("http://email.eu-west-1.amazonaws.com", proxies={"http": ses.url})
    assert answer.error == "provider_unreachable: ProxyConnectionError"


def test_no_credentials_is_misconfigured_and_no_request(ses: FakeSes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    answer = send(ses.url, credentials=False)
    assert answer.error == "provider_misconfigured: NoCredentialsError"
    assert ses.request_count == 0


def test_a_request_that_the_sdk_will_not_make_is_misconfigured_and_no_request(ses: FakeSes) -> None:
    answer = send(ses.url, dataclasses.replace(LETTER, subject=7))  # type: ignore[arg-type]
    assert answer.error == "provider_misconfigured: ParamValidationError"
    assert ses.request_count == 0


def test_an_unverified_sender_is_misconfigured_and_is_accepted_once_verified(ses: FakeSes) -> None:
    ses.identities.clear()
    assert send(ses.url).error == "provider_misconfigured: MessageRejected"
    ses.identities.add("notices@example.com")
    assert send(ses.url).verdict is Verdict.ACCEPTED


def test_an_unverified_recipient_in_the_sandbox_is_misconfigured_not_refused(ses: FakeSes) -> None:
    ses.sandbox = True
    ses.identities = {"notices@example.com"}
    assert send(ses.url).verdict is Verdict.MISCONFIGURED


def test_a_missing_configuration_set_is_misconfigured(ses: FakeSes) -> None:
    ses.configuration_sets.clear()
    assert send(ses.url).error == "provider_misconfigured: NotFoundException"


@pytest.mark.parametrize(
    "tags",
    [{"notice_job": "team/42:run-7"}, {"notice_job": "x" * 257}, {"notice job": "x"}, {"notice_job": ""}],
)
def test_a_tag_that_ses_refuses_is_our_own_fault(ses: FakeSes, tags: dict[str, str]) -> None:
    answer = send(ses.url, dataclasses.replace(LETTER, tags=tags))
    assert answer.error == "provider_misconfigured: BadRequestException"
    assert ses.mails == []


def test_the_tag_of_the_longest_job_id_is_accepted(ses: FakeSes) -> None:
    letter = dataclasses.replace(LETTER, tags=notice_tags("~" * 128, "succeeded", "0c9d"))
    assert send(ses.url, letter).verdict is Verdict.ACCEPTED


def test_a_subject_of_two_lines_is_our_own_fault(ses: FakeSes) -> None:
    letter = dataclasses.replace(LETTER, subject="Ready\r\nBcc: spy@example.com")
    assert send(ses.url, letter).verdict is Verdict.MISCONFIGURED
    assert ses.mails == []


@pytest.mark.parametrize(
    ("raw_address", "expected"),
    [
        ("jösé@example.com", "address_invalid"),
        ("dana@bücher.example.com", "dana@xn--bcher-kva.example.com"),
        ("dana@example.com.", "address_invalid"),
        ("a@b@example.com", "address_invalid"),
        ("dana@example..com", "address_invalid"),
        (" dana@example.com ", "dana@example.com"),
        ("a@example.com, b@example.com", "address_invalid"),
        ('"x@"@example.com', "address_invalid"),
        ("", "address_missing"),
        (None, "address_missing"),
        ("l" * 65 + "@example.com", "address_invalid"),
        ("dana..x@example.com", "provider_refused"),
        (".dana@example.com", "provider_refused"),
    ],
)
def test_an_address_is_used_or_fails_for_good_before_or_at_ses(
    ses: FakeSes, raw_address: str | None, expected: str
) -> None:
    try:
        recipient = usable_address(raw_address)
    except AddressError as fault:
        assert fault.code == expected  # noqa: PT017 - either way is right
        return
    answer = send(ses.url, dataclasses.replace(LETTER, recipient=recipient))
    if answer.verdict is Verdict.ACCEPTED:
        assert ses.mails[0].to == expected
    else:
        assert (answer.verdict, answer.code) == (Verdict.REFUSED, expected)


@pytest.mark.parametrize(
    "setting",
    [
        "notices@example.com",
        '"Example, Inc." <notices@example.com>',
        "Example, Inc. <notices@example.com>",
        'Zoë O"Néill (Ops) <notices@example.com>',
        "Trần Thị Ánh Nguyệt, Phòng Kỹ thuật <notices@example.com>",
    ],
)
def test_a_from_address_with_any_name_goes_out_as_one_mailbox(ses: FakeSes, setting: str) -> None:
    assert send(ses.url, sender=setting).verdict is Verdict.ACCEPTED
    assert ses.mails[0].sender == mailbox(setting)


def test_the_sdk_reads_the_endpoint_from_the_environment(ses: FakeSes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SESV2", ses.url)
    assert send(None).verdict is Verdict.ACCEPTED  # type: ignore[arg-type]


def test_threads_that_share_a_sender_send_one_request_each(ses: FakeSes) -> None:
    with ses_client(ses.url) as client:
        mail = Mail(client, sender=SENDER, configuration_set="notices")
        letters = [dataclasses.replace(LETTER, subject=f"No. {n}") for n in range(20)]
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(mail.send, letters))
    assert {each.verdict for each in answers} == {Verdict.ACCEPTED}
    assert len({each.reference for each in answers}) == 20
    assert sorted(each.subject for each in ses.mails) == sorted(each.subject for each in letters)
    assert ses.request_count == 20


def test_the_request_on_the_wire_is_ascii_json(ses: FakeSes) -> None:
    send(ses.url)
    body = ses.requests[0].body
    assert body.decode("ascii")
    assert json.loads(body)["Content"]["Simple"]["Subject"] == {"Data": LETTER.subject, "Charset": "UTF-8"}
