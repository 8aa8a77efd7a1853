"""The `job.settled` event: unwrap, parse, refuse (DESIGN 3.1).

Pure: no table, no queue, no clock. What can never be processed raises `Unprocessable` with the reason under which
it is parked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

TYPE = "job.settled"
MAX_WRAPPINGS = 2
MAX_REVISION = 2**53  # beyond it JSON numbers lose their last digit; a notice never gets there

Reason = Literal["not_json", "not_an_object", "unknown_type", "unsupported_version", "invalid_field", "kind_mismatch"]

JOB_ID = re.compile(r"[\x21-\x7e]{1,128}")
OUTCOME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_VERSION = re.compile(r"1(\.[0-9]{1,9})?")


class Unprocessable(Exception):
    """An event that can never be processed, however often it comes.

    `reason` is the code it is parked under; `field` names what is wrong, never its value.
    """

    def __init__(self, reason: Reason, field: str | None = None) -> None:
        super().__init__(reason if field is None else f"{reason}: {field}")
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class JobSettled:
    """A job has settled: which one and how. Only keys and hints: the job store is the truth (DESIGN 3.1)."""

    job_id: str
    outcome: str
    kind: str | None = None
    settled_at: datetime | None = None  # aware, UTC
    retry: int | None = None  # the revision that the retry's move gave the notice


def parse(body: str | None) -> JobSettled:
    """Return the event in an SQS body, bare or wrapped at most twice.

    Raises:
        Unprocessable: with one of the reasons of DESIGN 3.1 (but `kind_mismatch`, which needs the job).
    """
    event, stated_type = _unwrap(_object(body or ""))
    declared = _present(event, "type")
    if declared is None:
        declared = stated_type
    if declared != TYPE:
        raise Unprocessable("unknown_type")
    _check_version(_present(event, "version"))
    return JobSettled(
        job_id=_matching(event, "job_id", JOB_ID),
        outcome=_matching(event, "outcome", OUTCOME),
        kind=_kind(event),
        settled_at=_settled_at(event),
        retry=_retry(event),
    )


def strict_object(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`; a byte-order mark and surrounding white space are dropped.

    Raises:
        ValueError: if it is not JSON: NaN and infinities are not, nor is what the parser cannot read for its depth
            or size.
        TypeError: if it is JSON but no object.
    """
    try:
        value = json.loads(text.strip("\ufeff \t\r\n"), parse_constant=_no_constant)
    except RecursionError as error:  # json's own answer to deep nesting, not a ValueError
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _object(text: str) -> dict[str, Any]:
    try:
        return strict_object(text)
    except ValueError:
        raise Unprocessable("not_json") from None
    except TypeError:
        raise Unprocessable("not_an_object") from None


def _unwrap(event: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Take off the envelopes; return the event and the type that an envelope states for it, if any does."""
    stated_type: str | None = None
    for _ in range(MAX_WRAPPINGS):
        envelope = _envelope(event)
        if envelope is None:
            break
        inner, stated_type, binding = envelope
        event = _object(inner) if isinstance(inner, str) else inner
        if not isinstance(event, dict):
            raise Unprocessable("not_an_object")
        if binding and _present(event, "type") not in (None, stated_type):
            raise Unprocessable("unknown_type")
    return event, stated_type


def _envelope(event: Mapping[str, Any]) -> tuple[Any, str | None, bool] | None:
    """Return what an envelope holds, the type that it states and whether its content may not contradict that type."""
    if _present(event, "specversion") is not None and _present(event, "data") is not None:
        stated = _present(event, "type")
        return event["data"], stated, stated is not None
    if _present(event, "detail-type") is not None and _present(event, "detail") is not None:
        return event["detail"], event["detail-type"], False
    if isinstance(event.get("Message"), str) and event.get("Type") == "Notification":
        return event["Message"], None, False
    return None


def _present(event: Mapping[str, Any], field: str) -> Any:
    """Return a field's value; null counts as absent."""
    return event.get(field)


def _check_version(version: Any) -> None:
    if version is None:
        return
    if isinstance(version, bool) or not isinstance(version, str | int | float):
        raise Unprocessable("invalid_field", "version")
    if isinstance(version, str) and _VERSION.fullmatch(version):
        return
    if not isinstance(version, str) and 1 <= version < 2:
        return
    raise Unprocessable("unsupported_version", "version")


def _matching(event: Mapping[str, Any], field: str, form: re.Pattern[str]) -> str:
    value = event.get(field)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise Unprocessable("invalid_field", field)
    return value


def _kind(event: Mapping[str, Any]) -> str | None:
    kind = event.get("kind")
    if kind is not None and not isinstance(kind, str):
        raise Unprocessable("invalid_field", "kind")
    return kind


def _settled_at(event: Mapping[str, Any]) -> datetime | None:
    value = event.get("settled_at")
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("no offset")
        return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise Unprocessable("invalid_field", "settled_at") from None


def _retry(event: Mapping[str, Any]) -> int | None:
    value = event.get("retry")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_REVISION:
        raise Unprocessable("invalid_field", "retry")
    return value
