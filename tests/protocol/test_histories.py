"""Longer histories than the explorer's: clocks that jump, settings that change, events that repeat, jobs that go.

Hypothesis puts them together. Each step runs the real code, on a world whose every write is checked as it is made; at
the end everything that repairs does its work, and nothing may be left.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from explorer.invariants import check_change, check_rest
from fakes.clock import Clock
from fakes.gate import Gate, Killed, Lever, ReplyLost, raising
from fakes.mail import MISCONFIGURED, REFUSED, SEND_EMAIL, THROTTLED, UNKNOWN, ses_event
from fakes.store import Store, read_timeout, refusal
from fakes.world import JOB_ID, NOTICES, OUTCOME, World, settled
from notices.record import Status

TICK = timedelta(microseconds=1)
HELD = 600  # seconds of a lease, where there is one

jumps = st.sampled_from([1, 59, 61, HELD - 1, HELD + 1, 905, 16 * 60, 3600, 5 * 3600, 73 * 3600])
faults = st.sampled_from([None, "killed", "reply lost", "throttled", "refused", "time-out"])
answers = st.sampled_from([None, THROTTLED, REFUSED, UNKNOWN, MISCONFIGURED])
news = st.sampled_from(["Send", "Delivery", "DeliveryDelay", "Bounce", "Complaint", "Reject"])


class Watched(Store):
    """Checks each write of a notice as it is made."""

    def handle(self, operation: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        before = self.item(NOTICES, JOB_ID, OUTCOME)
        try:
            return super().handle(operation, kwargs)
        finally:
            after = self.item(NOTICES, JOB_ID, OUTCOME)
            if after is not before:
                assert after is not None
                assert int(after["revision"]["N"]) == int(before["revision"]["N"] if before else 0) + 1
                check_change(before, after)


class Histories(RuleBasedStateMachine):
    """One notice's life."""

    @initialize(lease=st.sampled_from([0, HELD]), horizon=st.sampled_from([1, 72]))
    def begin(self, lease: int, horizon: int) -> None:
        self.world = World(
            store=Watched(),
            clock=Clock(tick=TICK),
            lease=timedelta(seconds=lease),
            horizon=timedelta(hours=horizon),
            page=2,
        )
        self.waiting: list[str] = []  # on the queue, or back on it
        self.told: set[str] = set()  # the mails of which SES said that it accepted them
        self.requester_there = True

    # -- what the world does

    @rule(seconds=jumps)
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds=seconds)

    @rule(seconds=st.integers(1, 30))
    def a_clock_is_set_back(self, seconds: int) -> None:
        self.world.clock.advance(seconds=-seconds)

    @rule()
    def the_job_settles_or_its_event_is_repeated(self) -> None:
        self.waiting.append(settled())

    @rule(production=st.booleans())
    def the_environment_changes(self, production: bool) -> None:
        self.world.production = production

    @rule(lease=st.sampled_from([0, HELD]))
    def the_lease_changes(self, lease: int) -> None:
        self.world.lease = timedelta(seconds=lease)

    @rule(hours=st.sampled_from([1, 24, 72]))
    def the_horizon_changes(self, hours: int) -> None:
        self.world.horizon = timedelta(hours=hours)

    @rule(there=st.booleans())
    def the_requester_goes_or_comes(self, there: bool) -> None:
        self.requester_there = there
        if there:
            self.world.requester()
        else:
            self.world.store.discard("Requesters", "requester-1")

    @rule(email=st.sampled_from(["dana@example.com", "", "not an address"]))
    def the_requesters_address_changes(self, email: str) -> None:
        if self.requester_there:
            self.world.requester(email=email)

    @rule(tenant=st.sampled_from(["tenant-1", "tenant-2"]))
    def the_requester_changes_tenants(self, tenant: str) -> None:
        if self.requester_there:
            self.world.requester(tenant_id=tenant)

    @rule(removed=st.booleans())
    def the_job_is_removed_or_restored(self, removed: bool) -> None:
        self.world.job(**({"removed_at": "2026-11-29T10:00:00Z"} if removed else {}))

    # -- what runs

    @precondition(lambda self: self.waiting)
    @rule(
        data=st.data(), call=st.integers(1, 6), when=st.sampled_from(["before", "after"]), fault=faults, answer=answers
    )
    def a_sender_runs(self, data: st.DataObject, call: int, when: str, fault: str | None, answer: Any) -> None:
        body = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        if answer is not None:
            self.world.provider.script.append(answer)
        if not self._run(lambda gate: self.world.worker(gate).handle(body), call, when, fault):
            self.waiting.append(body)
        self.world.provider.script.clear()

    @precondition(lambda self: len(self.waiting) > 1)
    @rule(call=st.integers(1, 5))
    def two_senders_meet(self, call: int) -> None:
        inner, outer = self.waiting.pop(), self.waiting.pop()
        gate = Gate()
        gate.on_call = Lever(lambda: self.waiting.extend([inner] * bool(self.world.worker().handle(inner))), nth=call)
        self.waiting.extend([outer] * bool(self.world.worker(gate).handle(outer)))
        if not gate.on_call.pulled:
            self.waiting.append(inner)

    @rule(call=st.integers(1, 5), when=st.sampled_from(["before", "after"]), fault=faults)
    def the_retry_runs(self, call: int, when: str, fault: str | None) -> None:
        def run(gate: Gate) -> list[str]:
            try:
                self.world.worker(gate).run_retry()
            except Exception:  # noqa: BLE001 - the schedule runs again in a minute
                return []
            return []

        self._run(run, call, when, fault)
        self.waiting += [message.body for message in self.world.queues.sent]
        self.world.queues.sent.clear()

    @precondition(lambda self: self.world.provider.accepted)
    @rule(
        data=st.data(), event_type=news, call=st.integers(1, 2), when=st.sampled_from(["before", "after"]), fault=faults
    )
    def ses_speaks_of_a_mail(
        self, data: st.DataObject, event_type: str, call: int, when: str, fault: str | None
    ) -> None:
        accepted = data.draw(st.sampled_from(self.world.provider.accepted))
        event = ses_event(accepted, event_type)
        if not self._run(lambda gate: self.world.worker(gate).handle_feedback(event), call, when, fault):
            assert self.world.worker().handle_feedback(event) == []
        if event_type != "Reject":
            self.told.add(accepted.reference)

    @precondition(lambda self: (notice := self.world.notice()) is not None and notice.status == Status.SUPPRESSED)
    @rule()
    def an_operator_reopens_a_suppressed_notice(self) -> None:
        assert self.world.worker().notices.reopen(self.world.the_notice())

    def _run(self, process: Any, call: int, when: str, fault: str | None) -> bool:
        """Run a process with one fault at one of its calls; return whether its message is done with."""
        gate = Gate()
        if fault is not None:
            effect = {
                "killed": Killed(),
                "reply lost": ReplyLost() if when == "after" else read_timeout(),
                "throttled": refusal("Operation", "ThrottlingException"),
                "refused": refusal("Operation", "AccessDeniedException"),
                "time-out": read_timeout(),
            }[fault]
            lever = _AtCall(effect, call, sends=fault in ("killed", "reply lost"))
            if when == "before" and fault != "reply lost":
                gate.on_call = lever
            else:
                gate.after_call = lever
        try:
            return not process(gate)
        except Killed:
            return False

    # -- what holds

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        # the platform is well again, but what it decided stands
        self.world.quiesce(*self.waiting, feedback=False)
        notice = self.world.store.item(NOTICES, JOB_ID, OUTCOME)
        if notice is None:
            assert not self.world.provider.letters, "no mail without a claim"
            return
        check_rest(notice, [mail.reference for mail in self.world.provider.accepted], told=sorted(self.told))
        claims = self.world.store.calls["PutItem"] - self.world.store.refused["PutItem"]
        assert int(notice["attempts"]["N"]) == claims, "attempts counts claims"


class _AtCall:
    """Raises at one call of a process; at a send only what can happen there, where an error is an answer."""

    def __init__(self, effect: BaseException, call: int, *, sends: bool) -> None:
        self._effect, self._left, self._sends = effect, call, sends

    def __call__(self, operation: str, _kwargs: Mapping[str, Any]) -> None:
        self._left -= 1
        if self._left == 0 and (self._sends or operation != SEND_EMAIL):
            raising(self._effect)()


Histories.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestHistories = Histories.TestCase
