"""The shared sender: one message to one person through SES v2, and an honest answer (DESIGN 3.5).

It knows nothing of jobs, kinds or notices. Five answers: *accepted*; *refused*, for good; *unavailable*,
for now; *misconfigured*, for want of a setting; and *unknown*, when the request may have gone out and no
usable answer came back. SendEmail has no idempotency token, so what cannot be proved not sent is unknown,
and nothing here ever sends twice.
"""

from __future__ import annotations

import base64
import enum
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formataddr
from typing import Any, Final, Protocol

from botocore import exceptions as sdk  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]

from notices.codes import Code
from notices.pace import Pace

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 10
"""How long one send may wait to connect, and then for each piece of the answer."""

# Both keep vacation replies away: the first is RFC 3834, the second Exchange's own ([MS-OXCMAIL] 2.2.3.2.14).
# Not its "All", which would also suppress the non-delivery reports that bounce feedback lives on.
HEADERS: Final[Mapping[str, str]] = {
    "Auto-Submitted": "auto-generated",
    "X-Auto-Response-Suppress": "DR, RN, NRN, OOF, AutoReply",
}


class Verdict(enum.Enum):
    """What became of a send, in the words of DESIGN 3.5."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    MISCONFIGURED = "misconfigured"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one send.

    `reference` is SES's message id, for accepted only. All others have a `code` (a stable one of DESIGN 3.4)
    and an `error`: one line of at most 256 characters, the code first, then the name of SES's error or of the
    exception. Never SES's own text, which quotes addresses.
    """

    verdict: Verdict
    reference: str | None = None
    code: Code | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    """A message: `recipient` as `usable_address` returns it, one-line `subject`, `tags` as SES takes them."""

    recipient: str
    subject: str
    text: str
    html: str
    tags: Mapping[str, str]


class Client(Protocol):
    """What is used of a botocore `sesv2` client. Make it with `ses_client_config`: one attempt per call."""

    def send_email(self, **request: Any) -> Mapping[str, Any]:
        """SES v2 `SendEmail`."""
        ...


def ses_client_config(pool_size: int = 10) -> Config:
    """The settings of a client for `Mail`: one HTTP attempt per send and short time-outs (DESIGN 3.5).

    With the SDK's defaults, a slow answer makes up to five mails of one send. Attempts and mode are both
    given, so AWS_MAX_ATTEMPTS, AWS_RETRY_MODE and the shared configuration file have no say; `adaptive`
    would also sleep before a send. `pool_size` is the number of threads that send at once.
    """
    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=pool_size,
    )


class Mail:
    """Sends letters from one address through one configuration set.

    `sender` is a from-address setting as `mailbox` takes it (an unusable one raises ValueError here), or None
    or blank where none is set. `configuration_set` may be None: SES then uses the identity's own. `pace` says when to
    send; None is as fast as it goes.
    """

    def __init__(
        self, client: Client, *, sender: str | None, configuration_set: str | None, pace: Pace | None = None
    ) -> None:
        self._client = client
        self._sender = mailbox(sender) if sender and sender.strip() else None
        self._configuration_set = configuration_set
        self._pace = pace

    def send(self, letter: Letter) -> Answer:
        """Send the letter when its turn comes, in one attempt, and say what came of it.

        When its turn is too far off, it is throttled without a send.

        Never raises for anything that SES, the SDK or the network does.
        """
        if self._sender is None:
            # Met per notice, not at start, because the record must say so.
            return Answer(
                Verdict.MISCONFIGURED,
                code=Code.SENDER_UNSET,
                error=f"{Code.SENDER_UNSET}: neither NOTICE_FROM_ADDRESS nor MAIL_FROM_ADDRESS is set",
            )
        if self._pace is not None and not self._pace.take_turn():
            return _failure(Verdict.UNAVAILABLE, Code.THROTTLED, "NoTurn")
        request = self._request(self._sender, letter)
        try:
            reference = self._client.send_email(**request).get("MessageId")
        except Exception as error:  # noqa: BLE001 - whatever it was, the notice must get its answer
            return _answer_to(error, sender=_address_of(self._sender), recipient=letter.recipient)
        if not isinstance(reference, str) or not reference:
            # A success without an id: a proxy's page, or a body cut short. SES may well have the message.
            return _failure(Verdict.UNKNOWN, Code.PROVIDER_UNKNOWN, "NoMessageId")
        return Answer(Verdict.ACCEPTED, reference=reference)

    def _request(self, sender: str, letter: Letter) -> dict[str, Any]:
        request: dict[str, Any] = {
            "FromEmailAddress": sender,
            "Destination": {"ToAddresses": [letter.recipient]},
            "Content": {
                "Simple": {
                    "Subject": _utf8(letter.subject),
                    "Body": {"Text": _utf8(letter.text), "Html": _utf8(letter.html)},
                    "Headers": [{"Name": name, "Value": value} for name, value in HEADERS.items()],
                }
            },
            "EmailTags": [{"Name": name, "Value": value} for name, value in letter.tags.items()],
        }
        if self._configuration_set:
            request["ConfigurationSetName"] = self._configuration_set
        return request


