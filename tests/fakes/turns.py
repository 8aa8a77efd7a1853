"""Workers that take turns: each makes its next external call only when the schedule names it.

    turns = Turns("ABAB")
    turns.run(A=first_worker, B=second_worker)

Each worker is a thread, but one alone runs at any time, so a schedule gives the same run every time. A worker's gate
has to be the one that `gate` returns. When the schedule is used up, or names a worker that has finished, the first
unfinished worker goes on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fakes.gate import Gate, Killed

PATIENCE = 20  # seconds that a worker may take between two calls before the test fails


class Turns:
    """Runs workers by a schedule of names, one letter each."""

    def __init__(self, schedule: Iterable[str]) -> None:
        self.trace: list[tuple[str, str]] = []  # who made which call, in order
        self._schedule = deque(schedule)
        self._gates: dict[str, Gate] = {}
        self._unfinished: list[str] = []
        self._results: dict[str, Any] = {}
        self._waiting: set[str] = set()
        self._running: str | None = None
        self._started = False
        self._changed = threading.Condition()

    def gate(self, name: str) -> Gate:
        """Return the gate of a worker; its own `on_call` is taken, `after_call` is free."""
        gate = Gate(on_call=lambda operation, kwargs: self._wait(name, operation))
        self._gates[name] = gate
        return gate

    def run(self, **workers: Callable[[], Any]) -> Mapping[str, Any]:
        """Run the workers to their ends; return what each returned, raised, or Killed."""
        self._unfinished = list(workers)
        threads = [threading.Thread(target=self._work, args=each, daemon=True) for each in workers.items()]
        for name, thread in zip(workers, threads, strict=True):  # each to its first call, where it waits
            thread.start()
            self._until(lambda name=name: name in self._waiting or name not in self._unfinished)  # type: ignore[misc]
        with self._changed:
            self._started = True
            self._next()
        for thread in threads:
            thread.join(PATIENCE)
            if thread.is_alive():
                raise AssertionError(f"a worker does not come to an end: {self.trace}")
        return self._results

    def _work(self, name: str, worker: Callable[[], Any]) -> None:
        try:
            result: Any = worker()
        except (Exception, Killed) as error:  # noqa: BLE001 - handed to the test
            result = error
        with self._changed:
            self._results[name] = result
            self._unfinished.remove(name)
            self._next()

    def _wait(self, name: str, operation: str) -> None:
        """Give way until it is this worker's turn to call."""
        with self._changed:
            self._waiting.add(name)
            self._next()
        self._until(lambda: self._running == name)
        self._waiting.discard(name)
        self.trace.append((name, operation))

    def _until(self, reached: Callable[[], bool]) -> None:
        with self._changed:
            if not self._changed.wait_for(reached, PATIENCE):
                raise AssertionError(f"nobody moves: {self.trace}")

    def _next(self) -> None:
        self._running = None
        while self._started and self._schedule and self._running is None:
            name = self._schedule.popleft()
            if name in self._unfinished:
                self._running = name
        if self._started and self._running is None and self._unfinished:
            self._running = self._unfinished[0]
        self._changed.notify_all()
