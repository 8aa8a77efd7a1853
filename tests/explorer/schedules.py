"""The search: every order of the processes' calls, and at every call everything that can go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from explorer.faults import BATCH, READS, REFUSES, WRITES, Fault, Then, faults
from explorer.invariants import Invariant, Violated, check_change, logged_mails
from explorer.process import DIED, RECEIVE, RECEIVE_FEEDBACK, Call, End, Node, Process, Reply, Runner, Settings
from explorer.shared import Item, Notary, Shared, accept, enqueue, send_event
from fakes.mail import SEND_EMAIL


class Why(StrEnum):
    """What a later claim found of an earlier one: why both may have sent (DESIGN 2, the residue)."""

    OVERLAP = "the first sender was still at work"
    INTERRUPTED = "the first sender stopped before its outcome was written"
    UNKNOWN = "the first send was unknown, and another event for the notice came first"
    UNKNOWN_WAITED = "the first send was unknown, and no event of SES settled it within its grace"


class Held(NamedTuple):
    """A claim that somebody sends under, or has."""

    claim: str
    process: str
    working: bool
    why: Why | None  # what a later claim will find, once it does not work any more


class Step(NamedTuple):
    """One step of a schedule."""

    who: str
    call: str
    fault: Fault | None = None
    body: str = ""  # of the message that is received
    late: bool = False  # a write in flight takes effect

    def __str__(self) -> str:
        """Say it in a line."""
        if self.late:
            return f"{self.who}: its {self.call} takes effect at last"
        return f"{self.who}: {self.call}{', ' + self.fault.name if self.fault else ''}"


class State(NamedTuple):
    """All that the future depends on. Two schedules that lead to equal states are explored further as one.

    `nodes` are the processes: None where one has ended or died. `back` are messages that return to their queue.
    """

    shared: Shared
    nodes: tuple[Node | None, ...]
    faults_left: int
    in_flight: tuple[tuple[str, Call], ...] = ()  # writes that have yet to take effect
    claims: tuple[Held, ...] = ()
    risks: frozenset[tuple[str, str, Why]] = frozenset()  # (earlier claim, later claim, what it found)
    back: tuple[tuple[str, str], ...] = ()
    last: int = -1  # who made the last call
    switches_left: int | None = None


@dataclass(slots=True)
class Report:
    """What a search saw."""

    schedules: int = 0
    states: int = 0
    ends: int = 0  # different states at the end of the schedules, each of which was repaired
    runs: int = 0  # of the real code
    most_mails: int = 0
    duplicates: set[Why] = field(default_factory=set)
    changes: set[tuple[str, str, str]] = field(default_factory=set)  # how a notice stood before and after, and why


class Search:
    """Explores; raises Violated with the schedule at the first thing that does not hold.

    `allowed` are the reasons for which a second mail may be accepted; `settings` are those of all who run.
    """

    def __init__(self, *, allowed: Iterable[Why] = tuple(Why), settings: Iterable[Settings] = (Settings(),)) -> None:
        self.report = Report()
        self.path: list[Step | str] = []
        self._allowed = frozenset(allowed)
        self._horizon = min(each.horizon for each in settings)
        self._production = all(each.production for each in settings)
        self._notary = Notary(self._changed)
        self._runners: dict[Process, Runner] = {}
        self._seen: dict[State, int] = {}

    # -- the parts of a schedule

    def start(self, process: Process) -> Node:
        """Return a process before its first call."""
        if process not in self._runners:
            self._runners[process] = Runner(process, self._count_run)
        return self._runners[process].first

    def notice(self, state: State) -> Item | None:
        """Return the notice in wire form."""
        return self._notary.item(state.shared.notice)

    def explore(self, state: State, at_end: Callable[[State], None]) -> int:
        """Visit all that can follow; return the number of schedules."""
        known = self._seen.get(state)
        if known is not None:
            return known
        schedules = 0
        for step, following in self.successors(state):
            self.path.append(step)
            schedules += self.explore(following, at_end)
            self.path.pop()
        if schedules == 0:
            at_end(state)
            self.report.ends += 1
            schedules = 1
        self._seen[state] = schedules
        self.report.states += 1
        return schedules

    def successors(self, state: State) -> Iterator[tuple[Step, State]]:
        """Yield every next step, and where it leads."""
        for place, node in enumerate(state.nodes):
            if node is None or node.call is None:
                continue
            switched = self._switched(state, place)
            if switched is None:
                continue
            yield from self._received(switched, place, node, node.call)
            if node.call.operation not in (RECEIVE, RECEIVE_FEEDBACK):
                yield self.answered(switched, place)
                if state.faults_left:
                    for fault in faults(node.call):
                        yield self.spoiled(switched, place, fault)
        for number, (name, call) in enumerate(state.in_flight):
            rest = state.in_flight[:number] + state.in_flight[number + 1 :]
            landed, _ = self._effect(state._replace(in_flight=rest), name, call, sends=False)
            yield Step(name, call.operation, late=True), landed

    def answered(self, state: State, place: int) -> tuple[Step, State]:
        """Let a process make its call."""
        node, call = self._at(state, place)
        after, reply = self._effect(state, node.process.name, call, retry=_retry_of(node))
        return Step(node.process.name, call.operation), self._goes_on(after, place, node, reply)

    def spoiled(self, state: State, place: int, fault: Fault) -> tuple[Step, State]:
        """Let a call go wrong."""
        node, call = self._at(state, place)
        step = Step(node.process.name, call.operation, fault)
        after = state._replace(faults_left=state.faults_left - 1)
        if fault.effect:
            sends = fault.then is not Then.DIES
            after, _ = self._effect(after, node.process.name, call, sends=sends, retry=_retry_of(node))
        if fault.reply == REFUSES:
            after = after._replace(shared=after.shared._replace(refused=True))
        if fault.later:
            after = after._replace(in_flight=(*after.in_flight, (node.process.name, call)))
        match fault.then:
            case Then.DIES:
                return step, self._gone(after, place, node, DIED)
            case Then.CALLS_AGAIN:
                return step, after
            case Then.GOES_ON:
                assert fault.reply is not None
                return step, self._goes_on(after, place, node, fault.reply)

    def alone(self, state: State, process: Process) -> State:
        """Let a process run from its beginning to its end with nothing in its way."""
        state = state._replace(nodes=(self.start(process),))
        steps = 0
        while state.nodes[0] is not None:
            step, state = self.answered(state, 0)
            self.path.append(step)
            steps += 1
        del self.path[len(self.path) - steps :]
        return state

    # -- steps

    def _at(self, state: State, place: int) -> tuple[Node, Call]:
        node = state.nodes[place]
        assert node is not None
        assert node.call is not None
        if node.call.operation == SEND_EMAIL and not node.process.settings.production:
            step = Step(node.process.name, SEND_EMAIL)
            self._violated(Invariant.NO_MAIL_OUTSIDE_PRODUCTION, "it runs outside production, and sends", step)
        return node, node.call

    def _switched(self, state: State, place: int) -> State | None:
        """Return the state with its last caller moved to this one; None when no switch is left."""
        if state.switches_left is None:
            return state
        left = state.switches_left
        if state.last not in (-1, place) and state.nodes[state.last] is not None:
            left -= 1
        return state._replace(last=place, switches_left=left) if left >= 0 else None

    def _received(self, state: State, place: int, node: Node, call: Call) -> Iterator[tuple[Step, State]]:
        shared, name = state.shared, node.process.name
        if call.operation == RECEIVE and shared.queued:
            after = state._replace(shared=shared._replace(queued=shared.queued[1:]))
            body = shared.queued[0]
            yield Step(name, call.operation, body=body), self._goes_on(after, place, node, Reply(body))
        if call.operation == RECEIVE_FEEDBACK:
            for mail in shared.accepted:
                if mail[0] not in shared.told:
                    after = state._replace(shared=shared._replace(told=shared.told | {mail[0]}))
                    body = send_event(mail)
                    yield Step(name, call.operation, body=body), self._goes_on(after, place, node, Reply(body))

    def _effect(
        self, state: State, name: str, call: Call, *, sends: bool = True, retry: int | None = None
    ) -> tuple[State, Reply]:
        """Let a call take effect. `sends` is false where nobody is left who would send under a claim.

        `retry` is the revision that the retry's event names, where the process works on one.
        """
        if call.operation in READS | WRITES:
            try:
                notice, reply = self._notary.make(state.shared.notice, call)
            except Violated as violated:
                path = [*self.path, Step(name, call.operation)]
                raise Violated(violated.invariant, violated.detail, path) from None
            after = state._replace(shared=state.shared._replace(notice=notice))
            if notice != state.shared.notice and call.operation == "PutItem":
                before = self.notice(state)
                if retry is not None and (before is None or before["revision"] != {"N": str(retry)}):
                    said = f"the retry's event names revision {retry} and claimed at another"
                    self._violated(Invariant.DUPLICATES_AS_DESIGNED, said, Step(name, call.operation))
                waited = retry is not None or self._waited(state, call)
                after = self._claimed(after, name, call.kwargs["Item"], sends, waited)
            return after, reply
        if call.operation == SEND_EMAIL:
            shared, reply = accept(state.shared, call)
            self._check_mail(state, call.kwargs["tags"]["notice_claim"], Step(name, call.operation))
            return state._replace(shared=shared), reply
        assert call.operation == BATCH, call.operation
        shared, reply = enqueue(state.shared, call)
        return state._replace(shared=shared), reply

    def _claimed(self, state: State, name: str, item: Item, sends: bool, waited: bool) -> State:
        claim = item["claim_id"]["S"]
        found = ((held.claim, claim, _found(held, waited)) for held in state.claims if held.claim != claim)
        return state._replace(
            claims=(*state.claims, Held(claim, name, sends, None)),
            risks=state.risks | {(first, later, why) for first, later, why in found if why is not None},
        )

    def _waited(self, state: State, claim: Call) -> bool:
        """Whether a claim comes when the notice is due (the retry's own event always does)."""
        before = self.notice(state)
        return (
            before is not None and before.get("next_attempt_at", _NEVER)["S"] <= claim.kwargs["Item"]["claimed_at"]["S"]
        )

    def _check_mail(self, state: State, claim: str, step: Step) -> None:
        """The invariant of duplicates, where a mail is accepted."""
        reasons = {(first, later): why for first, later, why in state.risks}
        if claim not in {held.claim for held in state.claims}:
            self._violated(Invariant.DUPLICATES_AS_DESIGNED, "a mail went out under a claim that is not written", step)
        for _, other in state.shared.accepted:
            why = reasons.get((claim, other)) or reasons.get((other, claim))
            if why not in self._allowed:
                found = f"allowed here is not: {why}" if why else "nothing explains it"
                self._violated(Invariant.DUPLICATES_AS_DESIGNED, f"mails under {other} and {claim}; {found}", step)
            assert why is not None
            self.report.duplicates.add(why)
        self.report.most_mails = max(self.report.most_mails, len(state.shared.accepted) + 1)

    def _check_end(self, state: State, name: str, end: End) -> None:
        """What a process that was not killed has to leave of the mails that it sent."""
        claims = {held.claim for held in state.claims if held.process == name}
        mails = {reference for reference, claim in state.shared.accepted if claim in claims}
        if end is DIED or not mails:
            return
        if not end.acknowledged:
            detail = f"{name} gives its event back, and SES has accepted its mail"
            raise Violated(Invariant.DUPLICATES_AS_DESIGNED, detail, self.path)
        notice = self.notice(state)
        logged = logged_mails(notice) if notice is not None else []
        if end.result == "delivered" and end.recorded and not mails <= set(logged):
            raise Violated(Invariant.MAILS_ARE_LOGGED, f"{name} recorded a delivery, and the log has none", self.path)

    def _violated(self, invariant: Invariant, detail: str, step: Step) -> None:
        raise Violated(invariant, detail, [*self.path, step])

    def _goes_on(self, state: State, place: int, node: Node, reply: Reply) -> State:
        following = node.after(reply)
        if following.end is not None:
            return self._gone(state, place, following, following.end)
        return state._replace(nodes=(*state.nodes[:place], following, *state.nodes[place + 1 :]))

    def _gone(self, state: State, place: int, node: Node, end: End) -> State:
        """A process has ended or died. Claims under which nothing was sent, and nothing will be, are forgotten."""
        name = node.process.name
        self._check_end(state, name, end)
        why: Why | None = None
        if not end.acknowledged or not end.recorded:
            why = Why.INTERRUPTED
        elif end.error.startswith("provider_unknown"):
            why = Why.UNKNOWN
        sent = {claim for _, claim in state.shared.accepted}
        claims = tuple(
            held if held.process != name else held._replace(working=False, why=why)
            for held in state.claims
            if held.process != name or held.claim in sent
        )
        kept = {held.claim for held in claims}
        back = state.back
        if not end.acknowledged and node.body:
            back = (*back, ("feedback" if node.process.kind == "feedback" else "sender", node.body))
        return state._replace(
            nodes=(*state.nodes[:place], None, *state.nodes[place + 1 :]),
            claims=claims,
            risks=frozenset(risk for risk in state.risks if risk[0] in kept and risk[1] in kept),
            back=back,
        )

    # -- what is seen on the way

    def _count_run(self) -> None:
        self.report.runs += 1

    def _changed(self, call: Call, before: Item | None, after: Item) -> None:
        self.report.changes.add((standing(before), standing(after), _cause(call, before, after)))
        check_change(before, after, horizon=self._horizon, production=self._production)


_NEVER = {"S": "9"}


def _retry_of(node: Node) -> int | None:
    """Return the revision that the retry's own event names, where a process works on one."""
    return json.loads(node.body).get("retry") if node.process.kind in ("sender", "queue") and node.body else None


def _found(held: Held, waited: bool) -> Why | None:
    """What a later claim finds of an earlier one."""
    if held.working:
        return Why.OVERLAP
    return Why.UNKNOWN_WAITED if held.why is Why.UNKNOWN and waited else held.why


def standing(notice: Item | None) -> str:
    """Return how a notice stands: its status, with whether a failed one is due."""
    if notice is None:
        return "absent"
    status = str(notice["status"]["S"])
    if status != "failed":
        return status
    return "failed, due" if "next_attempt_at" in notice else "failed for good"


def _cause(call: Call, before: Item | None, after: Item) -> str:
    if call.operation == "PutItem":
        return "claim"
    if before is not None and before.get("feedback") != after.get("feedback"):
        return "feedback"
    if str(after.get("error", {}).get("S", "")).startswith("gave_up"):
        return "given up"
    return "outcome"
