"""Settled jobs that nobody was told about (DESIGN 3.6, 3.7): the check for events that never arrived.

The jobs table belongs to the platform. Where it offers an index by kind and settling time, the check asks that index;
where it does not, it reads the table a few pages at a time and remembers where it stopped (docs/adr/0007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Protocol

from pynamodb.attributes import JSONAttribute, UnicodeAttribute
from pynamodb.expressions.condition import Condition
from pynamodb.models import Model

from notices.codes import NOBODY_TO_TELL, code_of
from notices.database import CALL_SECONDS, Connection, Item, Page, Table, batch_get, pages
from notices.jobs import ForeignAttribute, Job, JobItem, job_of
from notices.kinds import Catalogue
from notices.record import Clock, Notice, Status
from notices.telemetry import Telemetry, describe

GRACE = timedelta(minutes=30)  # a job that settled just now may still be on its way
INDEX_LOOKBACK = timedelta(hours=24)
SCAN_LOOKBACK = timedelta(days=7)  # a pass over a large table takes many runs
PAGE = 100  # as many notices as one BatchGetItem reads
SCAN_PAGES = 200  # in one run
LISTED = 100  # job ids in one log line

BOOKMARK_KEYS = ("name",)

STEP_SECONDS = 3 * CALL_SECONDS


class SettledJobItem(JobItem):
    """A job with what the platform records of its settling."""

    outcome = ForeignAttribute(null=True)
    settled_at = ForeignAttribute(null=True)


class _SettledIndex(Model):
    kind = UnicodeAttribute(hash_key=True)
    settled_at = UnicodeAttribute(range_key=True)


class _BookmarkItem(Model):
    name = UnicodeAttribute(hash_key=True)
    key = JSONAttribute(null=True)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Where the scan goes on at its next run: one item in a table of its own."""

    table: Table
    name: str = "jobs"

    def load(self) -> Item | None:
        """Return the key to start after, or None for the beginning."""
        item = self.table.get(_BookmarkItem, self.name)
        return item.key if item is not None else None

    def save(self, key: Item | None) -> None:
        """Keep the key; None: the table was read to its end."""
        self.table.put(_BookmarkItem(name=self.name, key=key))


@dataclass(frozen=True, slots=True)
class JobsPage:
    """A page of jobs; `done` is called once they have been looked at."""

    items: Sequence[Item]
    done: Callable[[], None] = lambda: None


class Source(Protocol):
    """Where settled jobs are found, a page at a time."""

    @property
    def lookback(self) -> timedelta:
        """How long ago a job may have settled to be looked at."""

    def pages(self, since: datetime, until: datetime) -> Iterator[JobsPage]:
        """Yield pages of jobs that may have settled in between; more is harmless."""


@dataclass(frozen=True, slots=True)
class IndexSource:
    """An index of the platform's with `kind` as its hash key and `settled_at` (ISO 8601, UTC) as its range key."""

    table: Table
    index: str
    kinds: Catalogue
    lookback: timedelta = INDEX_LOOKBACK

    def pages(self, since: datetime, until: datetime) -> Iterator[JobsPage]:
        """See Source: one query for each notifying kind."""
        for kind in self.kinds:
            condition = (_SettledIndex.kind == kind.name) & _SettledIndex.settled_at.between(
                _prefix(since), _prefix(until)
            )
            read = partial(self._page, condition)
            yield from (JobsPage(page.items) for page in pages(read))

    def _page(self, condition: Condition, start: Item | None) -> Page:
        return self.table.query(self.index, condition, start=start, limit=PAGE)


@dataclass(frozen=True, slots=True)
class ScanSource:
    """The table itself, a bounded number of pages in one run, going on where the last run stopped."""

    table: Table
    bookmark: Bookmark
    max_pages: int = SCAN_PAGES
    lookback: timedelta = SCAN_LOOKBACK

    def pages(self, since: datetime, until: datetime) -> Iterator[JobsPage]:  # noqa: ARG002 - the scan sees all
        """See Source. The bookmark moves on with each page that was looked at."""
        read = pages(lambda start: self.table.scan(start=start, limit=PAGE), self.bookmark.load())
        for page in islice(read, self.max_pages):
            yield JobsPage(page.items, done=partial(self.bookmark.save, page.next_key))


