"""What a batch needs to know of its jobs, notices and requesters, read together (DESIGN 3.5).

Jobs and notices come in one request, so an event of a handled notice costs that one call. The requesters come in a
second one, which runs beside the claims. Where a joint read fails, each record reads for itself: one record's trouble
must not become its neighbours'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Protocol

from notices.database import CALL_SECONDS, Connection, Key, Table, batch_get
from notices.jobs import Job, JobItem, Jobs, Requester, RequesterItem, Requesters, job_of, requester_of
from notices.record import NOT_READ, Notice, NotRead, Status
from notices.telemetry import Telemetry, describe

NoticeKey = tuple[str, str]  # job_id, outcome


class FindJob(Protocol):
    """Looks a job up."""

    def get(self, job_id: str) -> Job | None:
        """Return the job, or None if there is none. Raises DatabaseError when the look-up fails."""


class FindRequester(Protocol):
    """Looks a requester up."""

    def get(self, requester_id: str) -> Requester | None:
        """Return the requester, or None if there is none. Raises DatabaseError when the look-up fails."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """The look-ups of one batch."""

    jobs: FindJob
    requesters: FindRequester
    seen: Callable[[str, str], Notice | NotRead | None]


@dataclass(frozen=True, slots=True)
class Known:
    """Jobs that were read before."""

    jobs: Mapping[str, Job]

    def get(self, job_id: str) -> Job | None:
        """See FindJob; this one does not fail."""
        return self.jobs.get(job_id)


@dataclass(frozen=True, slots=True)
class OnTheirWay:
    """Requesters that are being read.

    `patience` is how long a record waits for them, in seconds: no longer than a call of its own may take, or the worst
    case of a record would not hold.
    """

    found: Future[Mapping[str, Requester]]
    alone: FindRequester
    patience: float = CALL_SECONDS

    def get(self, requester_id: str) -> Requester | None:
        """See FindRequester: wait for the joint read, and read alone where that failed or takes too long."""
        try:
            found = self.found.result(self.patience)
        except Exception:  # noqa: BLE001 - also an item that cannot be read: it fails for its own record alone
            return self.alone.get(requester_id)
        return found.get(requester_id)


@dataclass(frozen=True, slots=True)
class ReadTogether:
    """Reads for a batch."""

    connection: Connection
    jobs: Table
    requesters: Table
    notices: Table
    telemetry: Telemetry

    def __call__(self, keys: Sequence[NoticeKey], pool: Executor) -> Lookups:
        """Return the look-ups for the notices with these keys; `pool` reads the requesters."""
        alone = Lookups(Jobs(self.jobs), Requesters(self.requesters), lambda *_: NOT_READ)
        if not keys:
            return alone
        try:
            jobs, notices = self._jobs_and_notices(keys)
            wanted = _requesters_wanted(keys, jobs, notices)
        except Exception as error:  # noqa: BLE001 - also an item that cannot be read: it fails for its own record alone
            self.telemetry.warning("not read together", fault=describe(error))
            return alone
        return Lookups(
            Known(jobs),
            OnTheirWay(pool.submit(self._requesters, sorted(wanted)), alone.requesters) if wanted else alone.requesters,
            lambda job_id, outcome: notices.get((job_id, outcome)),
        )

    def _jobs_and_notices(self, keys: Sequence[NoticeKey]) -> tuple[dict[str, Job], dict[NoticeKey, Notice]]:
        jobs: dict[str, Job] = {}
        notices: dict[NoticeKey, Notice] = {}
        job_keys = sorted({(job_id,) for job_id, _ in keys})
        wanted: dict[Table, Sequence[Key]] = {self.jobs: job_keys, self.notices: sorted(set(keys))}
        for name, item in batch_get(self.connection, wanted):
            if name == self.notices.name:
                notice = Notice.from_raw_data(item)
                notices[notice.job_id, notice.outcome] = notice
            else:
                job = job_of(JobItem.from_raw_data(item))
                jobs[job.job_id] = job
        return jobs, notices

    def _requesters(self, ids: Sequence[str]) -> Mapping[str, Requester]:
        found = batch_get(self.connection, {self.requesters: [(requester_id,) for requester_id in ids]})
        requesters = (requester_of(RequesterItem.from_raw_data(item)) for _, item in found)
        return {requester.requester_id: requester for requester in requesters}


def _requesters_wanted(
    keys: Sequence[NoticeKey], jobs: Mapping[str, Job], notices: Mapping[NoticeKey, Notice]
) -> set[str]:
    return {
        job.requester_id
        for job_id, outcome in keys
        if (job := jobs.get(job_id)) and not job.removed and job.requester_id
        if not _handled(notices.get((job_id, outcome)))
    }


def _handled(notice: Notice | None) -> bool:
    return notice is not None and Status(notice.status).handled
