"""The shared sender: answers, addresses, mailboxes, tags (DESIGN 3.4, 3.5)."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Mapping
from email.header import decode_header, make_header
from email.utils import parseaddr
from typing import Any

import botocore.exceptions as sdk  # type: ignore[import-untyped]
import pytest
from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from fakes.ses_server import address_fault
from notices.mail import (
    HEADERS,
    AddressError,
    Answer,
    Letter,
    Mail,
    Verdict,
    job_id_from_tag,
    mailbox,
    notice_tags,
    ses_client_config,
    usable_address,
)

SENDER = "Example <notices@example.com>"
LETTER = Letter(
    recipient="dana@example.com",
    subject="Größe",
    text="It is ready.",
    html="<p>It is ready.</p>",
    tags=notice_tags("job-0001", "succeeded", "c1"),
)


class FakeClient:
    """A `sesv2` client that answers with what it is given, and keeps what it was asked."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome
        self.requests: list[dict[str, Any]] = []

    def send_email(self, **request: Any) -> Mapping[str, Any]:
        self.requests.append(request)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome  # type: ignore[return-value]


def send(outcome: object, letter: Letter = LETTER) -> Answer:
    return Mail(FakeClient(outcome), sender=SENDER, configuration_set="notices").send(letter)


def refused(code: str, message: str | None = "", status: int = 400) -> sdk.ClientError:
    return sdk.ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},
        "SendEmail",
    )


# --- The request


def test_a_letter_becomes_one_request_to_one_recipient_with_everything_in_utf8() -> None:
    client = FakeClient({"MessageId": "m-1"})
    answer = Mail(client, sender=SENDER, configuration_set="notices").send(LETTER)
    assert answer == Answer(Verdict.ACCEPTED, reference="m-1")
    assert client.requests == [
        {
            "FromEmailAddress": SENDER,
            "Destination": {"ToAddresses": ["dana@example.com"]},
            "Content": {
                "Simple": {
                    "Subject": {"Data": "Größe", "Charset": "UTF-8"},
                    "Body": {
                        "Text": {"Data": "It is ready.", "Charset": "UTF-8"},
                        "Html": {"Data": "<p>It is ready.</p>", "Charset": "UTF-8"},
                    },
                    "Headers": [
                        {"Name": "Auto-Submitted", "Value": "auto-generated"},
                        {"Name": "X-Auto-Response-Suppress", "Value": "DR, RN, NRN, OOF, AutoReply"},
                    ],
                }
            },
            "EmailTags": [
                {"Name": "notice_job", "Value": "am9iLTAwMDE"},
                {"Name": "notice_outcome", "Value": "succeeded"},
                {"Name": "notice_claim", "Value": "c1"},
            ],
            "ConfigurationSetName": "notices",
        }
    ]


def test_no_header_asks_exchange_to_keep_a_bounce_to_itself() -> None:
    values = [value.strip() for value in HEADERS["X-Auto-Response-Suppress"].split(",")]
    assert not {"All", "NDR"} & set(values)


def test_without_a_configuration_set_none_is_named() -> None:
    client = FakeClient({"MessageId": "m-1"})
    Mail(client, sender=SENDER, configuration_set=None).send(LETTER)
    assert "ConfigurationSetName" not in client.requests[0]


@pytest.mark.parametrize("sender", [None, "", "  "])
def test_without_a_from_address_nothing_is_sent_and_the_error_names_both_settings(sender: str | None) -> None:
    client = FakeClient({"MessageId": "m-1"})
    answer = Mail(client, sender=sender, configuration_set="notices").send(LETTER)
    assert (answer.verdict, answer.code) == (Verdict.MISCONFIGURED, "sender_unset")
    assert answer.error is not None
    assert answer.error.startswith("sender_unset: ")
    assert "NOTICE_FROM_ADDRESS" in answer.error
    assert "MAIL_FROM_ADDRESS" in answer.error
    assert client.requests == []


def test_a_from_address_that_cannot_be_used_is_met_when_the_sender_is_made() -> None:
    with pytest.raises(ValueError, match="more than one mailbox"):
        Mail(FakeClient({}), sender="A <a@example.com>, B <b@example.com>", configuration_set=None)


