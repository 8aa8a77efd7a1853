"""A job's own facts, as a kind declares them: present and fit to print, or absent (DESIGN 3.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, get_args

from notices.plain_text import one_line, shorten
from notices.templates import digits

FactType = Literal["text", "long_text", "number", "flag", "list", "time"]
"""What a kind may declare a fact to be: words (at most 200 characters, or 1,000), a number, a yes or no, a list of
texts, or a moment."""

FACT_TYPES: tuple[str, ...] = get_args(FactType)

TEXT_LIMIT = 200
LONG_TEXT_LIMIT = 1000
LIST_LIMIT = 50
_LARGEST_EXPONENT = 40


def present_facts(declared: Mapping[str, FactType], details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared facts that `details` really holds, fit to print.

    A fact that is missing, null, empty, invisible or of another type is absent: it is left out, so that the
    texts do without it. Facts that the kind does not declare are ignored. A number may stand for a text. A time is
    an aware datetime here; the message puts it into words.
    """
    facts = {name: _READERS[kind](details.get(name)) for name, kind in declared.items()}
    return {name: value for name, value in facts.items() if value is not None}


def fits(declared: FactType, value: Any) -> bool:
    """Whether `value` is present when the fact is `declared` so."""
    return _READERS[declared](value) is not None


def text(value: Any, limit: int = TEXT_LIMIT) -> str | None:
    """Return `value` as one line of at most `limit` characters; None when it is not a text or is empty."""
    whole = whole_text(value)
    return (shorten(one_line(whole), limit) or None) if whole else None


def whole_text(value: Any) -> str | None:
    """Return a text as it is and a number in digits, uncut as a link needs it; None for anything else."""
    if isinstance(value, str):
        return value
    plain = number(value)
    return None if plain is None else digits(plain)


def number(value: Any) -> int | Decimal | None:
    """Return `value` when it is a number that can be written in plain digits; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    exact = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or abs(exact.adjusted()) > _LARGEST_EXPONENT:
        return None
    return int(exact) if exact == exact.to_integral_value() else exact


def _long_text(value: Any) -> str | None:
    return text(value, LONG_TEXT_LIMIT)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _time(value: Any) -> datetime | None:
    """Return a moment: ISO 8601 text as the platform stores it, or a datetime as an example has it.

    Without an offset it is absent: nobody knows which moment is meant, and a wrong time is worse than none.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    return value if isinstance(value, datetime) and value.utcoffset() is not None else None


def _list(value: Any) -> list[str] | None:
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if not isinstance(value, (list, tuple)):
        return None
    return [line for line in map(text, value[:LIST_LIMIT]) if line] or None


_READERS: dict[FactType, Callable[[Any], Any]] = {
    "text": text,
    "long_text": _long_text,
    "number": number,
    "flag": _flag,
    "list": _list,
    "time": _time,
}
