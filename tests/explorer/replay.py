"""One schedule run from its beginning on a store that really changes: no tree, no merged states, no search.

Each process is a thread that waits at every call until the schedule says what becomes of it, so one alone runs at any
time.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from explorer.faults import Fault, Then, faults
from explorer.invariants import Invariant, Violated
from explorer.process import RECEIVE, Call, End, Process, program, tables, worker
from explorer.scenarios import Before, Bound, Scenario
from explorer.schedules import Search, State, Step
from fakes.gate import Gate, Killed
from fakes.mail import Provider
from fakes.queues import Message, Queues
from fakes.store import Store
from fakes.world import JOB_ID, NOTICES, OUTCOME, World

PATIENCE = 30  # seconds


class Left(NamedTuple):
    """What a schedule leaves: every call in order, the ends, the notice, the mails, the queue."""

    calls: tuple[str, ...]
    ends: tuple[tuple[str, End | None], ...]
    notice: dict[str, Any] | None
    mails: tuple[str, ...]
    queued: tuple[str, ...]


def drawn(scenario: Scenario, bound: Bound, seed: int) -> tuple[list[Step], State, Search]:
    """Return a schedule drawn by lot, where the search says that it leads, and the search."""
    search = scenario.search()
    state, steps, lot = scenario.start(search, bound), [], random.Random(seed)
    while following := list(search.successors(state)):
        # as often a fault as none: there are many more faults than answers
        plain = [each for each in following if each[0].fault is None]
        step, state = lot.choice(plain if plain and lot.random() < 0.7 else following)
        steps.append(step)
    return steps, state, search


def check_same(scenario: Scenario, bound: Bound, seed: int) -> None:
    """Run one schedule twice from its beginning, and compare with what the search says of it. Raises Violated."""
    steps, state, search = drawn(scenario, bound, seed)
    once, again = (Replay(scenario).run(steps) for _ in range(2))
    said = (search.notice(state), tuple(reference for reference, _ in state.shared.accepted), state.shared.queued)
    if once != again:
        raise Violated(Invariant.SAME_SCHEDULE_SAME_RUN, _difference(once, again), steps)
    if once[2:] != said:
        raise Violated(Invariant.SAME_SCHEDULE_SAME_RUN, f"the search says {said}, the run {once[2:]}", steps)


def _difference(once: Left, again: Left) -> str:
    return "; ".join(f"{a} against {b}" for a, b in zip(once, again, strict=True) if a != b)


class Replay:
    """A world for one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._store: Store = tables()
        world = World()
        for name in ("Jobs", "Requesters"):
            for item in world.store.items(name):
                self._store.place(name, item)
        self._queues, self._provider = Queues(), Provider()
        self._calls: list[str] = []
        self._late: list[tuple[str, Callable[[], object]]] = []
        for before in scenario.before:
            self._before(before)
        self._live = {process.name: self._thread(process) for process in scenario.processes}

    def run(self, steps: Sequence[Step]) -> Left:
        """Run a schedule."""
        for step in steps:
            if step.late:
                place = next(n for n, (name, _) in enumerate(self._late) if name == step.who)
                _ignoring(self._late.pop(place)[1])
                continue
            self._live[step.who].go(step)
        for thread in self._live.values():
            thread.give_up()
        return Left(
            tuple(self._calls),
            tuple((name, thread.end) for name, thread in self._live.items()),
            self._store.item(NOTICES, JOB_ID, OUTCOME),
            tuple(accepted.reference for accepted in self._provider.accepted),
            tuple(message.body for message in self._queues.sent),
        )

    def _thread(self, process: Process) -> _Live:
        return _Live(process, self._store, self._queues, self._provider, self._calls, self._late)

    def _before(self, before: Before) -> None:
        thread, left = self._thread(before.process), before.spoiled
        while thread.asked is not None:
            fault = None
            if left and left[0] == thread.asked.operation:
                fault = next(each for each in faults(thread.asked) if each.name == left[1])
                left = None
            thread.go(Step(before.process.name, thread.asked.operation, fault))


class _Abandoned(BaseException):
    """The schedule is over, and this process was still waiting."""


class _Live(Gate):
    """A process in a thread, which moves only by `go`."""

    def __init__(
        self,
        process: Process,
        store: Store,
        queues: Queues,
        provider: Provider,
        calls: list[str],
        late: list[tuple[str, Callable[[], object]]],
    ) -> None:
        super().__init__()
        self.asked: Call | None = None
        self.end: End | None = None
        self._process, self._log, self._late, self._queues = process, calls, late, queues
        self._told: SimpleQueue[Step | None] = SimpleQueue()
        self._arrived: SimpleQueue[None] = SimpleQueue()
        made = worker(process, self, store, queues, provider)
        self._thread = threading.Thread(
            target=self._work, args=(lambda: program(process, made, self._receive),), daemon=True
        )
        self._thread.start()
        self._arrived.get(timeout=PATIENCE)

    def go(self, step: Step) -> None:
        """Make the call that the process stands before, as the schedule has it, and wait for its next."""
        assert self.asked is not None, f"{step}: it has ended"
        assert self.asked.operation == step.call, f"{step}: it stands before {self.asked.operation}"
        self._told.put(step)
        self._arrived.get(timeout=PATIENCE)

    def give_up(self) -> None:
        """End a process that nobody will move any more."""
        self._told.put(None)
        self._thread.join(PATIENCE)

    def _work(self, run: Callable[[], End]) -> None:
        with suppress(_Abandoned, Killed):
            self.end = run()
        self.asked = None
        self._arrived.put(None)

    def _receive(self, operation: str) -> str:
        def take() -> str:
            if operation == RECEIVE:
                message: Message = self._queues.sent.pop(0)
                assert message.body == self._step.body
            return self._step.body

        body: str = self.pass_once(operation, {}, take)
        return body

    def pass_once(self, operation: str, kwargs: Mapping[str, Any], call: Callable[[], Any]) -> Any:
        while True:
            if self.dead:
                raise Killed
            self.asked = Call(operation, kwargs)
            self._arrived.put(None)
            step = self._told.get(timeout=PATIENCE)
            if step is None:
                self.dead = True
                raise _Abandoned
            self._step = step
            self._log.append(f"{self._process.name} {self.asked.key}")
            if step.fault is None:
                return call()
            if step.fault.later:
                self._late.append((self._process.name, call))
            if step.fault.effect:
                _ignoring(call)
            if step.fault.then is not Then.CALLS_AGAIN:
                return self._after(step.fault, self.asked)

    pass_through = pass_once

    def _after(self, fault: Fault, asked: Call) -> Any:
        if fault.then is Then.DIES:
            self.dead = True
            raise Killed
        assert fault.reply is not None
        return fault.reply.give(asked)


def _ignoring(call: Callable[[], object]) -> None:
    """Make a call whose answer nobody gets."""
    with suppress(Exception):  # a refusal too is an answer
        call()
