"""The shape of a text: what an author's lines mean, the same for plain text and for a page.

Lines that follow each other make a paragraph, and an empty line ends it. Lines that begin with `- ` make a
list, lines that begin with `> ` a quotation. Only the author's own marks count, never those in a fact's value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

STRUCTURE = "\x02"
"""Put before a `- ` or `> ` of the file when it is compiled. Values hold no control characters."""

LABEL_END = ": "
"""What ends the label in a line of details."""

Style = Literal["paragraph", "list", "quote"]
_STYLES: dict[str, Style] = {f"{STRUCTURE}- ": "list", f"{STRUCTURE}> ": "quote"}


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph or a quotation of one line, or a list with a line per item."""

    style: Style
    lines: tuple[str, ...]


def as_line(rendered: str) -> str:
    """Return a rendered block as one line."""
    return " ".join(_lines(rendered.replace(STRUCTURE, "")))


def as_details(rendered: str) -> list[tuple[str, str]]:
    """Return the `Label: value` lines of a rendered block.

    A label whose value is empty is left out. A line without a label, which the check of a kind refuses, keeps its
    words all the same: its label is empty.
    """
    pairs = (line.partition(LABEL_END) for line in _lines(rendered.replace(STRUCTURE, "")))
    return [(label, value) if end else ("", label) for label, end, value in pairs if end or not label.endswith(":")]


def as_passages(rendered: str) -> list[Passage]:
    """Return a rendered block as its paragraphs, lists and quotations."""
    return [passage for chunk in _chunks(rendered) for passage in _passages(chunk)]


def _chunks(rendered: str) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in (*rendered.split("\n"), ""):
        if line.strip():
            chunk.append(line.strip())
        elif chunk:
            yield chunk
            chunk = []


def _passages(chunk: list[str]) -> Iterator[Passage]:
    style: Style = "paragraph"
    lines: list[str] = []
    for line in chunk:
        begun = _STYLES.get(line[:3])
        words = line[3:].strip() if begun else line
        if begun == "list" and style == "list":
            lines.append(words)
        elif lines and (begun is None or begun == style):
            lines[-1] += f" {words}"
        else:
            if lines:
                yield Passage(style, tuple(lines))
            style, lines = begun or "paragraph", [words]
    yield Passage(style, tuple(lines))


def _lines(rendered: str) -> list[str]:
    return [line.strip() for line in rendered.split("\n") if line.strip()]
