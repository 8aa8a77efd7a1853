"""The two Jinja environments, and what "absent" means in a template (DESIGN 3.8).

Escaping goes by part, whatever a file is called: everything printed into a page is escaped, and nothing
printed into plain text is. Templates are compiled from files at start (Jinja's own loading is not safe when
threads meet a template for the first time), and never from data. Those that ship are compiled when the layer is built,
since that takes an eighth of a cold start: the build writes Jinja's Python for each of them into `compiled/`, a module
named by a digest of all it was made from. One that is not there is compiled at start.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Environment, Template, Undefined, UndefinedError, nodes
from jinja2 import __version__ as jinja_version
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


class Texts(Environment):
    """An environment in which `facts.items` is the fact called items, not a dict's method.

    `flavour` names its settings. With `compile_into`, the Python of each template is also written to that folder.
    """

    flavour: str
    compile_into: Path | None

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an item of a dict, an attribute of anything else."""
        return self.getitem(obj, attribute) if isinstance(obj, dict) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item; of a dict nothing but an item."""
        if isinstance(obj, dict):
            return obj[argument] if argument in obj else self.undefined(obj=obj, name=argument)
        return super().getitem(obj, argument)


def words_environment(*, rtl: bool, compile_into: Path | None = None) -> Texts:
    """Return the environment of the texts in a language that runs right to left (`rtl`) or left to right.

    What it prints is raw: it becomes plain text, or is escaped on its way into the page.
    """

    def printed(value: Any) -> Any:
        return isolate(value, rtl=rtl) if isinstance(value, str) else _printed(value)

    return _environment("rtl" if rtl else "ltr", printed, compile_into)


def plain_environment(compile_into: Path | None = None) -> Texts:
    """Return the environment of the plain-text layout: nothing is escaped."""
    return _environment("plain", _printed, compile_into)


def page_environment(compile_into: Path | None = None) -> Texts:
    """Return the environment of the page layout: everything is escaped."""
    environment = _environment("page", _printed, compile_into, autoescape=True)
    environment.filters["isolated"] = _isolated
    return environment


def ready_made(environment: Texts, source: str) -> Template | None:
    """Return the template of a file with this text, if the build compiled it; what it compiled, it has checked."""
    try:
        module = importlib.import_module(f"notices.compiled.{_module_name(environment, source)}")
    except ModuleNotFoundError:
        return None
    return Template.from_module_dict(environment, vars(module), environment.make_globals(None))


def compile_template(environment: Texts, name: str, path: Path, source: str, tree: nodes.Template) -> Template:
    """Return the template `name` compiled from its parsed `tree`; `source` is the text of its file.

    Raises:
        jinja2.TemplateSyntaxError: a filter or test that does not exist, and the like.
    """
    if environment.compile_into is not None:
        python = environment.compile(tree, name, raw=True, defer_init=True)
        module = environment.compile_into / f"{_module_name(environment, source)}.py"
        module.write_text(python, encoding="utf-8")
    code = environment.compile(tree, name, str(path))
    return Template.from_code(environment, code, environment.make_globals(None))


def render_block(template: Template, block: str, values: dict[str, Any]) -> str:
    """Return what one `{% block %}` of a template prints. Raises whatever the template raises."""
    return "".join(template.blocks[block](template.new_context(values)))


def digits(number: int | Decimal) -> str:
    """Return a number in plain digits, without an exponent."""
    return format(number, "f") if isinstance(number, Decimal) else str(number)


def _module_name(environment: Texts, source: str) -> str:
    made_from = "\0".join((jinja_version, environment.flavour, source))
    return f"t_{hashlib.sha256(made_from.encode()).hexdigest()[:32]}"


def _environment(
    flavour: str, finalize: Callable[[Any], Any], compile_into: Path | None, *, autoescape: bool = False
) -> Texts:
    environment = Texts(
        autoescape=autoescape,
        finalize=finalize,
        undefined=Absent,
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=0,
    )
    environment.flavour = flavour
    environment.compile_into = compile_into
    return environment


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
