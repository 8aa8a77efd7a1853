"""A moment on the reader's own clock, with the clock named (DESIGN 3.2, `time_zone`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

LONGEST_ZONE = 64
"""The longest name that is looked up; the longest there is has 32. zoneinfo recurses into each part of a name."""


def reader_time(moment: datetime, zone_name: str | None) -> dict[str, Any]:
    """Return an aware `moment` in the reader's zone, in the parts that a language puts together.

    `year`, `month` and `day` are numbers, `hour` and `minute` two digits each. `zone` is the name of the zone, and
    `offset` how far it is from UTC at that moment (`UTC+1`, `UTC-3:30`), which also tells the two hours apart that
    share their numbers when a clock is put back. A zone that is absent, unknown or missing from this machine's
    zone data gives UTC.
    """
    name, zone = _zone(zone_name)
    try:
        local = moment.astimezone(zone)
    except OverflowError:  # the first or last day that a datetime can hold
        name, local = "UTC", moment.replace(tzinfo=UTC)
    return {
        "year": local.year,
        "month": local.month,
        "day": local.day,
        "hour": f"{local.hour:02}",
        "minute": f"{local.minute:02}",
        "zone": name,
        "offset": _offset(local.utcoffset() or timedelta()),
    }


def is_zone(name: str) -> bool:
    """Whether a reader's clock goes by this name here; UTC by any of its names is one."""
    return name in _UTC or _zone(name)[1] is not UTC


def _zone(name: str | None) -> tuple[str, tzinfo]:
    if isinstance(name, str) and 0 < len(name) <= LONGEST_ZONE and name not in _UTC:
        from zoneinfo import ZoneInfo  # here, because most cold starts never need it

        try:
            return name, ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # unknown; not a zone's name; a folder of zones
            pass
    return "UTC", UTC


_UTC = {"UTC", "Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"}
"""Its names in the zone data: a reader is told "UTC", not "Etc/UTC time, UTC"."""


def _offset(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}" + (f":{rest:02}" if rest else "")
