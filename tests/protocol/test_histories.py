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
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from explorer.invariants import check_change, check_rest
from fakes.clock import Clock
from fakes.gate import Gate, Killed, Lever, ReplyLost, raising
from fakes.mail import MISCONFIGURED, REFUSED, SEND_EMAIL, THROTTLED, UNKNOWN, ses_event
from fakes.store import Store, read_timeout, refusal
from fakes.world import NOTICES, OUTCOME, Worker, World, settled
from notices.mail import Answer, job_id_from_tag
from notices.record import Status

TICK = timedelta(microseconds=1)
HELD = 600  # seconds of a lease, where there is one

mostly = st.sampled_from([True, True, True, False])
JOB_IDS = [f"job-{number}" for number in range(1, 6)]
job_ids = st.sampled_from(JOB_IDS)
jumps = st.sampled_from([-30, -1, 1, 59, 61, HELD - 1, HELD + 1, 905, 16 * 60, 3600, 5 * 3600, 73 * 3600])
faults = st.sampled_from([None, "killed", "reply lost", "throttled", "refused", "time-out"])
answers = st.sampled_from([None, THROTTLED, REFUSED, UNKNOWN, MISCONFIGURED])
mostly_accepted = st.one_of(st.none(), answers)
news = st.sampled_from(["Send", "Delivery", "DeliveryDelay", "Bounce", "Complaint", "Reject"])


