"""When a failed notice is tried again (DESIGN 3.5)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.clock import START
from notices.backoff import Backoff

GRACE = timedelta(seconds=600)
CODES = ["throttled", "provider_unreachable", "provider_misconfigured", "template_error", "internal_error"]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def wait(attempt: int, code: str = "throttled", chance: float = 0.5, grace: timedelta = GRACE) -> timedelta:
    return Backoff(grace, lambda: chance).next_attempt_at(START, attempt, code) - START


def test_it_starts_at_a_minute_and_doubles_to_four_hours():
    waits = [wait(attempt) for attempt in range(1, 12)]
    assert waits[:8] == [MINUTE * 2**doublings for doublings in range(8)]
    assert waits[8:] == [4 * HOUR] * 3


@pytest.mark.parametrize("attempt", [10**6, 10**9, 10**30])
def test_any_number_of_attempts_is_four_hours(attempt):
    assert wait(attempt) == 4 * HOUR


@settings(database=None, deadline=None)
@given(attempt=st.integers(1, 50), chance=st.floats(0, 1, exclude_max=True), code=st.sampled_from(CODES))
def test_the_jitter_is_at_most_a_fifth(attempt, chance, code):
    middle = min(MINUTE * 2 ** min(attempt - 1, 20), 4 * HOUR)
    assert middle * 0.8 <= wait(attempt, code, chance) <= middle * 1.2


def test_notices_that_failed_together_do_not_return_together():
    assert len({wait(3, chance=chance / 10) for chance in range(10)}) == 10


@settings(database=None, deadline=None)
@given(attempt=st.integers(1, 50), chance=st.floats(0, 1, exclude_max=True))
def test_the_daily_quota_waits_an_hour_or_more(attempt, chance):
    assert wait(attempt, "quota_exceeded", chance) >= HOUR


@settings(database=None, deadline=None)
@given(
    attempt=st.integers(1, 50),
    chance=st.floats(0, 1, exclude_max=True),
    seconds=st.integers(1, 86_400),
)
def test_an_unknown_send_is_left_alone_for_the_grace(attempt, chance, seconds):
    grace = timedelta(seconds=seconds)
    found = wait(attempt, "provider_unknown", chance, grace)
    assert grace <= found <= max(grace, 4 * HOUR) * 1.2


def test_the_random_source_of_its_own_works():
    assert START < Backoff(GRACE).next_attempt_at(START, 1, "throttled") < START + 2 * MINUTE
