"""Times, addresses and numbers, as people read them."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta

_UNITS = ((86_400, "day", "days"), (3600, "h", "h"), (60, "min", "min"), (1, "s", "s"))
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def at(moment: datetime) -> str:
    """Return a moment to the second, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(moment: datetime | None) -> str | None:
    """Return a moment as the JSON output has it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None


def span(length: timedelta) -> str:
    """Return a length of time in its largest unit, and the next below it where that says more."""
    seconds = max(0, round(length.total_seconds()))
    for position, (size, one, many) in enumerate(_UNITS):
        count = seconds // size
        if count or size == 1:
            text = f"{count} {one if count == 1 else many}"
            if position + 1 < len(_UNITS) and count < 10:
                below, one, many = _UNITS[position + 1]
                rest = (seconds - count * size) // below
                text += f" {rest} {one if rest == 1 else many}" if rest else ""
            return text
    raise AssertionError("unreachable")


def when(moment: datetime, now: datetime) -> str:
    """Return a moment with how far off it is."""
    length = now - moment
    return f"{at(moment)} ({f'{span(length)} ago' if length >= timedelta(0) else f'in {span(-length)}'})"


def duration(text: str) -> timedelta:
    """Return a length such as 90s, 15m, 24h or 7d.

    Raises:
        ValueError: it is none.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise ValueError("a length of time is a number with s, m, h or d, such as 15m, 24h or 7d")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def masked(address: str | None) -> str | None:
    """Return an address so that its owner knows it and nobody else does: `d***@example.com`."""
    if not address or not address.strip():
        return None
    local, at_sign, domain = address.strip().rpartition("@")
    if not at_sign:
        return "***"
    return f"{local[:1]}***@{domain}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return `1 notice`, `12 notices`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def command(*words: str, suffix: str = "") -> str:
    """Return a command to type."""
    return f"notices {shlex.join(words)}{suffix}"
