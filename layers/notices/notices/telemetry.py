"""Log lines and metrics (DESIGN 3.7). Nothing personal: every line is built from named fields."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from datetime import datetime
from typing import Any, Protocol

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

NAMESPACE = "RequesterNotices"

# At DEBUG they write whole requests, with everybody's address in them, and Lambda's own log level can ask for that.
_TALKATIVE = ("botocore", "pynamodb", "urllib3")

_SECONDS = frozenset({"SecondsToTell", "OldestUnsettledSeconds"})
_VALUES_PER_OBJECT = 99  # EMF takes 100, at which Powertools writes by itself


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


class PowertoolsTelemetry:
    """Lines through Powertools' Logger; metrics collected for one invocation and written by `flush`."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._logger = Logger(service=service, location=None)  # every line would say telemetry.py
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        self._lock = threading.Lock()
        self._values: dict[str | None, dict[str, list[float]]] = {}

    def begin(self, request_id: str | None) -> None:
        """Start an invocation: its request id goes with every line."""
        self._logger.append_keys(request_id=request_id)

    def info(self, message: str, **fields: Any) -> None:
        """See Telemetry."""
        self._logger.info(message, extra=_named(fields))

    def warning(self, message: str, **fields: Any) -> None:
        """See Telemetry."""
        self._logger.warning(message, extra=_named(fields))

    def error(self, message: str, **fields: Any) -> None:
        """See Telemetry."""
        self._logger.error(message, extra=_named(fields))

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
            for part in _parts(metrics):
                emf = EphemeralMetrics(namespace=NAMESPACE, service=self._service)
                if kind is not None:
                    emf.add_dimension("kind", kind)
                for name, value in part:
                    emf.add_metric(name, MetricUnit.Seconds if name in _SECONDS else MetricUnit.Count, value)
                emf.flush_metrics()


def _parts(metrics: dict[str, list[float]]) -> list[list[tuple[str, float]]]:
    """Counts as one sum; seconds value by value, as many in one object as it takes."""
    first: list[tuple[str, float]] = []
    more: list[list[tuple[str, float]]] = []
    for name, values in metrics.items():
        if name not in _SECONDS:
            first.append((name, sum(values)))
            continue
        first += [(name, value) for value in values[:_VALUES_PER_OBJECT]]
        more += [
            [(name, value) for value in values[start : start + _VALUES_PER_OBJECT]]
            for start in range(_VALUES_PER_OBJECT, len(values), _VALUES_PER_OBJECT)
        ]
    return [first, *more]


def _named(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def delivered(telemetry: Telemetry, kind: str, settled_at: datetime | None, now: datetime) -> None:
    """Count a notice that has become delivered, by its sender or by SES's own event."""
    telemetry.count("NoticeDelivered", kind)
    if settled_at is not None:
        telemetry.count("SecondsToTell", kind, max(0.0, (now - settled_at).total_seconds()))


def delivered_twice(telemetry: Telemetry, kind: str, job_id: str, outcome: str, reference: str | None) -> None:
    """Count and log the residue of DESIGN 2 where it shows: a requester got a second mail."""
    telemetry.count("DuplicateDelivery", kind)
    telemetry.warning("delivered twice", job_id=job_id, outcome=outcome, provider_reference=reference)


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
