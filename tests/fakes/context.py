"""A Lambda context whose time is the test's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

PLENTY = 900_000


@dataclass(slots=True)
class FakeContext:
    """`remaining` is the time left; `script` overrules it, one value a question, as long as it lasts."""

    remaining: int = PLENTY
    script: Iterable[int] = ()
    aws_request_id: str = "request-1"
    asked: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.script = iter(self.script)

    def get_remaining_time_in_millis(self) -> int:
        """Return the time left in milliseconds."""
        self.asked += 1
        return next(iter(self.script), self.remaining)