# --- What SES says

REFUSED = (Verdict.REFUSED, "provider_refused")
THROTTLED = (Verdict.UNAVAILABLE, "throttled")
QUOTA = (Verdict.UNAVAILABLE, "quota_exceeded")
UNREACHABLE = (Verdict.UNAVAILABLE, "provider_unreachable")
MISCONFIGURED = (Verdict.MISCONFIGURED, "provider_misconfigured")
UNKNOWN = (Verdict.UNKNOWN, "provider_unknown")

NOT_VERIFIED = (
    "Email address is not verified. The following identities failed the check in region EU-WEST-1: dana@example.com"
)
ADDRESS_TEXTS = [
    "Illegal address",
    "Missing final '@domain'",
    "Missing domain",
    "Missing local name",
    "Local address contains control or whitespace",
    "Local address contains illegal character",
    "Local address contains dot-dot",
    "Local address starts with dot",
    "Local address ends with dot",
    "Domain contains control or whitespace",
    "Domain contains illegal character",
    "Domain contains dot-dot",
    "Domain starts with dot",
    "Domain ends with dot",
    "Invalid domain name: 'example..com'.",
    "Invalid email address <dana@example.com>.",
    "Invalid email address dana@example.com.",
    "Invalid email address: notices@example.com and dana@example.com",
    "Invalid email address <from+sender@example.com>.",  # words in what SES quotes do not count
    "Address length is more than 320 characters long: 'dana@example.com'.",
]
OUR_TEXTS = [
    None,
    "",
    "Invalid From address provided.",
    "Source cannot be empty",
    "Missing required header 'From'.",
    "Missing required header 'To'.",
    "Invalid email address <notices@example.com>.",
    "Address length is more than 320 characters long: '\"Example\" <notices@example.com>'.",
    "Recipient count exceeds 50.",
    "Invalid Reply-To address",
    "Invalid tag value <email address>: only alphanumeric ASCII characters, '_', and '-' are allowed.",
    "Tag value cannot exceed 256 characters.",
    "Invalid header value for address",
    "Invalid configuration set name <a.b>: only alphanumeric ASCII characters, '_', and '-' are allowed.",
    "Email address is not verified.",
    "The domain example.com has not been verified",
    "Something that nobody has seen yet",
]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *[(refused("BadRequestException", text), REFUSED) for text in ADDRESS_TEXTS],
        *[(refused("BadRequestException", text), MISCONFIGURED) for text in OUR_TEXTS],
        (refused("MessageRejected", NOT_VERIFIED), MISCONFIGURED),
        (refused("MessageRejected", NOT_VERIFIED + "\r\n" + "x" * 5000), MISCONFIGURED),
        (
            refused("MessageRejected", "Sending paused for this account. For more information, …"),
            MISCONFIGURED,
        ),
        (refused("MessageRejected", "Sending suspended for this account."), MISCONFIGURED),
        (refused("MessageRejected", "Daily message quota exceeded."), QUOTA),
        (refused("MessageRejected", "Maximum sending rate exceeded."), THROTTLED),
        (refused("MessageRejected", "Message contains a virus."), REFUSED),
        (refused("MessageRejected", "Address blacklisted."), REFUSED),
        (refused("MessageRejected", "Invalid content from <paused@example.com>"), REFUSED),
        (refused("MessageRejected"), REFUSED),
        (refused("TooManyRequestsException", "Maximum sending rate exceeded.", 429), THROTTLED),
        (refused("TooManyRequestsException", "Daily message quota exceeded", 429), QUOTA),
        (refused("TooManyRequestsException", None, 429), THROTTLED),
        (refused("Throttling", "Maximum sending rate exceeded."), THROTTLED),
        (refused("Throttling", "Daily message quota exceeded."), QUOTA),
        (refused("ThrottlingException", "Rate exceeded"), THROTTLED),
        (refused("RequestThrottledException", "", 503), THROTTLED),
        (refused("SomethingElse", "", 429), THROTTLED),
        (refused("429", "", 429), THROTTLED),
        (refused("LimitExceededException", "limit"), QUOTA),
        (refused("AccountSuspendedException"), MISCONFIGURED),
        (refused("SendingPausedException"), MISCONFIGURED),
        (refused("MailFromDomainNotVerifiedException"), MISCONFIGURED),
        (refused("NotFoundException", "Configuration set <notices> does not exist.", 404), MISCONFIGURED),
        (refused("AccessDeniedException", "not authorized", 403), MISCONFIGURED),
        (refused("ExpiredTokenException", "", 403), MISCONFIGURED),
        (refused("InvalidSignatureException", "Signature expired", 403), MISCONFIGURED),
        (refused("UnrecognizedClientException", "", 403), MISCONFIGURED),
        (refused("SerializationException"), MISCONFIGURED),
        (refused("418", "", 418), MISCONFIGURED),
        (refused("307", "", 307), MISCONFIGURED),
        (refused("InternalServiceErrorException", "", 500), UNKNOWN),
        (refused("ConcurrentModificationException", "", 500), UNKNOWN),
        (refused("ServiceUnavailable", "", 503), UNKNOWN),
        (refused("504", "Gateway Timeout", 504), UNKNOWN),
        (refused("MessageRejected", "", 500), UNKNOWN),
        (refused("RequestTimeout", "", 408), UNKNOWN),
        (refused("Unheard", "", 0), UNKNOWN),
        (sdk.ClientError({}, "SendEmail"), UNKNOWN),
        (sdk.ClientError({"Error": {"Code": None, "Message": None}}, "SendEmail"), UNKNOWN),
    ],
)
def test_each_error_of_ses_gets_the_answer_of_the_table(error: sdk.ClientError, expected: tuple[Verdict, str]) -> None:
    answer = send(error)
    assert (answer.verdict, answer.code) == expected
    assert answer.reference is None


