"""Reading a kind's files, and the one error that says what is wrong with them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class KindError(Exception):
    """A kind that is not right: which file, which line where that is known, what is wrong, and what to do.

    Its text is one plain sentence or two, `path:line: problem. Remedy.`; the parts are attributes.
    """

    def __init__(self, path: Path, problem: str, *, line: int | None = None) -> None:
        shown = shown_path(path)
        super().__init__(f"{shown}:{line}: {problem}" if line else f"{shown}: {problem}")
        self.path, self.line, self.problem = path, line, problem

    @property
    def place(self) -> str:
        """The file and line in few words: the end of its path, short enough for a notice's `error`."""
        end = "/".join(self.path.parts[-3:])[-120:]
        return f"{end}:{self.line}" if self.line else end


def shown_path(path: Path) -> Path:
    """Return a path as a reader sees it: from where they are, if it is below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def read(path: Path) -> str:
    """Return a file's text, without a byte-order mark. Raises KindError when it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise KindError(path, "the file is missing. Add it.") from None
    except UnicodeDecodeError:
        raise KindError(path, "it is not UTF-8. Save it as UTF-8.") from None
    except OSError as error:
        raise KindError(path, f"it cannot be read: {error.strerror}. Mend it.") from None


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """Return a TOML file's content and its source. Raises KindError when it is not there or not TOML."""
    source = read(path)
    try:
        return tomllib.loads(source), source
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = int(at[1]) if at else source.count("\n") + 1  # else it says "at end of document"
        raise KindError(path, f"this is not TOML: {error}. {_remedy(str(error))}", line=line) from None


def line_of(source: str, key: str, table: str = "") -> int | None:
    """Return the line of a TOML source that first sets or opens `key`, None when none plainly does.

    In the table that is opened as `[table]`, where one is named and has it.
    """
    pattern = re.compile(
        rf"^\s*(\[+[\w.\-]*\b{re.escape(key)}\]+|[\w.\-]*\b{re.escape(key)}\s*=)|^[^#]*\b{re.escape(key)}\s*="
    )
    found, within = [], False
    for at, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("["):
            within = line.strip().startswith(f"[{table}]")
        if pattern.search(line):
            found.append((not within, at))
    return min(found)[1] if found else None


def _remedy(error: str) -> str:
    """Return what to do about an error of the TOML parser, whose own words are for programmers."""
    return next((remedy for part, remedy in _REMEDIES.items() if part in error), "Mend it.")


_REMEDIES = {
    r"Illegal character '\n'": 'Close the text with " on the same line.',
    "Unterminated string": 'Close the text with ".',
    "Invalid value": 'Put text between straight quotation marks: name = "text".',
    "Expected '='": 'Write a line as name = "text".',
    "Cannot overwrite a value": "The name is there already: take one of them out, or write [[example]] for each.",
    "Cannot declare": "That table is there already: put both into one.",
    "Expected ']'": "Close the name of the table with ].",
    "Invalid initial character for a key part": "Keep { ... } on one line, and a name to letters, digits, _ and -.",
    "Expected newline": 'Begin each name = "text" on a line of its own; a " within a text is written \\".',
    "Unclosed inline table": "Put a comma between its parts, and close it with } on the same line.",
    "Unclosed array": "Put a comma between its parts, and close it with ].",
    "Invalid statement": 'Write a line as name = "text", a table as [name], a remark as # words.',
}


def listed(names: Iterable[str]) -> str:
    """Return names as an error lists them."""
    return ", ".join(sorted(names)) or "nothing: none is declared"
