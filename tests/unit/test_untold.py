"""Settled jobs that nobody was told about (DESIGN 3.6, 3.7)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fakes.clock import START
from fakes.gate import Gate, Lever, raising
from fakes.mail import REFUSED, THROTTLED
from fakes.store import Store, refusal
from fakes.world import JOBS, NOTICES, World, catalogue
from notices.database import DatabaseError, Table
from notices.jobs import JOB_KEYS
from notices.record import NOTICE_KEYS
from notices.untold import (
    BOOKMARK_KEYS,
    GRACE,
    INDEX_LOOKBACK,
    SCAN_LOOKBACK,
    FindUntold,
    Found,
    IndexSource,
    ScanSource,
)
from notices.untold import Bookmark as StoredBookmark

INDEX = "settled"
HOUR = timedelta(hours=1)


class Bookmark:
    """Keeps the key, and every key that it was given."""

    def __init__(self, key=None) -> None:
        self.key = key
        self.saved: list = []

    def load(self):
        return self.key

    def save(self, key) -> None:
        self.key = key
        self.saved.append(key)


@pytest.fixture
def world() -> World:
    world = World()
    # the platform's table has an index here; DynamoDB shows in it only what has both keys
    world.store.create(JOBS, JOB_KEYS, **{INDEX: ("kind", "settled_at")})
    world.clock.at = START
    return world


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture(params=["index", "scan"])
def kind_of_check(request) -> str:
    return request.param


def iso(moment) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def settle(world: World, job_id: str = "job-1", ago: timedelta = HOUR, **changes) -> None:
    """Let a job have settled some time ago."""
    world.job(job_id, **{"outcome": "succeeded", "settled_at": iso(START - ago), **changes})


def check(world: World, source: str, *, gate=None, bookmark=None, pages=200) -> FindUntold:
    connection = world.store.connect(gate)
    jobs = Table(connection, JOBS, JOB_KEYS)
    notices = Table(connection, NOTICES, NOTICE_KEYS)
    sources = {
        "index": IndexSource(jobs, INDEX, catalogue()),
        "scan": ScanSource(jobs, bookmark or Bookmark(), pages),
        "off": None,
    }
    return FindUntold(sources[source], connection, notices, catalogue(), world.telemetry, world.clock)


def find(world: World, source: str, seconds_left=lambda: 600, **more) -> Found:
    return check(world, source, **more)(seconds_left)


def one_page_long(gate: Gate):
    """Return a time that runs out once a page has been dealt with."""
    return lambda: 0 if "BatchGetItem" in gate.calls else 600


def untold(world: World) -> list[float]:
    return world.telemetry.values["SettledUntold"]


def test_it_is_off_where_nothing_is_configured(world, gate):
    settle(world)
    found = find(world, "off", gate=gate)
    assert found == Found()
    assert gate.calls == []
    assert "SettledUntold" not in world.telemetry.metrics()


def test_a_settled_job_that_nobody_announced_is_found(world, kind_of_check):
    settle(world)
    found = find(world, kind_of_check)
    assert found.without_notice == ["job-1"]
    assert untold(world) == [1]
    (line,) = world.telemetry.said("settled but untold")
    assert (line.level, line.fields["job_ids"]) == ("error", ["job-1"])


def test_nothing_untold_is_counted_as_nought(world, kind_of_check):
    find(world, kind_of_check)
    assert untold(world) == [0]
    assert world.telemetry.said("settled but untold") == []


def test_a_job_whose_requester_was_told_is_not_untold(world, kind_of_check):
    settle(world)
    world.worker().told()
    found = find(world, kind_of_check)
    assert (found.settled, found.without_notice, found.failed_for_good) == (1, [], [])


def test_a_notice_on_its_way_is_not_untold(world, kind_of_check):
    settle(world)
    world.provider.script.append(THROTTLED)
    world.worker().told()
    find(world, kind_of_check)
    assert untold(world) == [0]


def test_a_notice_that_failed_for_good_is_untold(world, kind_of_check):
    settle(world)
    world.provider.script.append(REFUSED)
    world.worker().told()
    found = find(world, kind_of_check)
    assert (found.without_notice, found.failed_for_good) == ([], ["job-1"])
    assert untold(world) == [1]


def test_a_notice_given_up_is_untold(world, kind_of_check):
    settle(world)
    world.provider.script.append(THROTTLED)
    world.worker().told()
    worker = world.worker()
    worker.notices.close(world.the_notice(), "gave_up: throttled")
    find(world, kind_of_check)
    assert untold(world) == [1]


@pytest.mark.parametrize("reason", ["job_removed", "no_requester", "undeclared"])
def test_a_notice_closed_because_there_is_nobody_to_tell_is_not_untold(world, kind_of_check, reason):
    settle(world)
    world.provider.script.append(THROTTLED)
    world.worker().told()
    world.worker().notices.close(world.the_notice(), reason)
    find(world, kind_of_check)
    assert untold(world) == [0]


@pytest.mark.parametrize(
    "changes",
    [
        {"requester_id": None},
        {"removed_at": "2026-11-29T09:30:00Z"},
        {"kind": "no_such_kind"},
        {"outcome": "cancelled"},
        {"outcome": None},
        {"outcome": 5},
        {"outcome": ""},
        {"settled_at": "yesterday"},
    ],
    ids=str,
)
def test_a_job_that_nobody_is_told_of_is_not_untold(world, kind_of_check, changes):
    settle(world, **changes)
    assert find(world, kind_of_check).settled == 0


def test_a_job_without_a_settling_time_is_not_looked_at(world):
    settle(world, settled_at=None)
    assert find(world, "scan").settled == 0


@pytest.mark.parametrize("settled_at", [1764410400, True, ["x"]])
def test_a_settling_time_of_another_type_does_no_harm(world, settled_at):
    world.store.create(JOBS, JOB_KEYS)
    settle(world, settled_at=settled_at)
    assert find(world, "scan").settled == 0


@pytest.mark.parametrize("settled_at", ["2026-11-29T09:00:00", "2026-11-29T10:00:00+01:00", "2026-11-29T09:00:00.123Z"])
def test_other_forms_of_the_time_are_read(world, settled_at):
    settle(world, settled_at=settled_at)
    assert find(world, "scan").settled == 1


def test_a_job_that_settled_just_now_may_still_be_on_its_way(world, kind_of_check):
    settle(world, ago=GRACE - timedelta(seconds=1))
    assert find(world, kind_of_check).settled == 0
    settle(world, ago=GRACE + timedelta(seconds=1))
    assert find(world, kind_of_check).settled == 1


@pytest.mark.parametrize(("source", "lookback"), [("index", INDEX_LOOKBACK), ("scan", SCAN_LOOKBACK)])
def test_it_looks_back_so_far_and_no_further(world, source, lookback):
    settle(world, ago=lookback + timedelta(seconds=1))
    assert find(world, source).settled == 0
    settle(world, ago=lookback)
    assert find(world, source).settled == 1


def test_only_the_notice_of_the_jobs_own_outcome_counts(world, kind_of_check):
    settle(world, outcome="failed")
    world.worker().told(outcome="succeeded")
    find(world, kind_of_check)
    assert untold(world) == [1]


def test_many_jobs_are_looked_up_a_page_at_a_time(world, kind_of_check, gate):
    for number in range(230):
        settle(world, f"job-{number:03}")
    for number in range(0, 230, 2):
        world.worker().told(f"job-{number:03}")
    found = find(world, kind_of_check, gate=gate)
    assert found.settled == 230
    assert found.without_notice == [f"job-{number:03}" for number in range(1, 230, 2)]
    assert gate.calls.count("BatchGetItem") == 3
    assert [len(line.fields["job_ids"]) for line in world.telemetry.said("settled but untold")] == [100, 15]


def test_keys_that_are_left_unprocessed_are_not_taken_for_absent_notices(world, kind_of_check):
    for number in range(20):
        settle(world, f"job-{number}")
        world.worker().told(f"job-{number}")
    world.store.batch_get_serves = 7
    find(world, kind_of_check)
    assert untold(world) == [0]


@pytest.mark.parametrize("operation", ["Scan", "BatchGetItem"])
def test_a_read_that_fails_raises_after_reporting_what_was_found(world, gate, operation):
    for number in range(150):
        settle(world, f"job-{number:03}")
    gate.on_call = Lever(raising(refusal(operation, "ThrottlingException")), operation=operation, nth=2)
    with pytest.raises(DatabaseError):
        find(world, "scan", gate=gate)
    assert untold(world) == [100]


def test_the_index_is_asked_for_notifying_kinds_and_for_the_time_alone(world, gate):
    for number in range(300):
        settle(world, f"export-{number}", kind="no_such_kind")
        settle(world, f"old-{number}", ago=timedelta(days=30))
    settle(world)
    world.store.rows.clear()
    assert find(world, "index", gate=gate).settled == 1
    assert world.store.rows == {"Query": 1}


# -- the bounded, resumable scan ----------------------------------------------------------------------------------


def test_the_scan_reads_a_bounded_number_of_pages_and_goes_on_where_it_stopped(world):
    for number in range(450):
        settle(world, f"job-{number:03}")
    bookmark = Bookmark()

    found = [find(world, "scan", bookmark=bookmark, pages=2).settled for _ in range(4)]

    assert found == [200, 200, 50, 200]
    assert bookmark.saved[4] is None


def test_the_bookmark_moves_on_only_once_a_page_has_been_dealt_with(world, gate):
    for number in range(250):
        settle(world, f"job-{number:03}")
    bookmark = Bookmark()
    gate.on_call = Lever(raising(refusal("BatchGetItem", "ThrottlingException")), operation="BatchGetItem", nth=2)
    with pytest.raises(DatabaseError):
        find(world, "scan", bookmark=bookmark, gate=gate)
    assert bookmark.key == {"job_id": {"S": "job-099"}}

    assert find(world, "scan", bookmark=bookmark).settled == 150


def test_runs_that_have_time_for_one_page_alone_still_get_through_the_table(world):
    for number in range(350):
        settle(world, f"job-{number:03}")
    bookmark = Bookmark()
    seen: set[str] = set()
    for _ in range(8):
        gate = Gate()
        found = find(world, "scan", one_page_long(gate), bookmark=bookmark, gate=gate)
        seen.update(found.without_notice)
    assert len(seen) == 350


def test_it_stops_cleanly_when_time_runs_short_and_reports_what_it_found(world, kind_of_check, gate):
    for number in range(250):
        settle(world, f"job-{number:03}")
    found = find(world, kind_of_check, one_page_long(gate), gate=gate)
    assert found.stopped_early
    assert found.settled == 100
    assert untold(world) == [100]


def test_an_empty_table_is_read_to_its_end():
    world = World()
    world.store = Store()
    world.store.create(JOBS, JOB_KEYS)
    world.store.create(NOTICES, NOTICE_KEYS)
    bookmark = Bookmark({"job_id": {"S": "zzz"}})
    assert find(world, "scan", bookmark=bookmark) == Found()
    assert bookmark.saved == [None]


# -- the bookmark -------------------------------------------------------------------------------------------------


@pytest.fixture
def bookmark() -> StoredBookmark:
    store = Store()
    store.create("Bookmarks", BOOKMARK_KEYS)
    return StoredBookmark(Table(store.connect(), "Bookmarks", BOOKMARK_KEYS))


def test_before_the_first_scan_there_is_no_key(bookmark):
    assert bookmark.load() is None


def test_a_key_is_kept_and_forgotten_at_the_end_of_the_table(bookmark):
    key = {"job_id": {"S": "team/42: \u00fc"}}
    bookmark.save(key)
    assert bookmark.load() == key
    bookmark.save(None)
    assert bookmark.load() is None


def test_a_scan_with_its_stored_bookmark_goes_on_where_it_stopped(world, bookmark):
    for number in range(250):
        settle(world, f"job-{number:03}")
    assert [find(world, "scan", bookmark=bookmark, pages=1).settled for _ in range(4)] == [100, 100, 50, 100]