@given(st.text())
def test_whatever_address_the_strict_fake_refuses_counts_as_refused(address: str) -> None:
    fault = address_fault(address)
    if fault:
        answer = send(refused("BadRequestException", fault))
        assert (answer.verdict, answer.code) == REFUSED


@given(code=st.text(), message=st.text(), status=st.integers(300, 599))
def test_an_error_is_one_short_line_with_the_code_first_and_nothing_of_the_text(
    code: str, message: str, status: int
) -> None:
    marked = f"{message} SENTINEL dana@example.com {message}"
    answer = send(refused(code, marked, status))
    assert answer.code is not None
    assert answer.error is not None
    assert answer.error.startswith(f"{answer.code}: ")
    assert len(answer.error) <= 256
    assert answer.error.isprintable()
    assert "SENTINEL" not in answer.error
    assert "@" not in answer.error


def test_a_code_that_is_no_code_does_not_reach_the_record() -> None:
    assert send(refused("dana@example.com\n", "", 400)).error == "provider_misconfigured: UnnamedError"


def test_a_very_long_text_is_sorted_at_once() -> None:
    assert send(refused("BadRequestException", "Illegal address " + "x" * 5_000_000)).verdict is Verdict.REFUSED


# --- What the SDK and the network do

LOCAL = {"endpoint_url": "http://127.0.0.1"}
VERIFY_FAILED = ssl.SSLCertVerificationError(1, "certificate verify failed")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (sdk.ConnectTimeoutError(**LOCAL), UNREACHABLE),
        (sdk.EndpointConnectionError(error="refused", **LOCAL), UNREACHABLE),
        (sdk.ProxyConnectionError(proxy_url="http://proxy", error="refused"), UNREACHABLE),
        (sdk.SSLError(error=VERIFY_FAILED, **LOCAL), UNREACHABLE),
        (sdk.SSLError(error=OSError(VERIFY_FAILED), **LOCAL), UNREACHABLE),
        (sdk.SSLError(error=ssl.SSLEOFError(8, "EOF occurred"), **LOCAL), UNKNOWN),
        (sdk.SSLError(error="words", **LOCAL), UNKNOWN),
        (sdk.ReadTimeoutError(**LOCAL), UNKNOWN),
        (sdk.ConnectionClosedError(**LOCAL), UNKNOWN),
        (sdk.ResponseStreamingError(error="cut"), UNKNOWN),
        (sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2), UNKNOWN),
        (sdk.HTTPClientError(error="anything"), UNKNOWN),
        (ResponseParserError("not JSON"), UNKNOWN),
        (TimeoutError(), UNKNOWN),
        (OSError(104, "Connection reset by peer"), UNKNOWN),
        (AttributeError("'list' object has no attribute 'get'"), UNKNOWN),
        (sdk.NoCredentialsError(), MISCONFIGURED),
        (sdk.PartialCredentialsError(provider="env", cred_var="aws_secret_access_key"), MISCONFIGURED),
        (sdk.CredentialRetrievalError(provider="container", error_msg="no"), MISCONFIGURED),
        (sdk.NoRegionError(), MISCONFIGURED),
        (sdk.UnknownEndpointError(service_name="sesv2", region_name="moon"), MISCONFIGURED),
        (sdk.EndpointResolutionError(msg="no"), MISCONFIGURED),
        (sdk.ParamValidationError(report="no"), MISCONFIGURED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value[1],
)
def test_each_error_of_the_sdk_gets_the_answer_of_the_table(error: Exception, expected: tuple[Verdict, str]) -> None:
    answer = send(error)
    assert (answer.verdict, answer.code) == expected
    assert answer.error == f"{expected[1]}: {type(error).__name__}"


