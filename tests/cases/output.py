"""What a function wrote: its log lines and its metrics (EMF objects on stdout)."""

from __future__ import annotations

import io
import json
from typing import Any


class Output:
    """Everything that was written to stdout and stderr, as CloudWatch would get it."""

    def __init__(self) -> None:
        self.stdout = io.StringIO()
        self.stderr = io.StringIO()

    @property
    def text(self) -> str:
        """All of it."""
        return self.stdout.getvalue() + self.stderr.getvalue()

    def forget(self) -> None:
        """Begin anew."""
        for stream in (self.stdout, self.stderr):
            stream.seek(0)
            stream.truncate()

    @property
    def _objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.getvalue().splitlines() if line.strip()]

    @property
    def logs(self) -> list[dict[str, Any]]:
        """The log lines; every line has to be a JSON object."""
        return [each for each in self._objects if "_aws" not in each]

    @property
    def emf(self) -> list[dict[str, Any]]:
        """The metric objects."""
        return [each for each in self._objects if "_aws" in each]

    def at(self, level: str, **fields: object) -> list[dict[str, Any]]:
        """The log lines of one level that have these fields."""
        return [
            line
            for line in self.logs
            if line.get("level") == level and all(line.get(k) == v for k, v in fields.items())
        ]

    def of(self, message_id: str) -> list[dict[str, Any]]:
        """The log lines about one record."""
        return [line for line in self.logs if line.get("message_id") == message_id]

    def values(self, metric: str, kind: str | None = None) -> list[float]:
        """Every value of a metric: by service alone, or by service and this kind."""
        dimensions = {"service"} if kind is None else {"service", "kind"}
        found: list[float] = []
        for each in self.emf:
            for group in each["_aws"]["CloudWatchMetrics"]:
                named = {name for names in group["Dimensions"] for name in names}
                if named != dimensions or each.get("kind") != kind:
                    continue
                if any(defined["Name"] == metric for defined in group["Metrics"]):
                    value = each[metric]
                    found += value if isinstance(value, list) else [value]
        return found

    def total(self, metric: str, kind: str | None = None) -> float:
        """The sum of a metric."""
        return sum(self.values(metric, kind))

    @property
    def counted(self) -> dict[str, float]:
        """Every count by service alone that is not zero."""
        names = {
            metric["Name"]
            for each in self.emf
            for group in each["_aws"]["CloudWatchMetrics"]
            for metric in group["Metrics"]
            if metric["Unit"] == "Count"
        }
        return {name: total for name in names if (total := self.total(name))}
