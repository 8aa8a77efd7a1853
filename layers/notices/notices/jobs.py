"""Jobs and requesters, which belong to the platform: read only, strongly consistent (DESIGN 3.2, 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pynamodb.attributes import Attribute, UnicodeAttribute
from pynamodb.models import Model

from notices.audience import Audience
from notices.database import Item, Table

JOB_KEYS = ("job_id",)
REQUESTER_KEYS = ("requester_id",)


@dataclass(frozen=True, slots=True)
class Job:
    """What the platform knows of a job."""

    job_id: str
    kind: str
    tenant_id: str | None = None
    requester_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Requester:
    """The person who asked for a job. Everything but the id and the audience is personal or may be absent."""

    requester_id: str
    tenant_id: str | None = None
    email: str | None = None
    name: str | None = None
    audience: Audience = "customer"
    time_zone: str | None = None
    locale: str | None = None


class ForeignAttribute(Attribute[Any]):
    """An attribute of any type, read only: the platform's items are not ours to refuse for a number or a list."""

    attr_type = "S"  # pynamodb asks for one; reading goes by the type that is there

    def get_value(self, value: Item) -> Any:
        """Return the typed value as it came."""
        return value

    def deserialize(self, value: Item) -> Any:
        """Return the plain value: numbers as int or Decimal, bytes as None."""
        return _plain(value)


class JobItem(Model):
    """A job as the table has it; what is not named here is not read."""

    job_id = UnicodeAttribute(hash_key=True)
    kind = ForeignAttribute(null=True)
    tenant_id = ForeignAttribute(null=True)
    requester_id = ForeignAttribute(null=True)
    details = ForeignAttribute(null=True)
    removed_at = ForeignAttribute(null=True)


class RequesterItem(Model):
    """A requester as the table has it."""

    requester_id = UnicodeAttribute(hash_key=True)
    tenant_id = ForeignAttribute(null=True)
    email = ForeignAttribute(null=True)
    name = ForeignAttribute(null=True)
    audience = ForeignAttribute(null=True)
    time_zone = ForeignAttribute(null=True)
    locale = ForeignAttribute(null=True)


class Jobs:
    """Looks jobs up by id."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, job_id: str) -> Job | None:
        """Return the job, or None if there is none. Raises DatabaseError when the look-up fails."""
        item = self._table.get(JobItem, job_id)
        return job_of(item) if item is not None else None


class Requesters:
    """Looks requesters up by id."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, requester_id: str) -> Requester | None:
        """Return the requester, or None if there is none. Raises DatabaseError when the look-up fails."""
        item = self._table.get(RequesterItem, requester_id)
        return requester_of(item) if item is not None else None


def job_of(item: JobItem) -> Job:
    """Return the job in an item."""
    return Job(
        job_id=item.job_id,
        kind=_text(item.kind) or "",
        tenant_id=_text(item.tenant_id),
        requester_id=_text(item.requester_id),
        details=item.details if isinstance(item.details, dict) else {},
        removed=item.removed_at is not None,
    )


def requester_of(item: RequesterItem) -> Requester:
    """Return the requester in an item."""
    return Requester(
        requester_id=item.requester_id,
        tenant_id=_text(item.tenant_id),
        email=_text(item.email),
        name=_text(item.name),
        # anything but the exact word is a customer: the safer side for links and tenancy
        audience="staff" if item.audience == "staff" else "customer",
        time_zone=_text(item.time_zone),
        locale=_text(item.locale),
    )


def _text(value: Any) -> str | None:
    """Return an id or a text; null, empty and what is neither text nor number count as absent."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    return value or None if isinstance(value, str) else None


def _plain(value: Item) -> Any:
    for tag, content in value.items():
        match tag:
            case "S" | "BOOL":
                return content
            case "N":
                return _number(content)
            case "M":
                return {key: _plain(inner) for key, inner in content.items()}
            case "L":
                return [_plain(inner) for inner in content]
            case "SS":
                return sorted(content)
            case "NS":
                return sorted(_number(number) for number in content)
    return None  # NULL; and bytes, which no message shows


def _number(text: str) -> int | Decimal:
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number