# Errors of the SDK that can be raised once a request has gone out, that no send raises, or that say nothing
# about it. Whoever updates botocore and finds a new name missing here decides where it belongs.
NOT_PROVED = {
    *("HTTPClientError", "ReadTimeoutError", "ConnectionClosedError", "ResponseStreamingError", "SSLError"),
    *("BotoCoreError", "ConnectionError", "IncompleteReadError", "ChecksumError", "FlexibleChecksumError"),
    *("UnseekableStreamError", "AwsChunkedWrapperError", "InvalidChecksumConfigError", "MD5UnavailableError"),
    *("ApiVersionNotFoundError", "ServiceNotInRegionError", "UnknownServiceStyle"),
    *("PaginationError", "OperationNotPageableError", "WaiterError", "WaiterConfigError"),
    *(
        "InvalidExpressionError",
        "UnknownClientMethodError",
        "InvalidDNSNameError",
        "CapacityNotAvailableError",
    ),
    *("InvalidS3AddressingStyleError", "UnsupportedS3ArnError", "UnsupportedS3ControlArnError"),
    *(
        "UnsupportedOutpostResourceError",
        "UnsupportedS3ConfigurationError",
        "UnsupportedS3AccesspointConfigurationError",
    ),
    *("UnsupportedS3ControlConfigurationError", "InvalidEndpointDiscoveryConfigurationError"),
    *("InvalidRetryConfigurationError", "InvalidMaxRetryAttemptsError", "InvalidRetryModeError"),
    *("InvalidS3UsEast1RegionalEndpointConfigError", "InvalidSTSRegionalEndpointsConfigError"),
    *("StubResponseError", "StubAssertionError", "UnStubbedResponseError", "InvalidProxiesConfigError"),
    *("InvalidDefaultsMode", "UnsupportedServiceProtocolsError"),
}
SDK_ERRORS = [each for _, each in inspect.getmembers(sdk, inspect.isclass) if issubclass(each, sdk.BotoCoreError)]


def _made(cls: type[Exception]) -> Exception:
    error = cls.__new__(cls)  # each wants arguments of its own, and the answer depends on the class alone
    error.kwargs = {}  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("cls", SDK_ERRORS, ids=lambda cls: cls.__name__)
def test_every_error_of_the_sdk_is_either_proved_harmless_or_unknown(cls: type[Exception]) -> None:
    answer = send(_made(cls))
    assert (answer.verdict is Verdict.UNKNOWN) == (cls.__name__ in NOT_PROVED)


@pytest.mark.parametrize("response", [{}, {"MessageId": None}, {"MessageId": ""}, {"MessageId": 7}, None, []])
def test_a_success_without_a_message_id_is_unknown(response: object) -> None:
    answer = send(response)
    assert (answer.verdict, answer.code) == UNKNOWN


def test_what_ends_the_process_is_not_caught() -> None:
    with pytest.raises(KeyboardInterrupt):
        send(KeyboardInterrupt())