def _utf8(data: str) -> dict[str, str]:
    return {"Data": data, "Charset": "UTF-8"}


# --- From an exception to an answer (the table of DESIGN 3.5) -------------------------------------

# The connection was never made, so nothing was sent.
_NEVER_CONNECTED: Final = (sdk.ConnectTimeoutError, sdk.EndpointConnectionError, sdk.ProxyConnectionError)

# Raised before the request is sent: no credentials, no region or endpoint, a request that the SDK itself
# refuses. A list of what is proved: anything not in it, also what a later SDK brings, is unknown.
_NEVER_SENT: Final = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.MetadataRetrievalError,
    sdk.NoAuthTokenError,
    sdk.TokenRetrievalError,
    sdk.UnknownTokenProviderError,
    sdk.UnknownCredentialError,
    sdk.RefreshWithMFAUnsupportedError,
    sdk.SSOError,
    sdk.LoginError,
    sdk.ProfileNotFound,
    sdk.ConfigNotFound,
    sdk.ConfigParseError,
    sdk.InvalidConfigError,
    sdk.InvalidIMDSEndpointError,
    sdk.InvalidIMDSEndpointModeError,
    sdk.UnknownSignatureVersionError,
    sdk.UnsupportedSignatureVersionError,
    sdk.BaseEndpointResolverError,
    sdk.EndpointProviderError,
    sdk.InvalidEndpointConfigurationError,
    sdk.UnknownRegionError,
    sdk.InvalidHostLabelError,
    sdk.DataNotFoundError,
    sdk.MissingDependencyException,
    sdk.ParamValidationError,
    sdk.ValidationError,
    sdk.MissingParametersError,
)

# Codes without their "Exception". SES v2 says TooManyRequests; the others are from the SDKs' list.
_THROTTLING: Final = frozenset(
    {
        "TooManyRequests",
        "Throttling",
        "Throttled",
        "ThrottledRequest",
        "RequestThrottled",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "SlowDown",
    }
)

# SES tells some refusals apart in its text only, which is English and no contract. The texts met so far are
# in tests/unit/test_mail.py. A BadRequest with a text that nobody knows is the answer that is tried again.
_DAILY: Final = re.compile(r"\bdaily\b|\b24[ -]?h|\bper day\b")
_RATE: Final = re.compile(r"\bsending rate\b")
_SETTING: Final = re.compile(
    r"\bnot verified\b|\bunverified\b|\bnot been verified\b|\bpaused\b|\bsuspended\b|\bsandbox\b"
)
# "Invalid From address provided.", "Source cannot be empty", "Invalid tag value <…>: …",
# "Missing required header 'To'.", "Recipient count exceeds 50."
_OURS: Final = re.compile(
    r"\b(?:from|sender|source|return-?path|reply-?to|feedback|tags?|headers?|configuration|count)\b"
)
# "Illegal address", "Invalid email address <…>.", and JavaMail's: "Missing final '@domain'",
# "Missing local name", "Local address contains control or whitespace", "Domain ends with dot", …
_ADDRESS: Final = re.compile(
    r"\baddress(?:es)?\b|\brecipients?\b|\blocal (?:name|part)\b|\bdomain (?:name|contains|starts|ends)\b"
    r"|\bmissing (?:final|domain)\b"
)
_QUOTED_VALUE: Final = re.compile(r"<[^>]*>|[^\s<>'\"(),;:]+@[^\s<>'\"(),;:]+")


def _answer_to(error: Exception, *, sender: str, recipient: str) -> Answer:
    name = type(error).__name__
    if isinstance(error, sdk.ClientError):
        return _answer_to_refusal(error.response, sender=sender, recipient=recipient)
    if isinstance(error, _NEVER_CONNECTED) or _is_bad_certificate(error):
        return _failure(Verdict.UNAVAILABLE, Code.PROVIDER_UNREACHABLE, name)
    if isinstance(error, _NEVER_SENT):
        return _failure(Verdict.MISCONFIGURED, Code.PROVIDER_MISCONFIGURED, name)
    # Read time-outs, connections lost, answers that could not be read, anything unforeseen: nothing proves
    # that no message went out. (A TLS handshake that stalls or breaks off looks the same from here.)
    return _failure(Verdict.UNKNOWN, Code.PROVIDER_UNKNOWN, name)