@dataclass(slots=True)
class Found:
    """What one run saw."""

    settled: int = 0
    without_notice: list[str] = field(default_factory=list)
    failed_for_good: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)  # the notice says something impossible
    stopped_early: bool = False

    @property
    def untold(self) -> int:
        """How many jobs nobody was told about, as far as the run could see."""
        return len(self.without_notice) + len(self.failed_for_good) + len(self.unreadable)


@dataclass(frozen=True, slots=True)
class FindUntold:
    """One run of the check."""

    source: Source | None  # None: nothing is configured, the check is off
    connection: Connection
    notices_table: Table
    kinds: Catalogue
    telemetry: Telemetry
    now: Clock

    def __call__(self, seconds_left: Callable[[], float]) -> Found:
        """Look for settled jobs with neither a handled notice nor one on its way; count and list them.

        Raises:
            DatabaseError: when a read fails; what was found before is reported.
        """
        found = Found()
        if self.source is None:
            self.telemetry.info("untold check is off")
            return found
        since, until = self.now() - self.source.lookback, self.now() - GRACE
        try:
            for page in self.source.pages(since, until):
                self._look(page.items, since, until, found)
                page.done()
                if seconds_left() < STEP_SECONDS:
                    found.stopped_early = True
                    break
        except Exception as error:
            self.telemetry.error("untold check stopped", fault=describe(error))
            if found.untold:  # else nought would read as "all is well" where nothing was seen
                self._report(found)
            raise
        self._report(found)
        return found

    def _look(self, page: Sequence[Item], since: datetime, until: datetime, found: Found) -> None:
        settled = dict(self._settled(page, since, until))
        found.settled += len(settled)
        notices = {
            (item["job_id"]["S"], item["outcome"]["S"]): item
            for _, item in batch_get(self.connection, {self.notices_table: list(settled)})
        }
        for key, job in settled.items():
            item = notices.get(key)
            if item is None:
                found.without_notice.append(job.job_id)
            else:
                self._look_at(item, job.job_id, found)

    def _look_at(self, item: Item, job_id: str, found: Found) -> None:
        try:
            ended = _ended_untold(Notice.from_raw_data(item))
        except (TypeError, ValueError):  # edited by hand: it must not hide its neighbours
            found.unreadable.append(job_id)
        else:
            if ended:
                found.failed_for_good.append(job_id)

    def _settled(self, page: Sequence[Item], since: datetime, until: datetime) -> Iterator[tuple[tuple[str, str], Job]]:
        """Yield the jobs of a page whose requester should have been told by now, by the key of their notice."""
        for raw in page:
            item = SettledJobItem.from_raw_data(raw)
            job, outcome, settled_at = job_of(item), item.outcome, _time(item.settled_at)
            kind = self.kinds.get(job.kind)
            if kind is None or not isinstance(outcome, str) or not kind.tells(outcome):
                continue
            if job.removed or job.requester_id is None or settled_at is None:
                continue
            if since <= settled_at <= until:
                yield (job.job_id, outcome), job

    def _report(self, found: Found) -> None:
        self.telemetry.count("SettledUntold", value=found.untold)
        for state, job_ids in (
            ("without a notice", found.without_notice),
            ("failed for good", found.failed_for_good),
            ("unreadable", found.unreadable),
        ):
            for first in range(0, len(job_ids), LISTED):
                self.telemetry.error("settled but untold", state=state, job_ids=job_ids[first : first + LISTED])
        self.telemetry.info(
            "untold check", settled=found.settled, untold=found.untold, stopped_early=found.stopped_early
        )


def _ended_untold(notice: Notice) -> bool:
    """Failed without a next attempt; but not closed because there is nobody to tell any more."""
    ended = notice.status == Status.FAILED and notice.next_attempt_at is None
    return ended and code_of(notice.error) not in NOBODY_TO_TELL


def _prefix(moment: datetime) -> str:
    """Return a moment so that it sorts among ISO 8601 times in UTC, whatever they have after the seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
