"""Language tags (BCP 47): which one to fall back to, and which way it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

LOCALE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""How a locale's folder or file is named: `en`, `de`, `de-AT`, `zh-Hant`."""
MOST_PARTS = 16
"""The most parts of a tag that are looked at: no real one has more, and the time grows with their square."""

_RIGHT_TO_LEFT = frozenset({"ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "syr", "ug", "ur", "yi"})
_RIGHT_TO_LEFT_SCRIPTS = frozenset({"adlm", "arab", "hebr", "mand", "nkoo", "rohg", "samr", "syrc", "thaa"})


def fallbacks(tag: str | None) -> Iterator[str]:
    """Yield `tag` in lower case, then less and less of it: `de-AT` and `de_AT.UTF-8` give `de-at`, `de`."""
    parts = re.split(r"[.@]", tag)[0].strip().lower().replace("_", "-").split("-") if isinstance(tag, str) else []
    for count in range(min(len(parts), MOST_PARTS), 0, -1):
        yield "-".join(parts[:count])


def is_right_to_left(tag: str) -> bool:
    """Whether `tag` is written from right to left: by its script where it names one, else by its language."""
    language, *rest = next(fallbacks(tag), "").split("-")
    script = next((part for part in rest if len(part) == 4 and part.isalpha()), None)
    return script in _RIGHT_TO_LEFT_SCRIPTS if script else language in _RIGHT_TO_LEFT
