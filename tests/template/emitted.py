"""The metrics that the code emits, read from its syntax; and those that DESIGN 3.7 names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from scripts.template import ROOT

CAPABILITY = ROOT / "layers" / "notices" / "notices"
DEPLOYED = (CAPABILITY, ROOT / "functions")
WRITES = {"EphemeralMetrics", "Metrics", "single_metric", "add_metric", "put_metric_data"}
WRITER = "telemetry.py"  # the one file in which these may stand


@cache
def emitted() -> set[str]:
    """The metrics of all that is deployed."""
    return {
        metric
        for folder in DEPLOYED
        for path in sorted(folder.rglob("*.py"))
        for metric in counted(path.read_text(), path.name)
    }


def counted(source: str, name: str) -> set[str]:
    """The first argument of every ``telemetry.count``: a word, or one of the values of a dictionary of the module.

    Raises:
        AssertionError: a metric is counted in a way that cannot be read, or is written without being counted.
    """
    found: set[str] = set()
    module = ast.parse(source)
    read: set[ast.expr] = set()
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and _counts(call.func):
            metrics = set(_words(call.args[0], module)) if call.args else set()
            assert metrics, f"{name}:{call.lineno}: which metric is counted cannot be read"
            found |= metrics
            read.add(call.func)
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and _counts(node):
            assert node in read, f"{name}:{node.lineno}: telemetry.count is handed on, so what it counts cannot be read"
        word = getattr(node, "attr", getattr(node, "id", None))
        assert name == WRITER or word not in WRITES, f"{name}: {word} writes a metric that is not counted"
    return found


def _counts(function: ast.expr) -> bool:
    """Whether it is ``count`` of what is called telemetry, however it is reached."""
    match function:
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr="count"):
            return owner.endswith("telemetry")
    return False


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
