"""The questions that the tool asks of the tables, and what each reads.

A question by job is one Query. A question for what is still to be tried reads the `due` index, which holds nothing
else, and then the whole notices by their keys. Any other question can only be answered by reading the table: page by
page, no further than it is told to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pynamodb.attributes import UTCDateTimeAttribute

from notices.database import BATCH_GET_KEYS, Connection, Item, Page, Table, batch_get, pages
from notices.jobs import Job, Jobs, Requesters, job_of
from notices.record import Notice, Status
from notices.retry import INDEX
from notices.untold import SettledJobItem
from notices_cli.codes import RETRIED, code_of
from notices_cli.spoilt import SpoiltNotice, readable

PAGE = 500


@dataclass(frozen=True, slots=True)
class SettledJob:
    """A job, and how it ended where the platform records that."""

    job: Job
    outcome: str | None
    settled_at: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which notices are asked for. Empty means any."""

    statuses: frozenset[Status] = frozenset()
    codes: frozenset[str] = frozenset()
    kind: str | None = None
    newer_than: timedelta | None = None  # since their first claim
    older_than: timedelta | None = None
    waiting: bool = False  # only those with a next attempt

    def takes(self, notice: Notice, now: datetime) -> bool:
        """Whether a notice is one of them."""
        age = now - notice.created_at
        return (
            (not self.statuses or Status(notice.status) in self.statuses)
            and (not self.codes or code_of(notice.error) in self.codes)
            and (self.kind is None or notice.kind == self.kind)
            and (self.newer_than is None or age <= self.newer_than)
            and (self.older_than is None or age >= self.older_than)
            and (not self.waiting or notice.next_attempt_at is not None)
        )

    @property
    def by_index(self) -> tuple[Status, ...]:
        """The statuses under which the `due` index has all of them; empty when only the table has."""
        if not self.statuses and not self.waiting:
            return ()
        wanted = (self.statuses or set(Status)) & {Status.PENDING, Status.FAILED}
        if not self.waiting and self.statuses - {Status.PENDING, Status.FAILED}:
            return ()
        if Status.FAILED in wanted and not (self.waiting or (self.codes and self.codes <= RETRIED)):
            return ()
        return tuple(sorted(wanted))


@dataclass(frozen=True, slots=True)
class Found:
    """The notices asked for, newest first, and what was read for them."""

    notices: Sequence[Notice]
    read: int
    source: str  # `index` or `table`
    complete: bool  # whether all there is was read
    spoilt: Sequence[SpoiltNotice] = ()  # of what was read, what is no notice


class Questions:
    """Asks the three tables. Every question raises DatabaseError when a call fails, SpoiltNotice as it says."""

    def __init__(self, connection: Connection, *, notices: Table, jobs: Table, requesters: Table) -> None:
        self._connection = connection
        self.notices = notices
        self.jobs = Jobs(jobs)
        self._jobs_table = jobs
        self.requesters = Requesters(requesters)

    def of_job(self, job_id: str) -> list[Notice | SpoiltNotice]:
        """Return a job's notices, by outcome: one Query of its items."""
        read = pages(lambda start: self.notices.query(None, Notice.job_id == job_id, start=start))
        return [_either(item) for page in read for item in page.items]

    def notice(self, job_id: str, outcome: str) -> Notice | None:
        """Return one notice: one GetItem. Raises SpoiltNotice where it is none."""
        return self.notices.get(_Checked, job_id, outcome)

    def job(self, job_id: str) -> SettledJob | None:
        """Return a job with how it ended: one GetItem."""
        item = self._jobs_table.get(SettledJobItem, job_id)
        if item is None:
            return None
        return SettledJob(job_of(item), _text(item.outcome), _text(item.settled_at))

    def select(
        self,
        selection: Selection,
        now: datetime,
        *,
        most: int,
        progress: Callable[[int], None] = lambda _read: None,
    ) -> Found:
        """Return the notices of a selection, having read at most `most` items."""
        statuses = selection.by_index
        kept: list[Notice] = []
        spoilt: list[SpoiltNotice] = []
        read, complete = 0, True
        source = self._indexed(statuses) if statuses else self._scanned()
        for page, more in source:
            read += len(page)
            for notice in map(_either, page):
                if isinstance(notice, SpoiltNotice):
                    spoilt.append(notice)
                elif selection.takes(notice, now):
                    kept.append(notice)
            progress(read)
            if more and read >= most:
                complete = False
                break
        kept.sort(key=lambda notice: (notice.created_at, notice.job_id, notice.outcome), reverse=True)
        return Found(kept, read, "index" if statuses else "table", complete, spoilt)

    def longest_due(self) -> list[datetime]:
        """Return the earliest next attempt of each status that has one: two queries of one row."""
        found: list[datetime] = []
        for status in (Status.PENDING, Status.FAILED):
            page = self.notices.query(INDEX, Notice.status == status.value, limit=1)
            for row in page.items:
                # what is no time was spoilt: it says nothing of the retry
                with suppress(ValueError):
                    found.append(_DUE.deserialize(row["next_attempt_at"]["S"]))  # type: ignore[no-untyped-call]
        return found

    def _indexed(self, statuses: Iterable[Status]) -> Iterator[tuple[list[Item], bool]]:
        """Yield whole notices by way of the index, which projects only their keys and a few attributes."""
        left = list(statuses)
        while left:
            read = partial(self._rows, left.pop(0))
            for page in pages(read):
                keys = [(row["job_id"]["S"], row["outcome"]["S"]) for row in page.items]
                found = batch_get(self._connection, {self.notices: keys}) if keys else iter(())
                yield [item for _, item in found], page.next_key is not None or bool(left)

    def _rows(self, status: Status, start: Item | None) -> Page:
        return self.notices.query(INDEX, Notice.status == status.value, start=start, limit=BATCH_GET_KEYS)

    def _scanned(self) -> Iterator[tuple[Sequence[Item], bool]]:
        for page in pages(lambda start: self.notices.scan(start=start, limit=PAGE)):
            yield page.items, page.next_key is not None


class _Checked(Notice):
    """A notice, read with more care."""

    @classmethod
    def from_raw_data(cls, data: Item) -> Notice:  # type: ignore[override]
        """Return the notice. Raises SpoiltNotice."""
        return readable(data)


_DUE = UTCDateTimeAttribute()


def _either(item: Item) -> Notice | SpoiltNotice:
    try:
        return readable(item)
    except SpoiltNotice as spoilt:
        return spoilt


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
