"""A mail provider that accepts every letter, unless a script says otherwise, and remembers them all."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from fakes.gate import Gate, ReplyLost
from notices.mail import Answer, Letter, Mail, Verdict

SEND_EMAIL = "SendEmail"


def failing(verdict: Verdict, code: str, name: str = "SomeException") -> Answer:
    """Return an answer that is not accepted."""
    return Answer(verdict, code=code, error=f"{code}: {name}")


UNKNOWN = failing(Verdict.UNKNOWN, "provider_unknown", "ReadTimeoutError")
THROTTLED = failing(Verdict.UNAVAILABLE, "throttled", "TooManyRequestsException")
REFUSED = failing(Verdict.REFUSED, "provider_refused", "MessageRejected")
MISCONFIGURED = failing(Verdict.MISCONFIGURED, "provider_misconfigured", "AccessDeniedException")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A letter that the provider took, under its message id."""

    letter: Letter
    reference: str


@dataclass(slots=True)
class Provider:
    """The provider's side, shared by all workers. `script` holds the next answers; after it, all is accepted."""

    script: deque[Answer | Exception] = field(default_factory=deque)
    letters: list[Letter] = field(default_factory=list)  # every request that came
    accepted: list[Accepted] = field(default_factory=list)  # what goes to the requester

    def answer(self, letter: Letter) -> Answer:
        """Take a letter, or do as the script says."""
        self.letters.append(letter)
        if self.script:
            scripted = self.script.popleft()
            if isinstance(scripted, Exception):
                raise scripted
            if scripted.verdict is not Verdict.ACCEPTED:
                return scripted
        reference = f"message-{len(self.accepted) + 1}"
        self.accepted.append(Accepted(letter, reference))
        return Answer(Verdict.ACCEPTED, reference=reference)


class FakeMail(Mail):
    """One worker's sender: a lost reply is an unknown answer, for there is one attempt to a send."""

    def __init__(self, provider: Provider | None = None, gate: Gate | None = None) -> None:
        super().__init__(_NoClient(), sender="Notices <notices@example.com>", configuration_set="mail")
        self.provider = provider or Provider()
        self.gate = gate or Gate()

    def send(self, letter: Letter) -> Answer:
        """See notices.mail.Mail."""
        try:
            return self.gate.pass_once(SEND_EMAIL, {"tags": dict(letter.tags)}, lambda: self.provider.answer(letter))
        except ReplyLost:
            return UNKNOWN


class _NoClient:
    def send_email(self, **request: Any) -> dict[str, Any]:
        raise AssertionError("a fake sends nothing")


def ses_event(accepted: Accepted, event_type: str = "Send", **facts: Any) -> str:
    """Return the body with which EventBridge brings an SES event about an accepted letter to the feedback queue."""
    name = {"DeliveryDelay": "deliveryDelay", "Rendering Failure": "failure"}.get(event_type, event_type.lower())
    detail = {
        "eventType": event_type,
        "mail": {
            "timestamp": "2026-11-29T10:00:01.000Z",
            "messageId": accepted.reference,
            "tags": {tag: [value] for tag, value in accepted.letter.tags.items()},
        },
        name: facts,
    }
    return json.dumps({"detail-type": f"Email {event_type}", "source": "aws.ses", "detail": detail})
