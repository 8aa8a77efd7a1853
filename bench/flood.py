"""A flood of settled jobs against a slow SES, in simulated time: `make flood`.

What decides is the real code: `Pace` says when a worker may send, `Backoff` when a notice that failed is tried again,
`RetryDueNotices` what comes back and what is given up. Around them stand a queue, workers that take batches of ten,
a table that is a dictionary, and an SES that refuses what comes faster than its rate.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import random
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from notices.backoff import Backoff
from notices.codes import Code
from notices.pace import Pace
from notices.queues import JobSettledQueue, Retry
from notices.record import ABANDONED_AFTER, Notice, Notices, Status
from notices.retry import Due, RetryDueNotices
from scripts.template import load

JOBS = 100_000
START = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 10
CALL = 0.010  # one call to DynamoDB
SEND = 0.060  # one to SES
COMPUTING = 0.019  # a notice's part of its batch's, at 512 MB (docs/capacity.md)
MOVE = 0.005  # the retry's move of one notice
RETRY_EVERY = 60.0
SES_BURST_SECONDS = 1.0  # SES lets a second's worth through at once

Time = float  # simulated seconds


def at(seconds: Time) -> datetime:
    """Return the simulated moment."""
    return START + timedelta(seconds=seconds)


@dataclass(slots=True)
class State:
    """A notice, as far as the flood can change it."""

    status: Status | None = None  # None: no claim yet
    attempts: int = 0
    revision: int = 0
    created_at: Time = 0.0
    next_attempt_at: Time | None = None
    mails: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A flood: how fast SES takes mails, and the stack's settings."""

    title: str
    ses_rate: float
    setting: int  # SesSendRate
    workers: int  # MaximumConcurrency
    paced: bool = True
    part: int = 1  # a storm of refusals is many events: a part of the jobs shows it


