"""A small strict SES v2 on a loopback port: `SendEmail` alone, and refused wherever SES refuses it.

    with FakeSes() as ses:
        client = botocore.session.get_session().create_client("sesv2", endpoint_url=ses.url, ...)
        ses.script(error("TooManyRequestsException", 429, "Maximum sending rate exceeded."), drop())
        ...
        assert ses.request_count == 2

It counts every request, keeps what it accepted, and answers by the script, one step a request; with no step
left, it accepts what SES would. Texts are SES's own, as far as they are known. Nothing sleeps unless asked.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

SEND_EMAIL = "/v2/email/outbound-emails"
REGION = "eu-west-1"


@dataclass(frozen=True, slots=True)
class SentMail:
    """A message that the server accepted."""

    message_id: str
    sender: str
    to: str
    subject: str
    text: str
    html: str
    headers: Mapping[str, str]
    tags: Mapping[str, str]
    configuration_set: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived, whatever came of it; `payload` is None for a body that is no JSON object."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    payload: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Step:
    """How to meet one request. Made by the functions below."""

    kind: Literal["accept", "answer", "drop"]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    after: float = 0.0
    counts: bool = False


def accept() -> Step:
    """Validate as SES does, and accept if it would."""
    return Step("accept")


def error(code: str, status: int = 400, message: str | None = "") -> Step:
    """Answer with an error as SES v2 does (REST-JSON: the code in a header, the text in the body)."""
    return Step(
        "answer",
        status,
        (("x-amzn-ErrorType", code), ("Content-Type", "application/json")),
        json.dumps({"message": message}).encode(),
    )


def raw(status: int, body: bytes = b"", **headers: str) -> Step:
    """Answer with any status and body: what a proxy makes up, or an answer cut short."""
    return Step("answer", status, tuple((name.replace("_", "-"), value) for name, value in headers.items()), body)


def stall(seconds: float) -> Step:
    """Take the request, accept it as `accept` does, and answer that many seconds late."""
    return Step("accept", after=seconds)


def drop(*, counts: bool = True) -> Step:
    """Take the request and close the connection without an answer; `counts`: SES had accepted the message."""
    return Step("drop", counts=counts)


class RefusalError(Exception):
    """What SES answers to a request that it refuses."""

    def __init__(self, code: str, message: str | None, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.step = error(code, status, message)


class FakeSes:
    """The server; a context manager. Change `identities` and `configuration_sets` at any time.

    `identities` are the verified addresses and domains. With `sandbox`, recipients have to be verified too.
    """

    def __init__(
        self,
        *,
        identities: Iterable[str] = ("example.com",),
        configuration_sets: Iterable[str] = ("notices",),
        sandbox: bool = False,
    ) -> None:
        self.identities = set(identities)
        self.configuration_sets = set(configuration_sets)
        self.sandbox = sandbox
        self.mails: list[SentMail] = []
        self.requests: list[Request] = []
        self._steps: deque[Step] = deque()
        self._otherwise = accept()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._server: _Server | None = None
        self._port = 0

    # What a test says

    def script(self, *steps: Step) -> None:
        """Meet the next requests by these steps, one each."""
        with self._changed:
            self._steps.extend(steps)

    def otherwise(self, step: Step) -> None:
        """Meet every request for which the script has no step by this one."""
        with self._changed:
            self._otherwise = step

    def refuse_connections(self) -> None:
        """Stop listening: whoever connects to the port from now on is refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def accept_connections(self) -> None:
        """Listen, on the same port as before if there was one."""
        if self._server is None:
            self._server = _Server(self, self._port)
            self._port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    # What a test asks

    @property
    def url(self) -> str:
        """The endpoint, as for `endpoint_url` or AWS_ENDPOINT_URL_SESV2."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def request_count(self) -> int:
        """How many requests have arrived, whatever came of them."""
        with self._changed:
            return len(self.requests)

    def wait_for_requests(self, count: int, timeout: float = 5.0) -> bool:
        """Wait until so many requests have arrived; False if they have not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, timeout)

    def __enter__(self) -> Self:
        self.accept_connections()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()  # wakes what stalls, so that closing can wait for every thread
        self.refuse_connections()

    # What the server does

    def _meet(self, request: Request) -> Step | None:
        """Record the request and return the answer to write, or None for none."""
        with self._changed:
            self.requests.append(request)
            step = self._steps.popleft() if self._steps else self._otherwise
            answer = self._accept(request) if step.kind == "accept" or step.counts else step
            self._changed.notify_all()
        if step.after:
            self._closing.wait(step.after)
        return None if step.kind == "drop" else answer

    def _accept(self, request: Request) -> Step:
        try:
            mail = self._read(request)
        except RefusalError as refusal:
            return refusal.step
        self.mails.append(mail)
        return raw(200, json.dumps({"MessageId": mail.message_id}).encode(), Content_Type="application/json")

    def _read(self, request: Request) -> SentMail:
        if (request.method, request.path) != ("POST", SEND_EMAIL):
            raise RefusalError("UnknownOperationException", None, 404)
        if not re.match(r"AWS4-HMAC-SHA256 .*/ses/aws4_request", request.headers.get("authorization", "")):
            raise RefusalError("MissingAuthenticationTokenException", "Missing Authentication Token", 403)
        if request.payload is None:
            raise RefusalError("SerializationException", None)
        payload = request.payload
        content = payload.get("Content", {}).get("Simple") or {}
        sender = payload.get("FromEmailAddress")
        if not sender:
            raise RefusalError("BadRequestException", None)
        to = _recipient(payload.get("Destination") or {})
        for address in (sender, to):
            if fault := address_fault(address):
                raise RefusalError("BadRequestException", fault)
        mail = SentMail(
            message_id=f"0102{len(self.mails):012x}-00000000-0000-4000-8000-000000000000-000000",
            sender=sender,
            to=to,
            subject=_subject(content),
            text=_part(content, "Text"),
            html=_part(content, "Html"),
            headers=_headers(content.get("Headers") or []),
            tags=_tags(payload.get("EmailTags") or []),
            configuration_set=payload.get("ConfigurationSetName"),
        )
        if mail.configuration_set is not None and mail.configuration_set not in self.configuration_sets:
            raise RefusalError(
                "NotFoundException", f"Configuration set <{mail.configuration_set}> does not exist.", 404
            )
        unverified = [each for each in ((sender, to) if self.sandbox else (sender,)) if not self._verified(each)]
        if unverified:
            raise RefusalError(
                "MessageRejected",
                "Email address is not verified. The following identities failed the check in region "
                f"{REGION.upper()}: {', '.join(unverified)}",
            )
        return mail

    def _verified(self, mailbox: str) -> bool:
        address = _addr_spec(mailbox)
        domain = address.rpartition("@")[2].lower()
        known = {each.lower() for each in self.identities}
        # A verified domain speaks for its subdomains too.
        parents = {domain.split(".", n)[n] for n in range(domain.count(".") + 1)}
        return address.lower() in known or bool(parents & known)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for them, and leaves no socket behind
    request_queue_size = 64

    def __init__(self, ses: FakeSes, port: int) -> None:
        self.ses = ses
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that has gone away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server: _Server

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            payload = json.loads(body)
        except ValueError:
            payload = None
        step = self.server.ses._meet(
            Request(
                method=self.command,
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=body,
                payload=payload if isinstance(payload, dict) else None,
            )
        )
        self.close_connection = True
        with contextlib.suppress(OSError):
            if step is None:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(step.status)
            for name, value in step.headers:
                self.send_header(name, value)
            self.send_header("x-amzn-RequestId", "00000000-0000-4000-8000-000000000000")
            self.send_header("Content-Length", str(len(step.body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(step.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def address_fault(mailbox: str) -> str | None:
    """What SES says to such an address, in JavaMail's words, which it passes on; None if it takes it."""
    if not mailbox.isascii() or re.search(r"[\x00-\x1f\x7f]", mailbox):
        name = "Local address" if not re.match(r"[\x21-\x7e]*@", mailbox) else "Domain"
        return f"{name} contains control or whitespace"
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "q", mailbox)
    if "," in bare or ";" in bare or bare.count("<") > 1:
        return "Illegal address"
    if len(mailbox) > 320:
        return f"Address length is more than 320 characters long: '{mailbox}'."
    address = _addr_spec(mailbox)
    # A quoted local part counts as one, even with an @ in it.
    quoted = re.match(r'"(?:[^"\\]|\\.)*"@', address)
    local, at, domain = (
        (address[: quoted.end() - 1], "@", address[quoted.end() :]) if quoted else address.partition("@")
    )
    faults = {
        "Missing final '@domain'": not at,
        "Missing local name": not local,
        "Missing domain": not domain,
        "Local address contains control or whitespace": not quoted and " " in local,
        "Local address contains illegal character": not quoted and re.search(r'[()<>,;:\\"\[\]]', local),
        "Local address starts with dot": local.startswith("."),
        "Local address ends with dot": local.endswith("."),
        "Local address contains dot-dot": not quoted and ".." in local,
        "Local part is more than 64 characters long": len(local) > 64,
        "Domain contains control or whitespace": " " in domain,
        "Domain contains illegal character": re.search(r"[^A-Za-z0-9. -]", domain),
        "Domain starts with dot": domain.startswith("."),
        "Domain contains dot-dot": ".." in domain,
        "Domain ends with dot": domain.endswith("."),
    }
    return next((text for text, found in faults.items() if found), None)


def _addr_spec(mailbox: str) -> str:
    match = re.search(r"<([^<>]*)>\s*$", mailbox)
    return match[1] if match else mailbox


def _recipient(destination: Mapping[str, list[str]]) -> str:
    everyone = [each for addresses in destination.values() for each in addresses or []]
    if not everyone:
        raise RefusalError("BadRequestException", "Missing required header 'To'.")
    if len(everyone) > 1:
        # SES takes up to 50; this project writes to one person at a time, so more is a fault here.
        raise RefusalError("BadRequestException", "Recipient count exceeds 1.")
    return everyone[0]


def _subject(content: Mapping[str, Any]) -> str:
    subject = (content.get("Subject") or {}).get("Data")
    if not isinstance(subject, str):
        raise RefusalError("BadRequestException", "Missing required header 'Subject'.")
    if re.search(r"[\r\n]", subject):
        raise RefusalError("BadRequestException", "Header value contains line breaks: 'Subject'.")
    return subject


def _part(content: Mapping[str, Any], name: str) -> str:
    part = (content.get("Body") or {}).get(name) or {}
    if not isinstance(part.get("Data"), str):
        raise RefusalError("BadRequestException", f"Body part {name} is missing.")
    if not part["Data"].isascii() and str(part.get("Charset")).upper() != "UTF-8":
        raise RefusalError("BadRequestException", f"Body part {name} does not fit its charset.")
    return str(part["Data"])


def _headers(headers: list[dict[str, str]]) -> dict[str, str]:
    if len(headers) > 15:
        raise RefusalError("BadRequestException", "The number of headers exceeds 15.")
    for each in headers:
        name, value = each.get("Name", ""), each.get("Value", "")
        if not re.fullmatch(r"[!-9;-~]{1,126}", name):
            raise RefusalError("BadRequestException", "Invalid header name.")
        if not re.fullmatch(r"[ -~]{1,995}", value) or len(name) + len(value) > 996:
            raise RefusalError("BadRequestException", "Invalid header value.")
        if name.lower() in {
            "from",
            "to",
            "cc",
            "bcc",
            "subject",
            "sender",
            "return-path",
            "message-id",
            "date",
        }:
            raise RefusalError("BadRequestException", f"Header <{name}> cannot be set.")
    return _unique(headers, "header")


def _tags(tags: list[dict[str, str]]) -> dict[str, str]:
    if len(tags) > 50:
        raise RefusalError("BadRequestException", "The number of tags exceeds 50.")
    for each in tags:
        for kind in ("Name", "Value"):
            text = each.get(kind, "")
            if len(text) > 256:
                raise RefusalError("BadRequestException", f"Tag {kind.lower()} cannot exceed 256 characters.")
            if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
                raise RefusalError(
                    "BadRequestException",
                    f"Invalid tag {kind.lower()} <{text}>: "
                    "only alphanumeric ASCII characters, '_', and '-' are allowed.",
                )
    return _unique(tags, "tag")


def _unique(pairs: list[dict[str, str]], what: str) -> dict[str, str]:
    result = {each["Name"]: each["Value"] for each in pairs}
    if len(result) < len(pairs):
        raise RefusalError("BadRequestException", f"Duplicate {what} name.")
    return result
