"""What was logged and counted, to look at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """One log line."""

    level: str
    message: str
    fields: dict[str, Any]


@dataclass(slots=True)
class FakeTelemetry:
    """Keeps lines in order, and metrics by (name, kind)."""

    lines: list[Line] = field(default_factory=list)
    counts: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    values: dict[str, list[float]] = field(default_factory=dict)

    def info(self, message: str, **fields: Any) -> None:
        """See notices.telemetry.Telemetry."""
        self.lines.append(Line("info", message, fields))

    def warning(self, message: str, **fields: Any) -> None:
        """See notices.telemetry.Telemetry."""
        self.lines.append(Line("warning", message, fields))

    def error(self, message: str, **fields: Any) -> None:
        """See notices.telemetry.Telemetry."""
        self.lines.append(Line("error", message, fields))

    def count(self, metric: str, kind: str | None = None, value: float = 1) -> None:
        """See notices.telemetry.Telemetry."""
        self.counts[metric, kind] += 1
        self.values.setdefault(metric, []).append(value)

    def total(self, metric: str) -> float:
        """Return the sum of a metric over all kinds."""
        return sum(self.values.get(metric, ()))

    def metrics(self) -> set[str]:
        """Return the names of all that was counted."""
        return set(self.values)

    def said(self, message: str) -> list[Line]:
        """Return the lines with this message."""
        return [line for line in self.lines if line.message == message]
