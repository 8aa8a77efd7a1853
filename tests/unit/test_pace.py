"""How fast one worker sends (DESIGN 3.5)."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.mail import Provider
from notices.codes import Code
from notices.mail import Letter, Mail, Verdict
from notices.pace import BURST, PATIENCE_SECONDS, Pace


class Seconds:
    """A clock that stands until somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def pace(per_second: float, seconds: Seconds) -> Pace:
    return Pace(per_second, clock=seconds, sleep=seconds.sleep)


def test_a_batch_goes_out_at_once_after_a_pause():
    seconds = Seconds()
    turns = pace(7, seconds)
    assert all(turns.take_turn() for _ in range(BURST))
    assert seconds.slept == []


def test_what_follows_a_batch_waits_for_its_turn():
    seconds = Seconds()
    turns = pace(7, seconds)
    for _ in range(BURST + 3):
        assert turns.take_turn()
    assert seconds.slept == pytest.approx([1 / 7] * 3)


def test_an_idle_worker_saves_up_no_more_than_one_batch():
    seconds = Seconds()
    turns = pace(7, seconds)
    seconds.now += 3600
    for _ in range(BURST + 1):
        assert turns.take_turn()
    assert sum(seconds.slept) == pytest.approx(1 / 7)


@given(per_second=st.floats(0.05, 500), gaps=st.lists(st.floats(0, 5), min_size=1, max_size=200))
def test_no_stretch_of_time_sees_more_than_its_rate_and_one_batch(per_second, gaps):
    seconds = Seconds()
    turns = pace(per_second, seconds)
    sent = []
    for gap in gaps:
        seconds.now += gap
        if turns.take_turn():
            sent.append(seconds.now)
    for first, begin in enumerate(sent):
        for last in range(first, len(sent)):
            assert last - first + 1 <= BURST + per_second * (sent[last] - begin) + 1e-6


def test_a_turn_too_far_off_is_refused_at_once_and_not_kept():
    now = 100.0
    slept: list[float] = []
    turns = Pace(1, clock=lambda: now, sleep=slept.append)  # all come at the same moment
    results = [turns.take_turn() for _ in range(BURST + 50)]
    assert results == [True] * (BURST + int(PATIENCE_SECONDS)) + [False] * (50 - int(PATIENCE_SECONDS))
    assert max(slept) <= PATIENCE_SECONDS
    now += 1
    assert turns.take_turn()  # those that were refused hold no place


def test_threads_share_the_turns():
    begun = time.monotonic()
    turns = Pace(100)
    with ThreadPoolExecutor(10) as pool:
        assert all(pool.map(lambda _: turns.take_turn(), range(BURST + 20)))
    assert time.monotonic() - begun >= 0.19


def test_a_letter_without_a_turn_is_throttled_and_not_sent():
    provider = Provider()

    class Client:
        def send_email(self, **request):
            provider.letters.append(request)
            return {"MessageId": "1"}

    turns = Pace(0.001, clock=lambda: 0.0, sleep=lambda _: None)
    mail = Mail(Client(), sender="a@example.com", configuration_set=None, pace=turns)
    letter = Letter("dana@example.com", "s", "t", "h", {})
    answers = [mail.send(letter) for _ in range(BURST + 1)]

    assert [answer.verdict for answer in answers] == [Verdict.ACCEPTED] * BURST + [Verdict.UNAVAILABLE]
    assert (answers[-1].code, answers[-1].error) == (Code.THROTTLED, "throttled: NoTurn")
    assert len(provider.letters) == BURST


def test_a_wait_holds_no_other_thread_up():
    waiting = threading.Event()
    go_on = threading.Event()

    def sleep(_seconds: float) -> None:
        waiting.set()
        assert go_on.wait(10)

    turns = Pace(1, clock=lambda: 0.0, sleep=sleep)
    for _ in range(BURST):
        turns.take_turn()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(turns.take_turn)
        assert waiting.wait(10)
        second = pool.submit(turns.take_turn)  # gets past the lock, to wait for its own turn
        go_on.set()
        assert first.result(10)
        assert second.result(10)