class Watched(Store):
    """Checks each write of a notice, and keeps what does not hold: raised in a call, the code would catch it."""

    def __init__(self) -> None:
        super().__init__()
        self.violated: list[AssertionError] = []
        self.horizon = timedelta(0)  # after which a notice may be given up
        self.production = True  # whether the sender runs in it

    def handle(self, operation: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        before = self.snapshot()[NOTICES]
        try:
            return super().handle(operation, kwargs)
        finally:
            after = self.snapshot()[NOTICES]
            for key in before.keys() | after.keys():
                if before.get(key) is not after.get(key):
                    self._look_at(before.get(key), after.get(key))

    def _look_at(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        try:
            assert after is not None, "nothing takes a notice away"
            check_change(before, after, horizon=self.horizon, production=self.production)
            assert int(after["revision"]["N"]) == int(before["revision"]["N"] if before else 0) + 1
        except AssertionError as error:
            self.violated.append(error)


class Histories(RuleBasedStateMachine):
    """The lives of a few notices."""

    @initialize(lease=st.sampled_from([0, HELD]), horizon=st.sampled_from([1, 72]))
    def begin(self, lease: int, horizon: int) -> None:
        self.store = Watched()
        self.store.horizon = timedelta(hours=horizon)
        self.world = World(
            store=self.store,
            clock=Clock(tick=TICK),
            lease=timedelta(seconds=lease),
            horizon=timedelta(hours=horizon),
            page=2,
        )
        self.mails_until_then = 0  # asked of SES before the settings changed for the last time
        self.waiting: list[str] = []  # on the queue, or back on it
        self.told: set[str] = set()  # the mails of which SES said that it accepted them
        self.settled: set[str] = set()  # jobs of which an event came
        self.removed: set[str] = set()  # jobs that were ever removed
        self.met: set[str] = {"gave_up", "suppressed"}  # what may end a notice; each write of these two is checked
        for job_id in JOB_IDS:
            self.world.job(job_id)

    # -- what the world does

    @rule(seconds=jumps)
    def time_passes_or_a_clock_is_set_back(self, seconds: int) -> None:
        self.world.clock.advance(seconds=seconds)

    @rule(job_id=job_ids)
    def a_job_settles_or_its_event_is_repeated(self, job_id: str) -> None:
        self.settled.add(job_id)
        self.waiting.append(settled(job_id))

    @rule(production=mostly, lease=st.sampled_from([0, HELD]), hours=st.sampled_from([1, 24, 72]))
    def the_settings_change(self, production: bool, lease: int, hours: int) -> None:
        self.world.production = production
        self.world.lease = timedelta(seconds=lease)
        self.world.horizon = timedelta(hours=hours)
        self.store.production, self.store.horizon = production, self.world.horizon
        self.mails_until_then = len(self.world.provider.letters)

    @rule(
        there=mostly,
        email=st.sampled_from(["dana@example.com", "dana@example.com", "", "not an address"]),
        tenant=st.sampled_from(["tenant-1", "tenant-1", "tenant-2"]),
    )
    def the_requester_goes_or_comes_or_changes(self, there: bool, email: str, tenant: str) -> None:
        if there:
            self.met |= {"tenant_mismatch"} if tenant != "tenant-1" else set()
            self.met |= {"address_invalid" if email else "address_missing"} if "@" not in email else set()
            self.world.requester(email=email, tenant_id=tenant)
        else:
            self.world.store.discard("Requesters", "requester-1")

    @rule(job_id=job_ids, there=mostly)
    def a_job_is_removed_or_restored(self, job_id: str, there: bool) -> None:
        self.removed |= set() if there else {job_id}
        self.world.job(job_id, removed_at=None if there else "2026-11-29T10:00:00Z")

    # -- what runs

    @precondition(lambda self: self.waiting)
    @rule(
        data=st.data(), call=st.integers(1, 6), when=st.sampled_from(["before", "after"]), fault=faults, answer=answers
    )
    def a_sender_runs(self, data: st.DataObject, call: int, when: str, fault: str | None, answer: Any) -> None:
        body = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        if answer is not None:
            self._answers(answer)
        if not self._run(lambda gate: self.world.worker(gate).handle(body), call, when, fault):
            self.waiting.append(body)
        self.world.provider.script.clear()

    @rule(job_id=job_ids, call=st.integers(1, 6), answer=mostly_accepted, other_answer=mostly_accepted)
    def two_senders_meet(self, job_id: str, call: int, answer: Any, other_answer: Any) -> None:
        self._answers(*(each for each in (answer, other_answer) if each is not None))
        gate = Gate()
        self.settled.add(job_id)
        gate.on_call = Lever(lambda: self._sends(self.world.worker(), settled(job_id)), nth=call)
        self._sends(self.world.worker(gate), settled(job_id))
        self.world.provider.script.clear()

    def _answers(self, *answers: Answer) -> None:
        self.world.provider.script.extend(answers)
        self.met |= {"provider_refused"} if REFUSED in answers else set()

    def _sends(self, worker: Worker, body: str) -> None:
        if worker.handle(body):
            self.waiting.append(body)

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

    @rule(job_id=job_ids)
    def an_operator_reopens_a_suppressed_notice(self, job_id: str) -> None:
        notice = self.world.notice(job_id)
        if notice is not None and notice.status == Status.SUPPRESSED:
            assert self.world.worker().notices.reopen(notice)

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

    @invariant()
    def every_write_keeps_the_promises(self) -> None:
        if hasattr(self, "world") and self.store.violated:
            raise self.store.violated[0]

    @invariant()
    def nobody_outside_production_gets_mail(self) -> None:
        if hasattr(self, "world") and not self.world.production:
            assert len(self.world.provider.letters) == self.mails_until_then

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        # the platform is well again, but what it decided stands
        self.world.quiesce(*self.waiting, feedback=False)
        self.every_write_keeps_the_promises()
        self.nobody_outside_production_gets_mail()
        mails = self.world.provider.accepted
        claims = [mail.letter.tags["notice_claim"] for mail in mails]
        assert len(set(claims)) == len(claims), "never two mails under one claim"
        notices = {job_id: self.world.store.item(NOTICES, job_id, OUTCOME) for job_id in JOB_IDS}
        for job_id in self.settled - self.removed:
            assert notices[job_id] is not None, "no notice is lost"
        for job_id, notice in notices.items():
            references = [mail.reference for mail in mails if job_id_from_tag(mail.letter.tags["notice_job"]) == job_id]
            if notice is None:
                assert not references, "no mail without a claim"
            else:
                endings = self.met | ({"job_removed"} if job_id in self.removed else set())
                check_rest(notice, references, told=sorted(self.told & set(references)), endings=endings)
        puts = self.world.store.calls["PutItem"] - self.world.store.refused["PutItem"]
        assert sum(int(notice["attempts"]["N"]) for notice in notices.values() if notice) == puts, (
            "attempts counts claims"
        )


class _AtCall:
    """Raises at one call of a process; at a send only what can happen there, where an error is an answer."""

    def __init__(self, effect: BaseException, call: int, *, sends: bool) -> None:
        self._effect, self._left, self._sends = effect, call, sends

    def __call__(self, operation: str, _kwargs: Mapping[str, Any]) -> None:
        self._left -= 1
        if self._left == 0 and (self._sends or operation != SEND_EMAIL):
            raising(self._effect)()


Histories.TestCase.settings = settings(
    max_examples=300,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestHistories = Histories.TestCase
