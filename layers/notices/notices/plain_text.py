"""Other people's text, made safe to print: one line, no control characters, not too long."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

ELLIPSIS = "…"
ISOLATE, END_ISOLATE = "\u2068", "\u2069"

_BREAKS = "\t\n\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029"
_SPACE = re.compile(f"[ {_BREAKS}]+")  # a whole run at once: so that a long one costs no more than its length
# Removed outright: other C0 and C1 controls, marks that change the direction of what follows, the byte-order
# mark, interlinear annotation and what Unicode reserves as "not a character".
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
    + "]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Mc", "Me"})
_RIGHT_TO_LEFT = frozenset({"R", "AL"})
_ZERO_WIDTH_JOINER = "\u200d"
_VIRAMA = 9  # the combining class of the sign that joins two consonants into one character


def one_line(value: str) -> str:
    """Return `value` as one trimmed line that can be encoded and printed.

    Line breaks, tabs and their like become one space; other controls, also of direction, go; half a surrogate
    pair becomes U+FFFD. Empty when nothing visible is left.
    """
    if _SURROGATE.search(value):
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    line = _UNSEEN.sub("", _SPACE.sub(_unbroken, value)).strip()
    return line if any(unicodedata.category(char) not in _INVISIBLE for char in line) else ""


def _unbroken(space: re.Match[str]) -> str:
    return " " if space[0].strip(" ") else space[0]


def shorten(line: str, limit: int) -> str:
    """Return `line` cut to at most `limit` characters, with an ellipsis, never within what a reader sees as one."""
    if len(line) <= limit:
        return line
    end = limit - len(ELLIPSIS)
    cut = next((at for at in range(end, 0, -1) if not _joined(line, at)), end)
    return line[:cut].rstrip() + ELLIPSIS


def isolate(line: str, *, rtl: bool) -> str:
    """Return `line` between isolates when it runs against the text around it, `rtl` or not."""
    directions = {unicodedata.bidirectional(char) for char in line} if rtl or not line.isascii() else frozenset()
    against = "L" in directions if rtl else not _RIGHT_TO_LEFT.isdisjoint(directions)
    return f"{ISOLATE}{line}{END_ISOLATE}" if against else line


def direction(line: str) -> Literal["ltr", "rtl"] | None:
    """Return the direction of the first letter that has one (Unicode's annex 9, rule P2), None without any.

    What stands in an isolate of its own does not count, nor does what comes after the isolate that `line` is in.
    """
    depth = 0
    for char in line:
        if char == ISOLATE:
            depth += 1
        elif char == END_ISOLATE:
            depth -= 1
        if depth < 0:
            break
        if depth == 0:
            found = unicodedata.bidirectional(char)
            if found == "L" or found in _RIGHT_TO_LEFT:
                return "ltr" if found == "L" else "rtl"
    return None


def _joined(line: str, at: int) -> bool:
    """Whether the characters on both sides of `at` are seen as one (the common part of Unicode's annex 29)."""
    before, after = line[at - 1], line[at]
    if after == _ZERO_WIDTH_JOINER or before == _ZERO_WIDTH_JOINER:
        return True
    if unicodedata.category(after) in _MARKS or _is_skin_tone_or_tag(after):
        return True
    if unicodedata.combining(before) == _VIRAMA:
        return True
    if _is_jamo(before) and _is_jamo(after):
        return True
    return _is_flag_half(after) and _flag_halves_before(line, at) % 2 == 1


def _is_skin_tone_or_tag(char: str) -> bool:
    return "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f"


def _is_jamo(char: str) -> bool:
    return "\u1100" <= char <= "\u11ff"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(line: str, at: int) -> int:
    start = at
    while start and _is_flag_half(line[start - 1]):
        start -= 1
    return at - start