def test_the_client_settings_allow_one_attempt_and_short_waits() -> None:
    config = ses_client_config(pool_size=7)
    assert config.retries == {"total_max_attempts": 1, "mode": "standard"}
    assert (config.connect_timeout, config.read_timeout, config.max_pool_connections) == (2, 10, 7)


# --- Addresses


@pytest.mark.parametrize(
    ("raw", "usable"),
    [
        ("dana@example.com", "dana@example.com"),
        (" dana@example.com ", "dana@example.com"),
        ("\tdana@example.com\r\n", "dana@example.com"),
        ("dana@bücher.example.com", "dana@xn--bcher-kva.example.com"),
        ("dana@BÜCHER.example.com", "dana@xn--bcher-kva.example.com"),
        ("dana@faß.example.com", "dana@xn--fa-hia.example.com"),
        ("dana@example。com", "dana@example.com"),
        ("dana@xn--bcher-kva.example.com", "dana@xn--bcher-kva.example.com"),
        ("Dana.O'Neill+jobs=1@Mail-1.Example.COM", "Dana.O'Neill+jobs=1@Mail-1.Example.COM"),
        ("dana..x@example.com", "dana..x@example.com"),
        ("l" * 64 + "@example.com", "l" * 64 + "@example.com"),
        ("dana@" + "d" * 63 + ".com", "dana@" + "d" * 63 + ".com"),
    ],
)
def test_an_address_comes_out_as_ses_takes_it(raw: str, usable: str) -> None:
    assert usable_address(raw) == usable


@pytest.mark.parametrize("raw", [None, "", "   ", "\r\n"])
def test_no_address_is_address_missing(raw: str | None) -> None:
    with pytest.raises(AddressError) as caught:
        usable_address(raw)
    assert caught.value.code == "address_missing"


@pytest.mark.parametrize(
    "raw",
    [
        "jösé@example.com",
        "dana@example.com.",
        "a@b@example.com",
        "dana@example..com",
        "dana@.example.com",
        "a@example.com, b@example.com",
        "a@example.com b@example.com",
        "a@example.com;",
        '"x@"@example.com',
        '"dana"@example.com',
        "Dana <dana@example.com>",
        "l" * 65 + "@example.com",
        "dana",
        "dana@",
        "@example.com",
        "dana@localhost",
        "dana@[192.0.2.1]",
        "dana@-example.com",
        "dana@example-.com",
        "dana@exam_ple.com",
        "dana@" + "d" * 64 + ".com",
        "dana@" + "ü" * 64 + ".com",
        "dana@" + "d." * 127 + "com",
        "dana@bücher..com",
        "dana@bü cher.com",
        "dana@exam\nple.com",
        "da\nna@example.com",
        "dana@\udcff.com",
        "da\x00na@example.com",
    ],
)
def test_an_address_that_cannot_be_used_is_address_invalid_and_is_not_repeated(raw: str) -> None:
    with pytest.raises(AddressError) as caught:
        usable_address(raw)
    assert caught.value.code == "address_invalid"
    assert str(caught.value).startswith("address_invalid: ")
    assert raw not in str(caught.value)


@given(st.one_of(st.text(), st.builds("{}@{}".format, st.text(min_size=1), st.text(min_size=1))))
def test_any_text_is_either_one_ascii_address_on_one_line_or_an_address_error(raw: str) -> None:
    try:
        address = usable_address(raw)
    except AddressError as error:
        assert error.code in {"address_missing", "address_invalid"}  # noqa: PT017 - either is right
    else:
        assert address.isascii()
        assert address.isprintable()
        assert address.count("@") == 1
        assert usable_address(address) == address


