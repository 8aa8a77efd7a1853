"""When a notice that failed is tried again (DESIGN 3.5)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from notices.codes import Code

FIRST = timedelta(minutes=1)
LONGEST = timedelta(hours=4)
QUOTA_WAIT = timedelta(hours=1)  # the daily quota is a rolling 24 hours: an hour gives part of it back
JITTER = 0.15  # each way, so that notices which failed together do not return together


@dataclass(frozen=True, slots=True)
class Backoff:
    """One minute doubling to four hours, with jitter; no sooner than what the failure itself asks for."""

    unknown_grace: timedelta
    random: Callable[[], float] = random.random  # uniform in [0, 1)

    def next_attempt_at(self, now: datetime, attempt: int, code: Code) -> datetime:
        """Return when to try again after this attempt (1 for the first) failed with this error code."""
        doublings = min(attempt - 1, 30)  # far past the longest wait, and no overflow
        wait = min(FIRST * (1 << doublings), LONGEST)
        least = self._least(code)
        if wait * (1 - JITTER) < least:
            return now + max(wait, least) * (1 + JITTER * self.random())
        return now + wait * (1 - JITTER + 2 * JITTER * self.random())

    def _least(self, code: Code) -> timedelta:
        if code == Code.QUOTA_EXCEEDED:
            return QUOTA_WAIT
        if code == Code.PROVIDER_UNKNOWN:
            return self.unknown_grace  # SES's own events may settle it
        return timedelta(0)
