"""The metrics that the code emits, read from its syntax; and those that DESIGN 3.7 names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from scripts.template import ROOT

CAPABILITY = ROOT / "layers" / "notices" / "notices"


@cache
def emitted() -> set[str]:
    """The first argument of every ``telemetry.count``: a word, or one of the values of a dictionary of the module."""
    found: set[str] = set()
    for path in sorted(CAPABILITY.rglob("*.py")):
        module = ast.parse(path.read_text())
        for call in ast.walk(module):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("telemetry.count"):
                metrics = set(_words(call.args[0], module))
                assert metrics, f"{path.name}:{call.lineno}: which metric is counted cannot be read"
                found |= metrics
    return found


def _words(argument: ast.expr, module: ast.Module) -> Iterator[str]:
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
    elif isinstance(argument, ast.IfExp):
        yield from _words(argument.body, module)
        yield from _words(argument.orelse, module)
    elif isinstance(argument, ast.Subscript):
        named = ast.unparse(argument.value)
        for statement in module.body:
            match statement:
                case ast.Assign(targets=[target], value=ast.Dict(values=values)) if ast.unparse(target) == named:
                    yield from (str(value.value) for value in values if isinstance(value, ast.Constant))


def designed() -> set[str]:
    """The names after "Metrics" in DESIGN 3.7."""
    text = (ROOT / "docs" / "DESIGN.md").read_text()
    listed = text[text.index("Metrics (namespace `RequesterNotices`") :].partition("\n\n")[0]
    return set(re.findall(r"`([A-Z][a-z]+[A-Za-z]+)`", listed)) - {"RequesterNotices"}
