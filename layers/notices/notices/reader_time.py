"""When a job settled, on the reader's own clock."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any


def reader_time(moment: datetime, zone_name: str | None) -> dict[str, Any]:
    """Return `moment` in the reader's zone: year, month and day, hour and minute in two digits, and the zone.

    A zone that is absent, unknown or missing from this machine's zone data gives UTC. A `moment` without an
    offset is taken as UTC.
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    name, zone = _zone(zone_name)
    try:
        local = moment.astimezone(zone)
    except OverflowError:  # the first or last day that a datetime can hold
        name, local = "UTC", moment.astimezone(UTC)
    return {
        "year": local.year,
        "month": local.month,
        "day": local.day,
        "hour": f"{local.hour:02}",
        "minute": f"{local.minute:02}",
        "zone": name,
    }


def _zone(name: str | None) -> tuple[str, tzinfo]:
    if isinstance(name, str) and name:
        from zoneinfo import ZoneInfo  # here, because most cold starts never need it

        try:
            return name, ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # unknown; not a zone's name; a folder of zones
            pass
    return "UTC", UTC
