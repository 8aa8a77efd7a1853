"""Cut the SDK's data down to the operations that the functions call: `python slim.py <botocore/data>`.

botocore describes some four hundred services. A cold start unpacks what is there of those it uses, and the whole list
of their endpoints: a sixth of its time, a quarter of its memory (docs/performance.md). The layer's makefile runs this;
an operation that the SDK does not have fails the build. That the functions call no other, and that requests and answers
come out as with the whole data, is tested (tests/template/test_sdk_data.py).
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

OPERATIONS = {
    "dynamodb": ("BatchGetItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"),
    "sesv2": ("SendEmail",),
    "sqs": ("SendMessage", "SendMessageBatch"),
}


def main(data: Path) -> None:
    """Cut `data` down. Raises SystemExit, naming what is not there."""
    if missing := [service for service in OPERATIONS if not (data / service).is_dir()]:
        raise SystemExit(f"botocore does not know {', '.join(missing)}")
    prefixes = set()
    for entry in data.iterdir():
        if entry.name in OPERATIONS:
            prefixes.add(_slim_service(entry, OPERATIONS[entry.name]))
        elif entry.is_dir():
            shutil.rmtree(entry)
    _slim_endpoints(data / "endpoints.json", prefixes)


def _slim_service(folder: Path, operations: Iterable[str]) -> str:
    """Leave the latest version's model and endpoint rules of one service; return its endpoint prefix."""
    *older, latest = sorted(version for version in folder.iterdir() if version.is_dir())
    for version in older:
        shutil.rmtree(version)
    for path in latest.iterdir():
        if not path.name.startswith(("service-2.", "endpoint-rule-set-1.")):
            path.unlink()
    model = _read(latest, "service-2.json.gz")
    if missing := set(operations) - set(model["operations"]):
        raise SystemExit(f"{folder.name} has no operation {', '.join(sorted(missing))}")
    model["operations"] = {name: _bare(model["operations"][name]) for name in sorted(operations)}
    model["shapes"] = {name: _bare(model["shapes"][name]) for name in _reached(model)}
    model.pop("documentation", None)
    _write(latest, "service-2.json", model)
    _write(latest, "endpoint-rule-set-1.json", _read(latest, "endpoint-rule-set-1.json.gz"))
    prefix: str = model["metadata"]["endpointPrefix"]
    return prefix


def _reached(model: Json) -> list[str]:
    """Return the shapes that the operations reach."""
    reached: set[str] = set()
    waiting = list(_shapes_named(model["operations"]))
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _shapes_named(model["shapes"][name])
    return sorted(reached)


def _shapes_named(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("shape"), str):
            yield value["shape"]
        for inner in value.values():
            yield from _shapes_named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _shapes_named(inner)


def _bare(value: Any) -> Any:
    """Return `value` without its prose. (A member may be called "documentation": then it is no text.)"""
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if not (k == "documentation" and isinstance(v, str))}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _slim_endpoints(path: Path, prefixes: set[str]) -> None:
    endpoints = json.loads(path.read_text(encoding="utf-8"))
    for partition in endpoints["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in sorted(prefixes) if name in services}
    path.write_text(_compact(endpoints), encoding="utf-8")


def _read(folder: Path, name: str) -> Json:
    content: Json = json.loads(gzip.decompress((folder / name).read_bytes()))
    return content


def _write(folder: Path, name: str, content: Json) -> None:
    (folder / f"{name}.gz").unlink()
    (folder / name).write_text(_compact(content), encoding="utf-8")


def _compact(content: Json) -> str:
    return json.dumps(content, separators=(",", ":"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
