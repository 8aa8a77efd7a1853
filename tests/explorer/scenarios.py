"""Who meets whom: the processes of each search, and what happened before them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from explorer.faults import faults
from explorer.process import Process, Settings
from explorer.repair import Repair
from explorer.schedules import Report, Search, State, Why
from explorer.shared import Shared
from fakes.world import JOB_ID, OUTCOME

EVENT = json.dumps({"type": "job.settled", "version": "1", "job_id": JOB_ID, "outcome": OUTCOME})
PRODUCTION = Settings()
LEASE = Settings(lease=timedelta(seconds=900))
STAGING = Settings(production=False)
DUE = timedelta(minutes=16)  # when what came to nothing at the start is due


@dataclass(frozen=True, slots=True)
class Before:
    """A process that ran before: `spoiled` names the fault of one of its operations."""

    process: Process
    spoiled: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """How much may go wrong in one schedule, and how often it may turn from a process that could go on to another."""

    faults: int
    switches: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One search: who runs at the same time, within which bounds, and after what."""

    title: str
    processes: tuple[Process, ...]
    bound: Bound
    deep: Bound  # of the deeper run
    before: tuple[Before, ...] = ()
    settings: Settings = PRODUCTION  # of what repairs
    allowed: frozenset[Why] = frozenset(Why)

    @property
    def name(self) -> str:
        """A name for a test."""
        return self.title.replace(",", "").replace(" ", "-")

    def search(self) -> Search:
        """Return a search for it."""
        everybody = (*self.processes, *(before.process for before in self.before))
        return Search(allowed=self.allowed, settings=[self.settings, *(each.settings for each in everybody)])

    def start(self, search: Search, bound: Bound) -> State:
        """Return the state in which it begins."""
        state = State(Shared(), (), faults_left=1)
        for before in self.before:
            state = _ran(search, state, before)
        nodes = tuple(search.start(process) for process in self.processes)
        return state._replace(nodes=nodes, faults_left=bound.faults, switches_left=bound.switches)

    def repair(self, search: Search) -> Repair:
        """Return what repairs after it."""
        return Repair(search, self.settings, max(process.after for process in self.processes))

    def explore(self, bound: Bound | None = None) -> Report:
        """Visit every schedule within the bound; raises Violated at the first thing that does not hold."""
        search = self.search()
        repair = self.repair(search)
        search.report.schedules = search.explore(self.start(search, bound or self.bound), repair)
        return search.report


def _ran(search: Search, state: State, before: Before) -> State:
    """Run what came before: with its one fault, or without."""
    state = state._replace(nodes=(search.start(before.process),), faults_left=1)
    while (node := state.nodes[0]) is not None:
        assert node.call is not None
        if before.spoiled and before.spoiled[0] == node.call.operation and state.faults_left:
            fault = next(each for each in faults(node.call) if each.name == before.spoiled[1])
            _, state = search.spoiled(state, 0, fault)
        else:
            _, state = search.answered(state, 0)
    return state


def sender(name: str, after: timedelta = timedelta(0), settings: Settings = PRODUCTION) -> Process:
    """A sender with the job's own event."""
    return Process(name, "sender", EVENT, after, settings)


def _lone(name: str, after: timedelta = timedelta(0)) -> Process:
    return Process(name, "lone sender", EVENT, after)


def _retry(settings: Settings = PRODUCTION) -> tuple[Process, Process]:
    """The retry, and the sender that its event comes to."""
    return Process("T", "retry", "", DUE, settings), Process("Q", "queue", "", DUE + timedelta(seconds=1), settings)


THROTTLED = Before(sender("P"), ("SendEmail", "it is throttled"))
DIED_AFTER_SENDING = Before(sender("P"), ("SendEmail", "dies after it took effect"))
UNKNOWN = Before(sender("P"), ("SendEmail", "it times out and was accepted"))
DIED_AFTER_CLAIMING = Before(sender("P"), ("PutItem", "dies after it took effect"))
A_SECOND = timedelta(seconds=1)
SHORT = Settings(horizon=timedelta(minutes=10))  # past it at DUE

_FEEDBACK = Process("F", "feedback", "", A_SECOND)
_ONE, _TWO, _THREE, _FOUR = (Bound(faults) for faults in (1, 2, 3, 4))

SCENARIOS: Sequence[Scenario] = (
    Scenario("one sender", (sender("A"),), _THREE, _FOUR),
    Scenario("two senders", (sender("A"), sender("B", A_SECOND)), _TWO, _THREE),
    Scenario("two senders that read for themselves", (_lone("A"), _lone("B", A_SECOND)), _ONE, _TWO),
    Scenario(
        "two senders with a lease",
        (sender("A", settings=LEASE), sender("B", A_SECOND, LEASE)),
        _TWO,
        _THREE,
        settings=LEASE,
        allowed=frozenset({Why.INTERRUPTED, Why.UNKNOWN_WAITED}),
    ),
    Scenario("two senders, one outside production", (sender("A"), sender("B", A_SECOND, STAGING)), _ONE, _TWO),
    Scenario(
        "three senders", (sender("A"), sender("B", A_SECOND), sender("C", 2 * A_SECOND)), Bound(0, 4), Bound(1, 4)
    ),
    Scenario(
        "three senders and a fault",
        (sender("A"), sender("B", A_SECOND), sender("C", 2 * A_SECOND)),
        Bound(1, 1),
        Bound(1, 3),
    ),
    Scenario("a sender and the retry of a failed notice", (sender("A", DUE), *_retry()), _ONE, _TWO, (THROTTLED,)),
    Scenario(
        "a sender and the retry of an abandoned claim",
        (sender("A", DUE), *_retry()),
        _ONE,
        _TWO,
        (DIED_AFTER_CLAIMING,),
    ),
    Scenario("a sender and the retry past its horizon", (sender("A", DUE), *_retry(SHORT)), _TWO, _THREE, (THROTTLED,)),
    Scenario("a sender and feedback on its mail", (sender("A"), _FEEDBACK), _TWO, _THREE),
    Scenario(
        "a sender and feedback, after a sender that died",
        (sender("A", A_SECOND), _FEEDBACK),
        _TWO,
        _THREE,
        (DIED_AFTER_SENDING,),
    ),
    Scenario(
        "a sender and feedback, after an unknown send", (sender("A", A_SECOND), _FEEDBACK), _TWO, _THREE, (UNKNOWN,)
    ),
    Scenario(
        "feedback and the retry past its horizon, after an unknown send",
        (*_retry(SHORT), Process("F", "feedback", "", DUE)),
        _TWO,
        _THREE,
        (UNKNOWN,),
    ),
)


def by_title(title: str, scenarios: Iterable[Scenario] = SCENARIOS) -> Scenario:
    """Return a scenario."""
    return next(scenario for scenario in scenarios if scenario.title == title)
