"""Groups of a batch go side by side, the records of one notice one after the other (DESIGN 3.5)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from fakes.context import FakeContext
from fakes.telemetry import FakeTelemetry
from notices.batch import Batch, Record, Step, in_order


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def run(groups: Sequence[Sequence[Callable[[], None]]], pool: ThreadPoolExecutor) -> dict[str, object]:
    count = sum(len(group) for group in groups)
    event = {"Records": [{"messageId": f"message-{number}", "body": ""} for number in range(count)]}

    def plan(records: Sequence[Record]) -> list[list[Step]]:
        arriving = iter(records)
        return [[Step(next(arriving), do) for do in group] for group in groups]

    return Batch(plan, worst_case=1, telemetry=FakeTelemetry(), pool=pool)(event, FakeContext())


def test_groups_are_under_way_at_the_same_time(pool):
    meeting = threading.Barrier(3)

    answer = run([[lambda: meeting.wait(10) and None]] * 3, pool)

    assert answer == {"batchItemFailures": []}


def test_the_records_of_one_group_go_one_after_the_other(pool):
    done: list[str] = []

    run([[lambda: done.append("a1"), lambda: done.append("a2"), lambda: done.append("a3")], [lambda: None]], pool)

    assert done == ["a1", "a2", "a3"]


def test_a_record_that_hangs_holds_up_none_but_those_of_its_own_notice(pool):
    others_done = threading.Semaphore(0)

    def hang() -> None:
        assert others_done.acquire(timeout=10)
        assert others_done.acquire(timeout=10)

    answer = run([[hang], [others_done.release], [others_done.release]], pool)

    assert answer == {"batchItemFailures": []}


def test_what_one_record_raises_is_reported_for_that_one_alone(pool):
    def fail() -> None:
        raise RuntimeError

    answer = run([[fail, lambda: None], [lambda: None], [fail]], pool)

    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-0"}, {"itemIdentifier": "message-3"}]}


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_what_ends_the_process_acknowledges_nothing_and_leaves_no_record_under_way(ending):
    done: list[str] = []

    def end() -> None:
        raise ending

    with ThreadPoolExecutor(1) as alone:
        with pytest.raises(ending):
            run([[end], [lambda: done.append("b")], [lambda: done.append("c")]], alone)
        assert done == ["b", "c"]


def test_records_that_the_plan_leaves_out_are_reported(pool):
    event = {"Records": [{"messageId": "message-1", "body": ""}, {"messageId": "message-2", "body": ""}]}
    batch = Batch(
        lambda records: [[Step(records[1], lambda: None)]], worst_case=1, telemetry=FakeTelemetry(), pool=pool
    )
    assert batch(event, FakeContext()) == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}


def test_more_groups_than_threads_are_all_handled(pool):
    done: list[int] = []

    assert run([[lambda number=number: done.append(number)] for number in range(25)], pool) == {"batchItemFailures": []}

    assert sorted(done) == list(range(25))


def test_a_record_that_comes_twice_is_handled_twice_and_named_once(pool):
    given: list[Record] = []

    def fail_the_second(record: Record) -> None:
        given.append(record)
        if len(given) == 2:
            raise RuntimeError

    raw = {"messageId": "message-1", "body": ""}
    batch = Batch(in_order(fail_the_second), worst_case=1, telemetry=FakeTelemetry(), pool=pool)

    assert batch({"Records": [raw, raw]}, FakeContext()) == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}
    assert len(given) == 2