@dataclass(slots=True)
class Flood:
    """One run."""

    scenario: Scenario
    jobs: int
    now: Time = 0.0
    notices: list[State] = field(default_factory=list)
    queue: deque[tuple[int, int | None, Time]] = field(default_factory=deque)  # job, retry's revision, when sent
    due: list[tuple[Time, int]] = field(default_factory=list)  # the index, as a heap; may hold stale rows
    oldest: Time = 0.0  # the greatest age of a message when it was received
    sends: int = 0
    throttled: int = 0
    no_turn: int = 0
    retried: int = 0
    claims: int = 0
    given_up: int = 0
    told: int = 0
    last_told: Time = 0.0
    ses_full_at: Time = 0.0
    backoff: Backoff = field(init=False)
    retry: RetryDueNotices = field(init=False)
    _order: Iterator[int] = field(default_factory=itertools.count)
    _events: list[tuple[Time, int, Any]] = field(default_factory=list)

    def run(self) -> Flood:
        """Let it happen, to the end."""
        self.notices = [State() for _ in range(self.jobs)]
        self.queue.extend((job, None, 0.0) for job in range(self.jobs))
        jitter = random.Random(1)  # noqa: S311 - the same flood every time
        self.backoff = Backoff(timedelta(seconds=600), jitter.random)
        self.retry = RetryDueNotices(
            due=cast("Due", self._due_rows),
            notices=cast("Notices", _Moves(self)),
            queue=cast("JobSettledQueue", _Queue(self)),
            horizon=timedelta(hours=72),
            telemetry=_Silent(),
            now=lambda: at(self.now),
        )
        for _ in range(self.scenario.workers):
            self._at(0.0, _Worker(self).receive)
        self._at(RETRY_EVERY, self._run_retry)
        while self._events and not self._done():
            self.now, _, do = heapq.heappop(self._events)
            do()
        return self

    def _done(self) -> bool:
        return self.told + self.given_up >= self.jobs

    def _at(self, when: Time, do: Any) -> None:
        heapq.heappush(self._events, (when, next(self._order), do))

    def _run_retry(self) -> None:
        begun = self.now
        run = self.retry(lambda: 50 - (self.now - begun))  # the function's time-out, in its own time
        self.given_up += run.given_up
        self.now = begun
        self._at(begun + RETRY_EVERY, self._run_retry)

    def _due_rows(self, status: Status) -> Iterator[dict[str, Any]]:
        while self.due and self.due[0][0] <= self.now:
            when, job = self.due[0]
            state = self.notices[job]
            if state.next_attempt_at != when:
                heapq.heappop(self.due)  # a stale row
                continue
            if state.status != status:
                return
            yield self.row(job)  # its move makes the row stale; a run that stops here has not lost it

    def row(self, job: int) -> dict[str, Any]:
        """Return a notice as the index has it."""
        state = self.notices[job]
        return {
            "job_id": {"S": str(job)},
            "outcome": {"S": "succeeded"},
            "status": {"S": (state.status or Status.PENDING).value},
            "created_at": {"S": at(state.created_at).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")},
            "revision": {"N": str(state.revision)},
        }

    def later(self, job: int, when: Time | None) -> None:
        """Set a notice's next attempt; every write adds one to its revision."""
        state = self.notices[job]
        state.revision += 1
        state.next_attempt_at = when
        if when is not None:
            heapq.heappush(self.due, (when, job))

    def ses_takes(self) -> bool:
        """SES's own rate, which it does not explain: a bucket of one second."""
        interval = 1 / self.scenario.ses_rate
        full_at = max(self.ses_full_at, self.now) + interval
        if full_at - self.now > SES_BURST_SECONDS + interval:
            return False
        self.ses_full_at = full_at
        return True


class _Worker:
    """One of the functions that run at once: a batch, its reads, then all records side by side."""

    def __init__(self, flood: Flood) -> None:
        self._flood = flood
        self._wait = 0.0
        share = flood.scenario.setting / flood.scenario.workers
        self._pace = Pace(share, clock=lambda: flood.now, sleep=self._sleep)
        self._left = 0

    def _sleep(self, seconds: float) -> None:
        self._wait = seconds

    def receive(self) -> None:
        """Take a batch, or look again soon."""
        flood = self._flood
        batch = [flood.queue.popleft() for _ in range(min(BATCH, len(flood.queue)))]
        if not batch:
            flood._at(flood.now + 1.0, self.receive)
            return
        self._left = len(batch)
        for place, (job, retry, sent_at) in enumerate(batch, 1):
            flood.oldest = max(flood.oldest, flood.now - sent_at)
            ready = flood.now + CALL + place * COMPUTING  # one after the other: there is one interpreter
            flood._at(ready, lambda job=job, retry=retry: self._claim(job, retry))

    def _claim(self, job: int, retry: int | None) -> None:
        flood, state = self._flood, self._flood.notices[job]
        if state.status is Status.DELIVERED or (retry is not None and retry != state.revision):
            self._finished()
            return
        if state.status is None:
            state.created_at = flood.now
        state.status = Status.PENDING
        state.attempts += 1
        flood.claims += 1
        flood.later(job, flood.now + CALL + ABANDONED_AFTER.total_seconds())
        self._wait = 0.0
        if flood.scenario.paced and not self._pace.take_turn():
            flood.no_turn += 1
            flood._at(flood.now + CALL, lambda: self._failed(job))
            return
        flood._at(flood.now + CALL + self._wait, lambda: self._send(job))

    def _send(self, job: int) -> None:
        flood = self._flood
        flood.sends += 1
        if flood.ses_takes():
            flood.notices[job].mails += 1
            flood._at(flood.now + SEND, lambda: self._delivered(job))
        else:
            flood.throttled += 1
            flood._at(flood.now + SEND, lambda: self._failed(job))

    def _delivered(self, job: int) -> None:
        flood = self._flood
        flood.notices[job].status = Status.DELIVERED
        flood.later(job, None)
        flood.told += 1
        flood.last_told = flood.now
        self._finished()

    def _failed(self, job: int) -> None:
        flood, state = self._flood, self._flood.notices[job]
        state.status, state.error = Status.FAILED, Code.THROTTLED
        when = flood.backoff.next_attempt_at(at(flood.now), state.attempts, Code.THROTTLED)
        flood.later(job, (when - START).total_seconds())
        self._finished()

    def _finished(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._flood._at(self._flood.now + CALL, self.receive)


class _Moves:
    """What the retry writes to the table."""

    def __init__(self, flood: Flood) -> None:
        self._flood = flood

    def move_on(self, notice: Notice) -> int | None:
        """See Notices."""
        flood = self._flood
        flood.now += MOVE
        flood.later(int(notice.job_id), flood.now + ABANDONED_AFTER.total_seconds())
        return flood.notices[int(notice.job_id)].revision

    def get(self, job_id: str, _outcome: str) -> Notice | None:
        """See Notices: asked for when a notice has passed its horizon."""
        return Notice.from_raw_data(self._flood.row(int(job_id)) | {"attempt_log": {"L": []}})

    def close(self, notice: Notice, error: str) -> bool:
        """See Notices."""
        state = self._flood.notices[int(notice.job_id)]
        state.status, state.error = Status.FAILED, error
        self._flood.later(int(notice.job_id), None)
        return True


class _Queue:
    """The queue, as the retry writes to it."""

    def __init__(self, flood: Flood) -> None:
        self._flood = flood

    def send(self, retries: list[Retry]) -> int:
        """See JobSettledQueue."""
        self._flood.retried += len(retries)
        self._flood.queue.extend((int(retry.job_id), retry.revision, self._flood.now) for retry in retries)
        return len(retries)


class _Silent:
    def info(self, message: str, **fields: Any) -> None:
        pass

    warning = error = info

    def count(self, metric: str, kind: str | None = None, value: float = 1) -> None:
        pass


def scenarios() -> list[Scenario]:
    """The settings that ship, and what larger ones or none would do."""
    parameters = load()["Parameters"]
    rate, workers = (int(parameters[name]["Default"]) for name in ("SesSendRate", "MaximumConcurrency"))
    return [
        Scenario(f"SES {rate}/s, as shipped", rate, rate, workers),
        Scenario(f"SES {rate}/s, without pacing", rate, rate, workers, paced=False, part=20),
        Scenario("SES 500/s, SesSendRate 500, 2 workers", 500, 500, 2),
        Scenario("SES 500/s, SesSendRate 500, 13 workers", 500, 500, 13),
        Scenario("SES 500/s, without pacing, 26 workers", 500, 500, 26, paced=False),
    ]


def report(flood: Flood) -> dict[str, Any]:
    """Return the figures of a run."""
    return {
        "scenario": flood.scenario.title,
        "jobs": flood.jobs,
        "minutes until the last is told": round(flood.last_told / 60, 1),
        "oldest message, minutes": round(flood.oldest / 60, 1),
        "sends": flood.sends,
        "throttled by SES": flood.throttled,
        "no turn": flood.no_turn,
        "retries": flood.retried,
        "claims for each notice": round(flood.claims / flood.jobs, 3),
        "most attempts of one": max(state.attempts for state in flood.notices),
        "given up": flood.given_up,
        "not told": sum(state.mails == 0 for state in flood.notices),
        "mailed twice": sum(state.mails > 1 for state in flood.notices),
    }


def main() -> int:
    """Run every scenario; fail when the shipped settings gave a notice up, left one untold, or mailed one twice."""
    parser = argparse.ArgumentParser(description="Simulate a flood of settled jobs.")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    reports = []
    for scenario in scenarios():
        figures = report(Flood(scenario, asked.jobs // scenario.part).run())
        reports.append(figures)
        for label, value in figures.items():
            print(f"{label:32}  {value}")
        print(flush=True)
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(reports, indent=2) + "\n")
    shipped = reports[0]
    return int(any(shipped[bad] for bad in ("given up", "not told", "mailed twice")))


if __name__ == "__main__":
    sys.exit(main())
