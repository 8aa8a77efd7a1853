"""Tables as template.yaml declares them, for moto."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
_TABLE = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads CloudFormation's short forms as None: nothing of a table's keys is one."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@cache
def template() -> dict[str, Any]:
    """The template, without what its short forms stand for."""
    loaded: dict[str, Any] = yaml.load(TEMPLATE.read_text(encoding="utf-8"), _Loader)  # a SafeLoader
    return loaded


def resources() -> dict[str, Any]:
    """The template's resources by their logical ids."""
    return dict(template()["Resources"])


def table(logical_id: str) -> dict[str, Any]:
    """What CreateTable needs to know of a table, but its name."""
    properties = resources()[logical_id]["Properties"]
    return {name: properties[name] for name in _TABLE if name in properties} | {"BillingMode": "PAY_PER_REQUEST"}
