"""A process: the real code, as a function from the answers that it got so far to the next call that it makes.

The code runs up to the first call that has no answer yet and stands there. The answers make a tree. The first answer
that is tried at a node goes to the process that stands there; for each other one the code is run again from its
beginning, through the answers before.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, NoReturn

from greenlet import GreenletExit, greenlet

from fakes.clock import START, Clock
from fakes.gate import Gate
from fakes.mail import Provider
from fakes.queues import Queues
from fakes.store import Store, read_timeout, refusal
from fakes.world import JOB_KEYS, JOBS, NOTICE_KEYS, NOTICES, REQUESTER_KEYS, REQUESTERS, Inline, Worker, World
from notices.backoff import Backoff
from notices.event import Unprocessable
from notices.event import parse as parse_event
from notices.feedback import parse as parse_feedback

TICK = timedelta(microseconds=1)
RECEIVE, RECEIVE_FEEDBACK = "ReceiveMessage", "ReceiveFeedback"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment of a process says."""

    production: bool = True
    lease: timedelta = timedelta(0)
    horizon: timedelta = timedelta(hours=72)


@dataclass(frozen=True, slots=True)
class Process:
    """Who runs.

    `kind` is one of `sender` (with a batch of one), `lone sender` (which reads for itself, as one does when the joint
    read fails), `retry`, `feedback`, and `queue` (a sender that receives its message in the schedule).

    `after` is how long after the start its own clock begins; clocks differ, as they do.
    """

    name: str
    kind: str
    body: str = ""
    after: timedelta = timedelta(0)
    settings: Settings = Settings()


@dataclass(frozen=True, eq=False)
class Call:
    """A call that a process is about to make; equal where it says the same."""

    operation: str
    kwargs: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """What the call says, for comparing."""
        return f"{self.operation} {json.dumps(self.kwargs, sort_keys=True, default=str)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Reply:
    """An answer to a call: a value, or the code of an error (with the item that refused a condition)."""

    value: Any = None
    error: str | None = None
    item: Any = None

    @cached_property
    def key(self) -> str:
        """What the answer says, for comparing."""
        return f"{self.error} {json.dumps([self.value, self.item], sort_keys=True, default=str)}"

    def give(self, call: Call) -> Any:
        """Return or raise it as the code meets it."""
        if self.error is None:
            return dict(self.value) if isinstance(self.value, dict) else self.value
        if self.error == TIMED_OUT:
            raise read_timeout()
        raise refusal(call.operation, self.error, "", self.item, call.kwargs.get("TableName"))


TIMED_OUT = "time-out"


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended: whether its message is done with, and what it says of its work."""

    acknowledged: bool
    result: str
    error: str = ""  # of a notice that failed
    recorded: bool = True  # false: the outcome could not be written


DIED = End(False, "died")


class Node:
    """A process after the answers it got: the call it makes next, or its end."""

    __slots__ = ("_next", "_runner", "_standing", "body", "call", "end", "process", "replies")

    def __init__(self, runner: Runner, replies: tuple[Reply, ...], standing: greenlet, reached: Call | End) -> None:
        self.process = runner.process
        self.replies = replies
        self.call = reached if isinstance(reached, Call) else None
        self.end = reached if isinstance(reached, End) else None
        self.body = runner.process.body  # the message that it works on, to come back if it dies
        if not self.body and runner.process.kind in ("queue", "feedback") and replies:
            self.body = replies[0].value
        self._runner = runner
        self._standing: greenlet | None = standing
        self._next: dict[str, Node] = {}

    def after(self, reply: Reply) -> Node:
        """Return the process with one answer more."""
        node = self._next.get(reply.key)
        if node is None:
            replies = (*self.replies, reply)
            standing, self._standing = self._standing, None
            if standing is None:
                node = self._runner.run(replies)
            else:
                node = Node(self._runner, replies, standing, standing.switch(reply))
            self._next[reply.key] = node
        return node


class _Surroundings(World):
    """The world as one process sees it: tables and queues are shared and there, all else is its own."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Put nothing there."""


def tables() -> Store:
    """Return the tables, empty."""
    store = Store()
    store.create(JOBS, JOB_KEYS)
    store.create(REQUESTERS, REQUESTER_KEYS)
    projected = {"due": ("created_at", "revision")}
    store.create(NOTICES, NOTICE_KEYS, projected=projected, due=("status", "next_attempt_at"))
    return store


def worker(process: Process, gate: Gate, store: Store, queues: Queues, provider: Provider) -> Worker:
    """Return the real code of a process: with clock, ids and jitter of its own, and the rest shared."""
    numbers = itertools.count(1)
    surroundings = _Surroundings(
        production=process.settings.production,
        lease=process.settings.lease,
        horizon=process.settings.horizon,
        clock=Clock(START + process.after, tick=TICK),
        claim_ids=lambda: f"claim-{process.name}{next(numbers)}",
        store=store,
        queues=queues,
        provider=provider,
    )
    made = Worker(surroundings, gate)
    made.tell = replace(made.tell, backoff=Backoff(timedelta(seconds=600), lambda: 0.5))
    return made


def program(process: Process, made: Worker, receive: Callable[[str], str]) -> End:
    """Run a process to its end."""
    try:
        match process.kind:
            case "sender":
                return _told(made, process.body)
            case "lone sender":
                return _told(made, process.body, together=False)
            case "queue":
                return _told(made, receive(RECEIVE))
            case "feedback":
                return End(True, made.feedback(parse_feedback(process.body or receive(RECEIVE_FEEDBACK))))
            case "retry":
                made.run_retry()
                return End(True, "run")
    except Unprocessable as parked:
        return End(True, f"parked: {parked.reason}")
    except Exception as error:  # noqa: BLE001 - as the batch does: the message goes back to the queue
        return End(False, type(error).__name__)
    raise AssertionError(process.kind)


def _told(made: Worker, body: str, *, together: bool = True) -> End:
    event, tell = parse_event(body), made.tell
    if together:
        tell = tell.with_lookups(made.receive.read_together([(event.job_id, event.outcome)], Inline()))
    told = tell(event)
    return End(True, told.result, told.error or "", told.recorded != "not_recorded")


class Runner:
    """Runs one process as often as it takes, each time from its beginning."""

    def __init__(self, process: Process, on_run: Callable[[], None] = lambda: None) -> None:
        self.process = process
        self._on_run = on_run
        self.first = self.run(())

    def run(self, replies: tuple[Reply, ...]) -> Node:
        """Return the process after these answers."""
        self._on_run()
        running = greenlet(self._program)
        reached = running.switch()
        for reply in replies:
            reached = running.switch(reply)
        return Node(self, replies, running, reached)

    def _program(self) -> End:
        gate = _Handing()
        made = worker(self.process, gate, _NOWHERE, Queues(), Provider())
        return program(self.process, made, gate.receive)


class _Handing(Gate):
    """A gate that hands each call to whoever runs the process, and goes on with the answer that it gets."""

    def pass_once(self, operation: str, kwargs: Mapping[str, Any], call: Callable[[], Any]) -> Any:
        if self.dead:
            raise GreenletExit
        asked = Call(operation, kwargs)
        try:
            reply: Reply = greenlet.getcurrent().parent.switch(asked)
        except GreenletExit:
            self.dead = True  # nobody will ever answer it: it ends here, and makes no call on its way out
            raise
        return reply.give(asked)

    pass_through = pass_once

    def receive(self, operation: str) -> str:
        """Receive a message."""
        body: str = self.pass_once(operation, {}, _never)
        return body


def _never() -> NoReturn:
    raise AssertionError("every call is answered from outside")


_NOWHERE = tables()
