"""What SES does and ministack does not: it asks the sender's policy, minds a pause, and publishes events."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from email.utils import parseaddr
from typing import Any

from demo.mail_front import REGION, Refusal, SentMail
from demo.ministack import ACCOUNT


def policy_refusal(request: Mapping[str, Any], statements: Sequence[Mapping[str, Any]]) -> Refusal | None:
    """What SES says to a send that the sender's policy does not allow.

    It must allow the identity and the configuration set, both for the bare from-address. Only what our policy is made
    of is understood: Allow, whole ARNs, and StringEquals on the from-address.
    """
    address = parseaddr(request["FromEmailAddress"])[1]
    arn = f"arn:aws:ses:{REGION}:{ACCOUNT}"
    needed = {
        f"{arn}:identity/{address.rpartition('@')[2]}",
        f"{arn}:configuration-set/{request.get('ConfigurationSetName', '')}",
    }
    for statement in statements:
        condition = statement.get("Condition", {})
        addresses = _as_list(condition.get("StringEquals", {}).get("ses:FromAddress", address))
        if statement["Effect"] == "Allow" and "ses:SendEmail" in _as_list(statement["Action"]) and address in addresses:
            needed -= set(_as_list(statement["Resource"]))
    if needed:
        message = f"not authorized to perform ses:SendEmail on {sorted(needed)} as {address}"
        return Refusal(403, "AccessDeniedException", message)
    return None


def pause_refusal(configuration_set: Mapping[str, Any]) -> Refusal | None:
    """What SES says to a send by a configuration set whose sending is switched off."""
    if configuration_set.get("SendingOptions", {}).get("SendingEnabled", True):
        return None
    name = configuration_set["ConfigurationSetName"]
    return Refusal(400, "SendingPausedException", f"Email sending is disabled for the configuration set {name}.")


def mail_event(mail: SentMail, event_type: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The event that SES publishes about ``mail``; ``event_type`` and ``details`` are its own, as in
    ``"Bounce", {"bounceType": "Permanent", "bounceSubType": "General"}``."""
    detail_type, part = _MAIL_EVENTS[event_type]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    tags = {**mail.tags, "ses:operation": "SendEmail", "ses:configuration-set": mail.configuration_set}
    return {
        "version": "0",
        "id": mail.message_id,
        "detail-type": detail_type,
        "source": "aws.ses",
        "account": ACCOUNT,
        "time": now,
        "region": REGION,
        "resources": [f"arn:aws:ses:{REGION}:{ACCOUNT}:configuration-set/{mail.configuration_set}"],
        "detail": {
            "eventType": event_type,
            "mail": {
                "timestamp": mail.sent_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "source": mail.sender,
                "sendingAccountId": ACCOUNT,
                "messageId": mail.message_id,
                "destination": [mail.recipient],
                "tags": {name: [value] for name, value in tags.items()},
            },
            part: {**({} if event_type == "Send" else {"timestamp": now}), **(details or {})},
        },
    }


_MAIL_EVENTS = {
    "Send": ("Email Sent", "send"),
    "Delivery": ("Email Delivered", "delivery"),
    "DeliveryDelay": ("Email Delivery Delayed", "deliveryDelay"),
    "Bounce": ("Email Bounced", "bounce"),
    "Complaint": ("Email Complaint Received", "complaint"),
    "Reject": ("Email Rejected", "reject"),
    "Rendering Failure": ("Email Rendering Failed", "failure"),
}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