# --- Mailboxes


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("notices@example.com", "notices@example.com"),
        ("  <notices@example.com> ", "notices@example.com"),
        ("Example <notices@example.com>", "Example <notices@example.com>"),
        ('"Example, Inc." <notices@example.com>', '"Example, Inc." <notices@example.com>'),
        ("Example, Inc. <notices@example.com>", '"Example, Inc." <notices@example.com>'),
        ('Dana "D" Example <d@example.com>', '"Dana \\"D\\" Example" <d@example.com>'),
        ('"Say \\"hi\\"" <d@example.com>', '"Say \\"hi\\"" <d@example.com>'),
        ('"A <a@b>" <d@example.com>', '"A <a@b>" <d@example.com>'),
        ('"" <d@example.com>', "d@example.com"),
        ("Team @ Example <d@example.com>", '"Team @ Example" <d@example.com>'),
        ("Zoë <d@bücher.example.com>", "=?utf-8?q?Zo=C3=AB?= <d@xn--bcher-kva.example.com>"),
        ("=?utf-8?b?Wm/Dqw==?= <d@example.com>", "=?utf-8?b?Wm/Dqw==?= <d@example.com>"),
    ],
)
def test_a_from_address_setting_becomes_one_mailbox(raw: str, expected: str) -> None:
    assert mailbox(raw) == expected


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("Example", "its address cannot be used"),
        ("Example <>", "its address cannot be used: there is no address"),
        ("Example <notices@example.com", "its address cannot be used"),
        ("notices@example.com>", "a > without a <"),
        ("notices@example.com (Example)", "its address cannot be used"),
        ("a@example.com, b@example.com", "more than one @"),
        ("A <a@example.com>, B <b@example.com>", "more than one mailbox"),
        ("a@example.com, B <b@example.com>", "more than one mailbox"),
        ('"Example <notices@example.com>', "quotes"),
        ('"Example" Inc. <notices@example.com>', "quotes"),
        ("Example\r\nBcc: x <notices@example.com>", "line break"),
        ("Example\u2028X <notices@example.com>", "line break"),
        ("Ex\udcff <notices@example.com>", "not valid UTF-8"),
        ("Größe <nötices@example.com>", "not ASCII"),
        ("x" * 320 + " <notices@example.com>", "longer than 320"),
    ],
)
def test_a_from_address_that_is_not_one_mailbox_is_refused_in_words(raw: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        mailbox(raw)


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=60)


@given(NAMES)
def test_a_quoted_name_goes_out_whole_in_ascii_on_one_line_and_reads_back(name: str) -> None:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    try:
        result = mailbox(f'"{quoted}" <notices@example.com>')
    except ValueError as error:
        assert "longer than 320" in str(error)  # noqa: PT017
        return
    assert result.isascii()
    assert result.isprintable()
    assert mailbox(result) == result
    assert address_fault(result) is None
    if "=?" not in name:  # a name that looks encoded is read as encoded by everyone
        shown, address = parseaddr(result)
        assert str(make_header(decode_header(shown))).split() == name.split()
        assert address == "notices@example.com"


@given(st.one_of(st.text(), st.builds("{} <{}@example.com>".format, st.text(), st.text(max_size=5))))
def test_any_setting_is_one_mailbox_or_a_value_error(raw: str) -> None:
    try:
        result = mailbox(raw)
    except ValueError:
        return
    assert result.isascii()
    assert result.isprintable()
    assert mailbox(result) == result


# --- Tags


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=128))
def test_a_job_id_survives_its_tag_and_the_tag_is_in_the_alphabet_of_ses(job_id: str) -> None:
    tags = notice_tags(job_id, "succeeded", "0c9d")
    assert set(tags) == {"notice_job", "notice_outcome", "notice_claim"}
    value = tags["notice_job"]
    assert value.isascii()
    assert value.replace("-", "").replace("_", "").isalnum()
    assert len(value) <= 256
    assert job_id_from_tag(value) == job_id


def test_the_tags_of_known_job_ids_are_these() -> None:
    assert notice_tags("team/42:run-7", "failed", "c1") == {
        "notice_job": "dGVhbS80MjpydW4tNw",
        "notice_outcome": "failed",
        "notice_claim": "c1",
    }
    assert len(notice_tags("~" * 128, "failed", "c1")["notice_job"]) == 171


@pytest.mark.parametrize("value", ["", "a", "am9i=", "am9i\n", "a b", "am9iLTAwMDF", "_w", "größe", "am9i+/"])
def test_a_tag_that_is_not_ours_is_a_value_error(value: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - feedback asks no more than this
        job_id_from_tag(value)


@given(st.text())
def test_any_tag_is_a_job_id_or_a_value_error(value: str) -> None:
    try:
        job_id = job_id_from_tag(value)
    except ValueError:
        return
    assert notice_tags(job_id, "", "")["notice_job"] == value
