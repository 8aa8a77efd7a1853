"""Bring the due notices back, and give up those past the horizon (DESIGN 3.6).

A row of the `due` index is only a hint: the index lags behind its table. The move's condition on the revision, and
then the claim, decide. The move comes before the event: a run that dies in between, or a send that fails, only delays
the notice by 15 minutes, and of two overlapping runs one wins each notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from notices.codes import ENDINGS, Code, code_of
from notices.database import CALL_SECONDS, Table, pages
from notices.database import Item as RawItem
from notices.queues import BATCH, JobSettledQueue, QueueError, Retry
from notices.queues import CALL_SECONDS as QUEUE_CALL_SECONDS
from notices.record import Attempt, Clock, Notice, Notices, Status
from notices.telemetry import Telemetry, describe

INDEX = "due"
PAGE = 100

# Between two looks at the clock: a page, a notice that is read and closed or moved, and a full batch.
STEP_SECONDS = 3 * CALL_SECONDS + QUEUE_CALL_SECONDS


@dataclass(frozen=True, slots=True)
class Due:
    """The notices whose time has come, as the index shows them."""

    table: Table
    now: Clock
    page: int = PAGE

    def __call__(self, status: Status) -> Iterator[RawItem]:
        """Yield the due notices of one status as the index projects them, longest due first, page by page to the end.

        A page may be empty and not the last.

        Raises:
            DatabaseError: when a page cannot be read.
        """
        condition = (Notice.status == status.value) & (Notice.next_attempt_at <= self.now())
        for page in pages(lambda start: self.table.query(INDEX, condition, start=start, limit=self.page)):
            yield from page.items


@dataclass(slots=True)
class Run:
    """What one run did."""

    enqueued: int = 0
    overtaken: int = 0  # another run, a claim or a result was faster
    given_up: int = 0
    not_queued: int = 0  # moved on, but the queue did not take the event
    in_error: int = 0  # due at the next run again
    stopped_early: bool = False
    index_unread: bool = False
    oldest: datetime | None = None  # created_at of the oldest unsettled notice seen
    waiting: list[Retry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RetryDueNotices:
    """One run of the schedule."""

    due: Due
    notices: Notices
    queue: JobSettledQueue
    horizon: timedelta
    telemetry: Telemetry
    now: Clock

    def __call__(self, seconds_left: Callable[[], float]) -> Run:
        """Bring back every due notice, and stop between two of them when the time runs short.

        Raises:
            DatabaseError: when the index cannot be read; what was moved is queued and reported before.
        """
        run = Run()
        try:
            for status in (Status.PENDING, Status.FAILED):
                for row in self.due(status):
                    if seconds_left() < STEP_SECONDS:
                        run.stopped_early = True
                        return run
                    self._try(row, run)
            return run
        except Exception:
            run.index_unread = True
            raise
        finally:
            self._send(run)
            self._report(run)

    def _try(self, row: RawItem, run: Run) -> None:
        try:
            self._take(Notice.from_raw_data(row), run)
        except Exception as error:  # noqa: BLE001 - one notice that cannot be moved must not keep the others waiting
            run.in_error += 1
            self.telemetry.error("notice not moved", job_id=row.get("job_id", {}).get("S"), fault=describe(error))

    def _take(self, notice: Notice, run: Run) -> None:
        run.oldest = min(run.oldest or notice.created_at, notice.created_at)
        if self.now() - notice.created_at >= self.horizon and self._give_up(notice, run):
            return
        revision = self.notices.move_on(notice)
        if revision is None:
            run.overtaken += 1
            return
        run.waiting.append(Retry(notice.job_id, notice.outcome, revision))
        if len(run.waiting) == BATCH:
            self._send(run)

    def _give_up(self, row: Notice, run: Run) -> bool:
        """Give the notice up, unless it was brought back within the horizon; return whether it is done with."""
        # read whole: the index projects too little, and this happens once in a notice's life
        notice = self.notices.get(row.job_id, row.outcome)
        if notice is None or notice.revision != row.revision:
            run.overtaken += 1
            return True
        if self.now() - tried_since(notice) < self.horizon:
            return False
        last = notice.error or "abandoned"
        if not self.notices.close(notice, f"{Code.GAVE_UP}: {last}"):
            run.overtaken += 1
            return True
        run.given_up += 1
        self.telemetry.count("NoticeGivenUp", notice.kind)
        self.telemetry.error(
            "notice given up",
            job_id=notice.job_id,
            outcome=notice.outcome,
            kind=notice.kind,
            error=last,
            attempts=notice.attempts,
        )
        return True

    def _send(self, run: Run) -> None:
        retries, run.waiting = run.waiting, []
        if not retries:
            return
        try:
            sent = self.queue.send(retries)
        except QueueError as error:
            sent = 0
            self.telemetry.error("retries not queued", error=str(error))
        run.enqueued += sent
        run.not_queued += len(retries) - sent

    def _report(self, run: Run) -> None:
        oldest = max(0.0, (self.now() - run.oldest).total_seconds()) if run.oldest else 0.0
        if run.oldest or not run.index_unread:  # an age of nought says that all is well, which nobody has seen
            self.telemetry.count("OldestUnsettledSeconds", value=oldest)
        if run.enqueued:
            self.telemetry.count("RetryEnqueued", value=run.enqueued)
        self.telemetry.info(
            "retry run",
            enqueued=run.enqueued,
            overtaken=run.overtaken,
            given_up=run.given_up,
            not_queued=run.not_queued,
            in_error=run.in_error,
            stopped_early=run.stopped_early,
            oldest_unsettled_seconds=oldest,
        )


def tried_since(notice: Notice) -> datetime:
    """Return when the present run of attempts began: at the first claim, or anew after the notice had ended."""
    log = notice.attempt_log
    ended = max((number for number, entry in enumerate(log) if _is_ending(entry)), default=None)
    if ended is None:
        return notice.created_at
    if ended + 1 < len(log):
        return log[ended + 1].recorded_at
    return max(notice.claimed_at, log[ended].recorded_at)


def _is_ending(entry: Attempt) -> bool:
    return code_of(entry.error) in ENDINGS