def _answer_to_refusal(response: Mapping[str, Any], *, sender: str, recipient: str) -> Answer:
    """Sort an error response of SES, as the SDK parsed it."""
    error = response.get("Error") or {}
    status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
    name = _safe_name(error.get("Code"))
    code = name.removesuffix("Exception")
    # SES's own words come first; what it quotes is the user's, and must not be taken for them.
    message = str(error.get("Message") or "")[:1000].lower()
    text = _QUOTED_VALUE.sub(" ", message)

    if code in _THROTTLING or status == 429:
        if _DAILY.search(text):
            return _failure(Verdict.UNAVAILABLE, Code.QUOTA_EXCEEDED, name)
        return _failure(Verdict.UNAVAILABLE, Code.THROTTLED, name)
    if status >= 500 or status == 408:  # 408: a gateway gave up waiting, on the request or on what it asked
        return _failure(Verdict.UNKNOWN, Code.PROVIDER_UNKNOWN, name)
    if code == "LimitExceeded":
        return _failure(Verdict.UNAVAILABLE, Code.QUOTA_EXCEEDED, name)
    if code == "MessageRejected":
        if _SETTING.search(text):
            return _failure(Verdict.MISCONFIGURED, Code.PROVIDER_MISCONFIGURED, name)
        if _DAILY.search(text):
            return _failure(Verdict.UNAVAILABLE, Code.QUOTA_EXCEEDED, name)
        if _RATE.search(text):
            return _failure(Verdict.UNAVAILABLE, Code.THROTTLED, name)
        return _failure(Verdict.REFUSED, Code.PROVIDER_REFUSED, name)
    if code == "BadRequest":
        # Most texts do not say whose address is meant. Ours was checked by `mailbox`, so it is the
        # recipient's, unless SES quotes ours. A wrong "refused" would lose every notice for good; a wrong
        # "misconfigured" is tried again, with an alarm.
        quotes_us = sender.lower() in message and recipient.lower() not in message
        if _ADDRESS.search(text) and not _OURS.search(text) and not _SETTING.search(text) and not quotes_us:
            return _failure(Verdict.REFUSED, Code.PROVIDER_REFUSED, name)
        return _failure(Verdict.MISCONFIGURED, Code.PROVIDER_MISCONFIGURED, name)
    if status >= 300:  # a 4xx that we do not know; or a redirect, which SES does not send: the wrong endpoint
        return _failure(Verdict.MISCONFIGURED, Code.PROVIDER_MISCONFIGURED, name)
    return _failure(Verdict.UNKNOWN, Code.PROVIDER_UNKNOWN, name)


def _is_bad_certificate(error: Exception) -> bool:
    """Whether TLS ended at the server's certificate: in the handshake, before any request."""
    cause = error.kwargs.get("error") if isinstance(error, sdk.SSLError) else None
    return isinstance(cause, Exception) and any(
        isinstance(each, ssl.SSLCertVerificationError) for each in (cause, *cause.args)
    )


def _safe_name(code: object) -> str:
    """An error code from outside, if it is one: whoever answered wrote it, and it ends in the record."""
    return code if isinstance(code, str) and re.fullmatch(r"[A-Za-z0-9]{1,64}", code) else "UnnamedError"


def _failure(verdict: Verdict, code: Code, name: str) -> Answer:
    return Answer(verdict, code=code, error=f"{code}: {name}"[:256])


# --- Addresses ------------------------------------------------------------------------------------

_LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+")
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")
_ENCODED_WORDS: Final = re.compile(r"=\?[!->@-~]+\?[BbQq]\?[!->@-~]*\?=(?: +=\?[!->@-~]+\?[BbQq]\?[!->@-~]*\?=)*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST_MAILBOX: Final = 320  # SES: "Address length is more than 320 characters long"


class AddressError(ValueError):
    """No mail can be sent to this address. `code` is the stable code of DESIGN 3.4.

    `str()` is one line for the record: the code and what is wrong, nothing of the address.
    """

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


def usable_address(raw: str | None) -> str:
    """The address as SES takes it: trimmed, the domain in IDNA (UTS 46), the rest as written (DESIGN 3.5).

    It has to be one address, with an unquoted ASCII local part of at most 64 characters and a domain of two
    or more proper labels. Whether SES likes the rest (dots side by side, say) is for SES to say.

    Raises AddressError: `address_missing` for None or blank, `address_invalid` for the rest.
    """
    address = (raw or "").strip()
    if not address:
        raise AddressError(Code.ADDRESS_MISSING, "there is no address")
    local, _, domain = address.rpartition("@")
    if not local or not domain:
        raise AddressError(Code.ADDRESS_INVALID, "not of the form name@domain")
    if "@" in local:
        raise AddressError(Code.ADDRESS_INVALID, "more than one @")
    if not local.isascii():
        raise AddressError(Code.ADDRESS_INVALID, "a name part that is not ASCII")  # SES has no SMTPUTF8
    if len(local) > 64:
        raise AddressError(Code.ADDRESS_INVALID, "a name part of more than 64 characters")
    if not _LOCAL.fullmatch(local):
        raise AddressError(Code.ADDRESS_INVALID, "a character that the name part cannot have")
    return f"{local}@{_ascii_domain(domain)}"


def _ascii_domain(domain: str) -> str:
    # The length first: encoding takes time that grows with it.
    if len(domain) <= 253 and not domain.isascii():
        import idna  # only here: most domains are ASCII, and its tables cost a cold start

        try:
            domain = idna.encode(domain, uts46=True).decode("ascii")
        except UnicodeError as error:  # its own errors, and Python's for lone surrogates
            raise AddressError(Code.ADDRESS_INVALID, "a domain that has no IDNA form") from error
    if len(domain) > 253 or not _DOMAIN.fullmatch(domain):
        raise AddressError(Code.ADDRESS_INVALID, "not a domain name")
    return domain


def mailbox(raw: str) -> str:
    """A from-address setting as one RFC 5322 mailbox: ASCII, one line. Applied again, it changes nothing.

    `a@example.com`, `Example <a@example.com>` and `"Example, Inc." <a@example.com>` go through; in
    `Example, Inc. <a@example.com>` the name is quoted for the user, one that is not ASCII is encoded
    (RFC 2047), and one encoded already is kept. A name is never cut.

    Raises ValueError, saying what is wrong, for anything else: no address or more than one, a bad address,
    control characters, quotes that do not close, more than the 320 characters that SES takes.
    """
    text = raw.strip()
    if not text:
        raise ValueError("it is empty")
    if _CONTROL.search(text):
        raise ValueError("it holds a line break or another control character")
    if text.endswith(">"):
        name, bracket, address = text[:-1].rpartition("<")
        if not bracket:
            raise ValueError("it has a > without a <")
    else:
        name, address = "", text
    try:
        address = usable_address(address)
    except AddressError as error:
        raise ValueError(f"its address cannot be used: {error.reason}") from error
    result = _with_name(name.strip(), address)
    if len(result) > _LONGEST_MAILBOX:
        raise ValueError(f"it is longer than {_LONGEST_MAILBOX} characters as SES takes it")
    return result


def _with_name(name: str, address: str) -> str:
    if _ENCODED_WORDS.fullmatch(name):
        return f"{name} <{address}>"  # quoting would show the code instead of the name
    if name.startswith('"'):
        if not re.fullmatch(r'"(?:[^"\\]|\\.)*"', name):
            raise ValueError("the quotes around its name do not close, or something follows them")
        name = re.sub(r"\\(.)", r"\1", name[1:-1]).strip()
    elif re.search(r"[<>]|\S@\S", name):
        raise ValueError("it names more than one mailbox")  # put the name in quotes if it is part of it
    if name.isascii():
        return formataddr((name, address))
    from email.header import Header  # rarely needed

    try:
        encoded = Header(name, "utf-8", maxlinelen=75).encode(linesep="")
    except UnicodeEncodeError as error:
        raise ValueError("its name is not valid UTF-8") from error
    # At most 75 characters to an encoded word; readers drop the space between two (RFC 2047, 2 and 6.2).
    return f"{encoded} <{address}>"


def _address_of(one_mailbox: str) -> str:
    return one_mailbox.rpartition("<")[2].removesuffix(">")


# --- Tags -----------------------------------------------------------------------------------------


def notice_tags(job_id: str, outcome: str, claim_id: str) -> dict[str, str]:
    """The tags that let an SES event find its notice without an index (DESIGN 3.5).

    SES takes letters, digits, `_` and `-` only, at most 256. A job id may hold any printable ASCII, so it
    goes as base64url without padding (171 characters for the longest); `outcome` and `claim_id` must be in
    that alphabet already.
    """
    encoded = base64.urlsafe_b64encode(job_id.encode()).decode("ascii").rstrip("=")
    return {"notice_job": encoded, "notice_outcome": outcome, "notice_claim": claim_id}


def job_id_from_tag(value: str) -> str:
    """The job id that `notice_tags` made `notice_job` of.

    Raises ValueError for anything that `notice_tags` cannot have written.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        raise ValueError("not a notice_job tag: not base64url")
    job_id = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()
    if notice_tags(job_id, "", "")["notice_job"] != value:
        raise ValueError("not a notice_job tag: bits left over")
    return job_id
