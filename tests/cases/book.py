"""The cases and the sample events, with every time moved from the case's clock to the real one."""

from __future__ import annotations

import copy
import json
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
HOUR = timedelta(hours=1)
LETTERS = {"result": "a", "result_b": "b", "result_c": "c"}

_TIME = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?!\d)")
_EXPIRY = re.compile(r'("expires_at": )(\d+)')

Json = dict[str, Any]


@cache
def _book() -> Json:
    text = (DATA / "cases.json").read_text(encoding="utf-8")
    # to the cases `export` is a kind that does not notify; here one may be added (the README says how)
    book: Json = json.loads(text.replace('"export"', '"no_such_kind"'))
    return book


def environment() -> dict[str, str]:
    """The variables of every case that does not say otherwise."""
    return dict(_book()["defaults"]["environment"])


def case(case_id: str, now: datetime) -> Json:
    """One case, its clock moved to `now`."""
    found = next(each for each in _book()["cases"] if each["id"] == case_id)
    clock = datetime.fromisoformat(found.get("now") or _book()["defaults"]["now"])
    return moved(found, now - clock)


def sample(name: str) -> Json:
    """One of the sample events, at its own time."""
    event: Json = json.loads((DATA / "events" / name).read_text(encoding="utf-8"))
    return event


def moved(value: Json, by: timedelta) -> Json:
    """A copy with every time in it moved by so many whole seconds; what is behind the seconds stays."""
    by = timedelta(seconds=int(by.total_seconds()))

    def time(match: re.Match[str]) -> str:
        return (datetime.fromisoformat(match[1]) + by).isoformat()

    def expiry(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) + int(by.total_seconds())}"

    text = json.dumps(value)
    changed: Json = json.loads(_EXPIRY.sub(expiry, _TIME.sub(time, text)))
    return changed


def playable() -> dict[str, list[str]]:
    """The runs of every case that has an event to play: one for each result or environment, else run A alone."""
    return {
        each["id"]: list("abcdefghij"[: max(sum(key in each for key in LETTERS), len(each.get("variants") or ""))])
        for each in _book()["cases"]
        if each["function"] is not None
    }


def result(found: Json, letter: str) -> Json:
    """What a run of a case should come to; of runs without a result of their own, that of run A."""
    by_letter = {LETTERS[key]: found[key] for key in LETTERS if key in found}
    return copy.deepcopy(by_letter.get(letter, by_letter["a"]))


def variant(found: Json, letter: str) -> dict[str, str | None]:
    """The environment of a run, where the case names one for each."""
    variants: list[dict[str, str | None]] = found.get("variants") or []
    place = ord(letter) - ord("a")
    return variants[place] if place < len(variants) else {}


def real_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)
