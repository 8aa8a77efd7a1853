"""The stable codes with which a notice's `error` begins (DESIGN 3.4). People's tools rely on them."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """Why a notice is not handled."""

    # failed for good: the same attempt would fail again
    ADDRESS_MISSING = "address_missing"
    ADDRESS_INVALID = "address_invalid"
    TENANT_MISMATCH = "tenant_mismatch"
    PROVIDER_REFUSED = "provider_refused"

    # tried again
    REQUESTER_MISSING = "requester_missing"
    TEMPLATE_ERROR = "template_error"
    THROTTLED = "throttled"
    QUOTA_EXCEEDED = "quota_exceeded"
    PROVIDER_UNREACHABLE = "provider_unreachable"
    PROVIDER_MISCONFIGURED = "provider_misconfigured"
    SENDER_UNSET = "sender_unset"
    INTERNAL_ERROR = "internal_error"
    PROVIDER_UNKNOWN = "provider_unknown"
    REOPENED = "reopened"

    # closed: by the retry, or because a retried event found nobody to tell any more
    GAVE_UP = "gave_up"
    JOB_REMOVED = "job_removed"
    NO_REQUESTER = "no_requester"
    UNDECLARED = "undeclared"
    KIND_MISMATCH = "kind_mismatch"


FOR_GOOD = frozenset({Code.ADDRESS_MISSING, Code.ADDRESS_INVALID, Code.TENANT_MISMATCH, Code.PROVIDER_REFUSED})
NOBODY_TO_TELL = frozenset({Code.JOB_REMOVED, Code.NO_REQUESTER, Code.UNDECLARED, Code.KIND_MISMATCH})

ENDINGS = FOR_GOOD | NOBODY_TO_TELL | {Code.GAVE_UP, Code.REOPENED}
"""After these only a person, or another event, brings a notice back; its retry horizon then counts anew."""


def code_of(error: str | None) -> Code | None:
    """Return the code with which a stored error begins; None without an error, or for a code nobody knows."""
    try:
        return Code((error or "").partition(":")[0])
    except ValueError:
        return None
