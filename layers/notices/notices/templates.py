"""The two Jinja environments, and what "absent" means in a template (DESIGN 3.8).

Escaping goes by part, whatever a file is called: everything printed into a page is escaped, and nothing
printed into plain text is. Templates are compiled from files at start (Jinja's own loading is not safe when
threads meet a template for the first time), and never from data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Environment, Template, Undefined, UndefinedError, nodes
from markupsafe import Markup, escape

from notices.plain_text import END_ISOLATE, ISOLATE, direction, isolate


class AbsentError(UndefinedError):
    """A template used something absent. The text holds names from the template, never a value."""


class Absent(Undefined):
    """What is absent: false in an `{% if %}`, replaced by `default()`, an error in any other use."""

    __slots__ = ()

    def __init__(self, hint: str | None = None, obj: Any = None, name: Any = None, *_: Any, **__: Any) -> None:
        super().__init__(hint, obj, name, AbsentError)

    @property
    def _undefined_message(self) -> str:
        name = self._undefined_name
        known = isinstance(name, str) and name.isidentifier() and len(name) <= 64
        return f"'{name}' is absent" if known else "something it uses is absent"

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        raise AbsentError(self._undefined_message)

    __str__ = __iter__ = __len__ = __eq__ = __ne__ = __hash__ = _fail

    def __bool__(self) -> bool:
        return False


class _Texts(Environment):
    """An environment in which `facts.items` is the fact called items, not a dict's method."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an item of a dict, an attribute of anything else."""
        return self.getitem(obj, attribute) if isinstance(obj, dict) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item; of a dict nothing but an item."""
        if isinstance(obj, dict):
            return obj[argument] if argument in obj else self.undefined(obj=obj, name=argument)
        return super().getitem(obj, argument)


def words_environment(*, rtl: bool) -> Environment:
    """Return the environment of the texts in a language that runs right to left (`rtl`) or left to right.

    What it prints is raw: it becomes plain text, or is escaped on its way into the page.
    """

    def printed(value: Any) -> Any:
        return isolate(value, rtl=rtl) if isinstance(value, str) else _printed(value)

    return _environment(autoescape=False, finalize=printed)


def plain_environment() -> Environment:
    """Return the environment of the plain-text layout: nothing is escaped."""
    return _environment(autoescape=False, finalize=_printed)


def page_environment() -> Environment:
    """Return the environment of the page layout: everything is escaped."""
    environment = _environment(autoescape=True, finalize=_printed)
    environment.filters["isolated"] = _isolated
    return environment


def compile_template(environment: Environment, name: str, path: Path, tree: nodes.Template) -> Template:
    """Return the template `name` compiled from its parsed `tree`.

    Raises:
        jinja2.TemplateSyntaxError: a filter or test that does not exist, and the like.
    """
    code = environment.compile(tree, name, str(path))
    return Template.from_code(environment, code, environment.make_globals(None))


def render_block(template: Template, block: str, values: dict[str, Any]) -> str:
    """Return what one `{% block %}` of a template prints. Raises whatever the template raises."""
    return "".join(template.blocks[block](template.new_context(values)))


def digits(number: int | Decimal) -> str:
    """Return a number in plain digits, without an exponent."""
    return format(number, "f") if isinstance(number, Decimal) else str(number)


def _environment(*, autoescape: bool, finalize: Callable[[Any], Any]) -> Environment:
    return _Texts(
        autoescape=autoescape,
        finalize=finalize,
        undefined=Absent,
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=0,
    )


def _printed(value: Any) -> Any:
    """Let only text and numbers be printed: never a None, a flag, a list or a map."""
    if isinstance(value, (str, Undefined)):
        return value
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return digits(value)
    raise AbsentError(f"it prints a {type(value).__name__}, which is not a text")


def _isolated(value: str) -> Markup:
    """Escape `value`, with elements for the isolates that `isolate` put in (data holds none of its own).

    A span with a `dir`, which nearly every mail client keeps and which isolates; Gmail and Outlook drop `bdi`.
    """
    parts = _ISOLATES.split(value)
    return Markup("").join(
        Markup('<span dir="{}">').format(direction("".join(parts[at + 1 :])) or "auto")
        if part == ISOLATE
        else Markup("</span>")
        if part == END_ISOLATE
        else escape(part)
        for at, part in enumerate(parts)
    )


_ISOLATES = re.compile(f"([{ISOLATE}{END_ISOLATE}])")
