"""SES as the functions of the local stack see it: a thin front before ministack's own.

ministack checks that the sender is verified and hands out message ids, but forgets headers and tags, takes tags that
SES refuses, and never fails. The front keeps each message whole, refuses what AWS would, and can be told to fail.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

REGION = "eu-west-1"
ROOT_KEY = "test"  # ministack's root user, whose signatures it does not look at
SEND_PATH = "/v2/email/outbound-emails"
LATE_SECONDS = 15.0


class Fault(StrEnum):
    """What can happen to a send."""

    ANSWER_LOST = "accepted, and the connection is closed without an answer"
    ANSWER_LATE = "accepted, and the answer comes after the client's time-out"
    PAUSED = "refused: the account's sending is paused"
    THROTTLED = "refused: above the sending rate"
    QUOTA = "refused: above the daily quota"


class Refusal(NamedTuple):
    """An error of SES."""

    status: int
    code: str
    message: str


_REFUSALS = {
    Fault.PAUSED: Refusal(400, "SendingPausedException", "Email sending is paused for this account."),
    Fault.THROTTLED: Refusal(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
    Fault.QUOTA: Refusal(400, "LimitExceededException", "Daily message quota exceeded."),
}


@dataclass(frozen=True)
class SentMail:
    """A message that SES accepted."""

    message_id: str
    sender: str
    recipient: str
    subject: str
    text: str
    html: str
    headers: Mapping[str, str]
    tags: Mapping[str, str]
    configuration_set: str
    sent_at: datetime
    answered: bool  # whether the sender got to know


@dataclass
class _Planned:
    fault: Fault
    recipient: str | None
    times: int | None


@dataclass
class MailFront:
    """The front. ``upstream`` is ministack's address; ``refusal`` says why AWS would refuse a request, if it would."""

    upstream: str
    refusal: Callable[[Mapping[str, Any]], Refusal | None]
    _planned: list[_Planned] = field(default_factory=list)
    _chance: Callable[[], Fault | None] = lambda: None
    _sent: list[SentMail] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: _Server | None = None

    @property
    def sent(self) -> list[SentMail]:
        """Every message accepted so far, in order."""
        with self._lock:
            return list(self._sent)

    def fail_with(self, fault: Fault, recipient: str | None = None, times: int | None = None) -> None:
        """Sends meet ``fault`` from now on: those to one recipient or all, so many times or until ``recover``."""
        with self._lock:
            self._planned.append(_Planned(fault, recipient, times))

    def fail_sometimes(self, chance: Callable[[], Fault | None]) -> None:
        """Sends that no plan is for meet what ``chance`` says, until ``recover``; one asks it at a time."""
        with self._lock:
            self._chance = chance

    def recover(self) -> None:
        """No send fails any more."""
        with self._lock:
            self._planned.clear()
            self._chance = lambda: None

    def start(self) -> str:
        """Serve on a free port of this machine alone; the address."""
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, name="mail-front", daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """End serving."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def take_fault(self, recipient: str) -> Fault | None:
        """The fault that a send to ``recipient`` meets now, if any."""
        with self._lock:
            for planned in self._planned:
                if planned.times != 0 and planned.recipient in (None, recipient):
                    if planned.times is not None:
                        planned.times -= 1
                    return planned.fault
            return self._chance()

    def keep(self, request: Mapping[str, Any], message_id: str, fault: Fault | None) -> None:
        """Remember an accepted message whole."""
        simple = request["Content"]["Simple"]
        body = simple.get("Body", {})
        mail = SentMail(
            message_id=message_id,
            sender=request.get("FromEmailAddress", ""),
            recipient=_recipient(request),
            subject=simple["Subject"]["Data"],
            text=body.get("Text", {}).get("Data", ""),
            html=body.get("Html", {}).get("Data", ""),
            headers={header["Name"]: header["Value"] for header in simple.get("Headers", [])},
            tags={tag["Name"]: tag["Value"] for tag in request.get("EmailTags", [])},
            configuration_set=request.get("ConfigurationSetName", ""),
            sent_at=datetime.now(UTC),
            answered=fault is None,
        )
        with self._lock:
            self._sent.append(mail)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # connections that may wait; beyond it they are refused, as SES's never are

    def __init__(self, front: MailFront) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.front = front

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that is gone: workers are killed on purpose."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Hands everything on to ministack, and minds the sends."""

    server: _Server
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.command == "POST" and self.path == SEND_PATH:
            self._send(body)
        else:
            self._answer(*self._upstream(self.command, self.path, body))

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - named by http.server

    def _send(self, body: bytes) -> None:
        front, request = self.server.front, json.loads(body)
        fault = front.take_fault(_recipient(request))
        refusal = (fault and _REFUSALS.get(fault)) or _wrong_tag(request) or front.refusal(request)
        if refusal:
            headers = {"Content-Type": "application/json", "x-amzn-errortype": refusal.code}
            self._answer(refusal.status, headers, json.dumps({"message": refusal.message}).encode())
            return
        status, answer_headers, answer = self._upstream("POST", self.path, body)
        if status == 200:
            front.keep(request, json.loads(answer)["MessageId"], fault)
        if fault is Fault.ANSWER_LATE:
            time.sleep(LATE_SECONDS)
        if fault is Fault.ANSWER_LOST:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._answer(status, answer_headers, answer)

    def _upstream(self, method: str, path: str, body: bytes = b"") -> tuple[int, Mapping[str, str], bytes]:
        # As root: whether the caller may do this was looked at here, and ministack would look at less.
        date = time.strftime("%Y%m%d", time.gmtime())
        scope = f"{ROOT_KEY}/{date}/{REGION}/ses/aws4_request"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none",
            "Content-Type": self.headers.get("Content-Type", "application/json"),
        }
        request = urllib.request.Request(  # noqa: S310 - always http to this machine
            self.server.front.upstream + path, data=body or None, headers=headers, method=method
        )
        try:
            with _opener.open(request, timeout=30) as response:
                return response.status, dict(response.headers), response.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() in ("content-type", "x-amzn-errortype", "x-amzn-requestid"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the client has gone: it timed out, or was killed

    def log_message(self, *_: object) -> None:
        """Say nothing: the demo has a display of its own."""


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by way of a proxy
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")


def _recipient(request: Mapping[str, Any]) -> str:
    addresses: list[str] = request.get("Destination", {}).get("ToAddresses") or [""]
    return addresses[0]


def _wrong_tag(request: Mapping[str, Any]) -> Refusal | None:
    """What SES says of a tag that it does not take."""
    for tag in request.get("EmailTags", []):
        if not (_TAG.fullmatch(tag["Name"]) and _TAG.fullmatch(tag["Value"])):
            return Refusal(400, "BadRequestException", f"Invalid tag {tag['Name']}.")
    return None
