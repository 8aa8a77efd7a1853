"""Log lines and metrics (DESIGN 3.7). Nothing personal: every line is built from named fields.

A line is one JSON object on the standard output with the keys that Powertools' Logger writes, and a metric one of
CloudWatch's embedded metric format. Powertools itself would be a tenth of a cold start (docs/performance.md).
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

NAMESPACE = "RequesterNotices"

# At DEBUG they write whole requests, with everybody's address in them, and Lambda's own log level can ask for that.
_TALKATIVE = ("botocore", "pynamodb", "urllib3")

_SECONDS = frozenset({"SecondsToTell", "OldestUnsettledSeconds"})
_VALUES_PER_OBJECT = 100  # more than that, CloudWatch drops


class Telemetry(Protocol):
    """What the capability says of its work."""

    def info(self, message: str, **fields: Any) -> None:
        """Write one line that needs nobody."""

    def warning(self, message: str, **fields: Any) -> None:
        """Write one line that somebody should look at in the morning."""

    def error(self, message: str, **fields: Any) -> None:
        """Write one line that names a fault of ours or of the stack."""

    def count(self, metric: str, kind: str | None = None, value: float = 1) -> None:
        """Add to a metric, by service and, where the kind is known, by service and kind."""


class JsonTelemetry:
    """Lines as they come; metrics collected for one invocation and written by `flush`."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._request_id: str | None = None
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        self._lock = threading.Lock()
        self._values: dict[str | None, dict[str, list[float]]] = {}

    def begin(self, request_id: str | None) -> None:
        """Start an invocation: its request id goes with every line."""
        self._request_id = request_id

    def info(self, message: str, **fields: Any) -> None:
        """See Telemetry."""
        self._line("INFO", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """See Telemetry."""
        self._line("WARNING", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """See Telemetry."""
        self._line("ERROR", message, fields)

    def count(self, metric: str, kind: str | None = None, value: float = 1) -> None:
        """See Telemetry."""
        with self._lock:
            for dimension in {None, kind}:
                self._values.setdefault(dimension, defaultdict(list))[metric].append(value)

    def flush(self) -> None:
        """Write what was counted, one EMF object for the service and one for each kind, and forget it."""
        with self._lock:
            collected, self._values = self._values, {}
        for kind, metrics in collected.items():
            dimensions = {"service": self._service} | ({"kind": kind} if kind is not None else {})
            for part in _parts(metrics):
                self._write(_emf(dimensions, part))

    def _line(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"level": level, "message": message, "timestamp": now, "service": self._service}
        if self._request_id is not None:
            line["request_id"] = self._request_id
        self._write(line | {name: value for name, value in fields.items() if value is not None})

    def _write(self, line: Mapping[str, Any]) -> None:
        # one write for the whole line: threads log side by side
        text = json.dumps(line, default=str) + "\n"
        with self._lock:
            sys.stdout.write(text)
            sys.stdout.flush()


def _emf(dimensions: Mapping[str, str], metrics: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return one object of the embedded metric format."""
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [{"Name": name, "Unit": "Seconds" if name in _SECONDS else "Count"} for name in metrics],
    }
    timestamp = int(datetime.now(UTC).timestamp() * 1000)
    return {"_aws": {"Timestamp": timestamp, "CloudWatchMetrics": [directive]}, **dimensions, **metrics}


def _parts(metrics: Mapping[str, list[float]]) -> list[dict[str, list[float]]]:
    """Counts as one sum; seconds value by value, as many in one object as it takes."""
    first: dict[str, list[float]] = {}
    more: list[dict[str, list[float]]] = []
    for name, values in metrics.items():
        if name not in _SECONDS:
            first[name] = [float(sum(values))]
            continue
        head, *rest = (values[at : at + _VALUES_PER_OBJECT] for at in range(0, len(values), _VALUES_PER_OBJECT))
        first[name] = head
        more += [{name: part} for part in rest]
    return [first, *more]


def fault(error: BaseException) -> str:
    """Return where an unforeseen error came from, without its text, which may hold somebody's data."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return type(error).__name__
    code = place.tb_frame.f_code
    return f"{type(error).__name__} in {code.co_name} ({code.co_filename.rpartition('/')[2]}:{place.tb_lineno})"


def describe(error: BaseException) -> str:
    """Return what a log may say of an error: its own words only where they are this system's."""
    if type(error).__module__.startswith("notices."):
        return f"{type(error).__name__}: {error}"
    return fault(error)
