"""How fast one worker sends: its share of what SES allows, so that a flood of jobs is no storm of refusals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BURST = 10  # what one batch may send at once after a pause
PATIENCE_SECONDS = 20.0  # the longest wait for a turn; it counts into the worst case of a record


class Pace:
    """A token bucket: `per_second` turns a second, up to `BURST` at once. For threads that take turns side by side.

    `clock` gives seconds that never go back.
    """

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._interval = 1 / per_second
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._full_at = clock()  # when the bucket is full again, were nothing more taken

    def take_turn(self) -> bool:
        """Wait for a turn and return True; at once False, and no turn taken, when it is further off than patience."""
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at, now) + self._interval
            wait = full_at - BURST * self._interval - now
            if wait > PATIENCE_SECONDS:
                return False
            self._full_at = full_at
        if wait > 0:
            self._sleep(wait)
        return True
