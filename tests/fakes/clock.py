"""A clock that stands, or ticks, until it is set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)


class Clock:
    """UTC, as `notices.record.Clock` wants it. With a `tick`, that much time passes at each look."""

    def __init__(self, at: datetime = START, tick: timedelta = timedelta(0)) -> None:
        self.at = at
        self.tick = tick

    def __call__(self) -> datetime:
        self.at += self.tick
        return self.at

    def advance(self, by: timedelta | None = None, *, seconds: float = 0) -> datetime:
        """Let time pass and return the new time."""
        self.at += (by or timedelta(0)) + timedelta(seconds=seconds)
        return self.at
