"""A kind's texts: parsed, checked to use only what the kind declares, and compiled (DESIGN 3.8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jinja2 import Template, TemplateSyntaxError, nodes

from notices.kind_files import KindError, listed, read
from notices.passages import LABEL_END, STRUCTURE
from notices.templates import Texts, compile_template, ready_made

_NAMES = {"facts", "audience", "job_id", "requester_name", "has_link", "ask"}
_SHARED_NAMES = (_NAMES - {"facts"}) | {"at"}
_BLOCKS = {"subject": True, "body": True, "link": True, "details": False}  # whether each is needed
_SHARED_BLOCKS = dict.fromkeys(("greeting", "copy_link", "no_link", "when", "reference_label", "why", "ask"), True)
_GLOBALS = {"loop", "range", "namespace"}
_VALUE = "\x03"
_TAG = re.compile(r"(\{%.*?%\}|\{#.*?#\})", re.DOTALL)


def kind_text(environment: Texts, path: Path, facts: Iterable[str]) -> Template:
    """Return the words of one outcome, compiled. Raises KindError when something in them cannot work."""
    source = read(path)
    return ready_made(environment, source) or _words(environment, path, source, _BLOCKS, _NAMES, set(facts))


def shared_text(environment: Texts, path: Path) -> Template:
    """Return the words that all kinds share in one language, compiled. Raises KindError."""
    source = read(path)
    return ready_made(environment, source) or _words(environment, path, source, _SHARED_BLOCKS, _SHARED_NAMES, set())


def layout(environment: Texts, path: Path) -> Template:
    """Return what surrounds the words, compiled. Raises KindError."""
    source = read(path)
    return ready_made(environment, source) or _compile(environment, path, source, _parse(environment, path, source))


def _words(
    environment: Texts, path: Path, source: str, blocks: Mapping[str, bool], names: set[str], facts: set[str]
) -> Template:
    """Return a file of words, checked and compiled."""
    marked = re.sub(r"(?m)^([ \t]*)([->] )", rf"\1{STRUCTURE}\2", source)
    tree = _parse(environment, path, _lines_kept(marked))
    _check_blocks(path, tree, blocks)
    _check_names(path, tree, names, facts)
    _check_filters(environment, path, tree)
    _check_details(path, tree)
    return _compile(environment, path, source, tree)


def _lines_kept(source: str) -> str:
    """Return `source` with its line breaks after tags that share their line with words.

    Jinja drops the line break after a tag wherever the tag stands, which would join the words of two lines.
    """
    pieces = _TAG.split(source)
    words = False
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            line = piece.rpartition("\n")[2]
            words = bool(line.strip()) or (words and "\n" not in piece)
        elif words and pieces[at + 1].startswith("\n") and piece[-3] not in "+-":
            pieces[at] = f"{piece[:-2]}+{piece[-2:]}"
    return "".join(pieces)


def _check_blocks(path: Path, tree: nodes.Template, blocks: Mapping[str, bool]) -> None:
    """Check that a text stands alone and has the right blocks."""
    seen = set()
    for node in tree.body:
        if isinstance(node, nodes.Output) and all(_is_blank(part) for part in node.nodes):
            continue
        if not isinstance(node, nodes.Block):
            problem = f"there is something outside a block. Put it into a block: {listed(blocks)}."
            raise KindError(path, problem, line=node.lineno)
        if node.name not in blocks:
            raise KindError(path, f"no block is called '{node.name}'. Use {listed(blocks)}.", line=node.lineno)
        seen.add(node.name)
    missing = [name for name, needed in blocks.items() if needed and name not in seen]
    if missing:
        raise KindError(
            path, f"the block '{missing[0]}' is missing. Add {{% block {missing[0]} %}}...{{% endblock %}}."
        )
    for foreign in tree.find_all((nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)):
        raise KindError(path, "a text stands alone. Take out extends, include or import.", line=foreign.lineno)


def _check_names(path: Path, tree: nodes.Template, names: set[str], facts: set[str]) -> None:
    named = set()
    for use in tree.find_all(nodes.Getattr):
        if isinstance(use.node, nodes.Name) and use.node.name == "facts":
            named.add(id(use.node))
            if use.attr not in facts:
                problem = f"kind.toml declares no fact '{use.attr}'. Add it to [facts], or use {listed(facts)}."
                raise KindError(path, problem, line=use.lineno)
    used = list(tree.find_all(nodes.Name))
    own = {name.name for name in used if name.ctx != "load"} | _GLOBALS
    for name in used:
        if name.name == "facts" and id(name) not in named:
            raise KindError(path, "facts are used by name. Write facts.workspace_name, say.", line=name.lineno)
        if name.ctx == "load" and name.name not in names | own:
            remedy = f"Write facts.{name.name}." if name.name in facts else f"Use {listed(names)}."
            raise KindError(path, f"nothing is called '{name.name}'. {remedy}", line=name.lineno)


def _check_details(path: Path, tree: nodes.Template) -> None:
    """Look for a line of details that has no label: it would stand in the table without one."""
    for block in tree.find_all(nodes.Block):
        for line, words in _lines_of(block) if block.name == "details" else ():
            if words.strip() and LABEL_END not in words.strip():
                problem = (
                    "a line of details is 'Label: value', and this one is not. Write it so, or put it into the body."
                )
                raise KindError(path, problem, line=line)


def _lines_of(block: nodes.Block) -> Iterator[tuple[int, str]]:
    """Yield the lines that a block may print, each with its number: every branch once, a mark for every value."""
    at, words = block.lineno, ""
    for output in block.find_all(nodes.Output):
        for node in output.nodes:
            if not isinstance(node, nodes.TemplateData):
                constants = [node, *node.find_all(nodes.Const)]
                texts = [one.value for one in constants if isinstance(one, nodes.Const) and isinstance(one.value, str)]
                at, words = at if words.strip() else node.lineno, words + "".join(texts) + _VALUE
                continue
            for offset, part in enumerate(node.data.split("\n")):
                if offset:
                    yield at, words
                    words = ""
                if not words.strip():
                    at = node.lineno + offset
                words += part
    yield at, words


def _check_filters(environment: Texts, path: Path, tree: nodes.Template) -> None:
    """Look for filters and tests that do not exist, which Jinja finds late when they are within a condition."""
    for use in tree.find_all((nodes.Filter, nodes.Test)):
        known = environment.filters if isinstance(use, nodes.Filter) else environment.tests
        if use.name not in known:
            raise KindError(path, f"Jinja has no '{use.name}'. Take another, or leave it out.", line=use.lineno)


def _compile(environment: Texts, path: Path, source: str, tree: nodes.Template) -> Template:
    try:
        return compile_template(environment, "/".join(path.parts[-3:]), path, source, tree)
    except TemplateSyntaxError as error:
        raise KindError(path, _in_plain_words(error), line=error.lineno) from None


def _parse(environment: Texts, path: Path, source: str) -> nodes.Template:
    try:
        return environment.parse(source, path.name, str(path))
    except TemplateSyntaxError as error:
        raise KindError(path, _in_plain_words(error), line=error.lineno) from None


def _in_plain_words(error: TemplateSyntaxError) -> str:
    """Return what Jinja says about a tag in the words of somebody who writes texts, anything else as it is."""
    said = (error.message or "it cannot be read").rstrip(".")
    tag = re.search(r"unknown tag '(\w+)'", said)
    opened = re.search(r"needs to be closed is '(\w+)'", said)
    beginning = _BEGINNINGS.get(tag[1]) if tag else None
    if tag and beginning and (not opened or (opened[1] == "block" and beginning != "block")):
        return f"{{% {tag[1]} %}} has no {{% {beginning} ... %}} above it. Add that, or take this out."
    if opened and (beginning or said.startswith("Unexpected end")):
        here = f"{{% {tag[1]} %}} comes" if tag else "the file ends"
        return f"{here} before {{% end{opened[1]} %}}, which a {{% {opened[1]} ... %}} above needs. Add it."
    if tag:
        return f"there is no {{% {tag[1]} %}}. Use if, elif, else and endif, for and endfor, block and endblock."
    if "end of statement block" in said:
        return "what stands between {% and %} cannot be read. Write it as {% if facts.workspace_name %}, say."
    if said.startswith(("expected token", "unexpected ", "Expected an expression")):
        return "what stands between {{ and }} cannot be read. Write it as {{ facts.workspace_name }}, say."
    return f"{said}. Mend that line."


_BEGINNINGS = {"endblock": "block", "endif": "if", "else": "if", "elif": "if", "endfor": "for"}


def _is_blank(node: nodes.Expr) -> bool:
    return isinstance(node, nodes.TemplateData) and not node.data.strip()
