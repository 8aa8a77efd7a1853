"""Who may do what when: senders, the retry and feedback stopped, killed and interleaved between any two calls.

Everything here is deterministic: workers run the real code, one external call at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta

import pytest

from fakes.clock import START, Clock
from fakes.gate import Gate, Killed, Lever, ReplyLost, raising
from fakes.mail import REFUSED, SEND_EMAIL, THROTTLED, UNKNOWN, Accepted, ses_event
from fakes.store import read_timeout, refusal
from fakes.turns import Turns
from fakes.world import JOB_ID, OUTCOME, World, settled
from notices.mail import Letter, notice_tags
from notices.record import Status

TICK = timedelta(microseconds=1)
PLAIN_TELL = ["GetItem", "PutItem", "GetItem", SEND_EMAIL, "UpdateItem"]


def a_world(**settings) -> World:
    return World(clock=Clock(tick=TICK), **settings)


def log_of(world: World) -> list[tuple[str, str]]:
    return [(entry.claim_id, entry.result) for entry in world.the_notice().attempt_log]


def references(world: World) -> list[str]:
    return [accepted.reference for accepted in world.provider.accepted]


def assert_settled(world: World) -> None:
    """The invariants of a notice at rest (DESIGN 2)."""
    notice = world.the_notice()
    handled = Status(notice.status).handled
    assert handled or notice.error, "an unhandled notice at rest says why"
    assert notice.next_attempt_at is None, "a notice at rest is not due"
    assert notice.handled_at is not None
    if world.provider.accepted:
        assert notice.status == "delivered", "what SES accepted is recorded"
        assert notice.provider_reference in references(world)
    assert notice.attempts == world.store.calls["PutItem"] - world.store.refused["PutItem"], "attempts counts claims"
    results = [entry for entry in notice.attempt_log if entry.result != "abandoned"]
    assert len({(entry.claim_id, entry.reference, entry.error) for entry in results}) == len(results), "each once"


def test_the_plain_way_takes_five_calls() -> None:
    gate = Gate()
    a_world().worker(gate).told()
    assert gate.calls == PLAIN_TELL


# -- two senders of one notice --------------------------------------------------------------------------------------


def two_senders(schedule: str, world: World, **after_call: Callable[..., None]) -> dict:
    turns = Turns(schedule)
    gates = {name: turns.gate(name) for name in "AB"}
    for name, hook in after_call.items():
        gates[name].after_call = hook
    workers = {name: world.worker(gate) for name, gate in gates.items()}
    results = turns.run(**{name: worker.told for name, worker in workers.items()})
    return {"trace": "".join(name for name, _ in turns.trace), **results}


# A looks up and claims; B looks up, is refused and claims; each reads the requester and sends; then they record
CL_03 = "AABBBAABBABB"


def test_two_overlapping_senders_may_both_send_and_leave_one_record_with_the_first_recorded_reference() -> None:
    world = a_world()
    results = two_senders(CL_03, world)

    assert results["trace"] == CL_03
    assert len(world.provider.accepted) == 2
    notice = world.the_notice()
    assert (notice.status, notice.provider_reference, notice.attempts) == ("delivered", "message-1", 2)
    assert log_of(world) == [("claim-1", "abandoned"), ("claim-1", "delivered"), ("claim-2", "delivered")]
    assert world.telemetry.total("NoticeDelivered") == 1
    assert world.telemetry.total("DuplicateDelivery") == 1
    assert results["B"].recorded == "second_delivery"


def test_the_first_recorded_reference_stands_also_when_the_second_claim_records_first() -> None:
    world = a_world()
    two_senders("AABBBAABBBAA", world)

    assert world.the_notice().provider_reference == "message-2"
    assert log_of(world) == [("claim-1", "abandoned"), ("claim-2", "delivered"), ("claim-1", "delivered")]
    assert world.telemetry.total("DuplicateDelivery") == 1


@pytest.mark.parametrize("answer", [THROTTLED, REFUSED], ids=["for now", "for good"])
def test_the_failure_of_an_overtaken_sender_joins_the_log_alone(answer) -> None:
    world = a_world()
    world.provider.script.append(answer)  # A sends first
    results = two_senders("AABBBAAAABBBBB", world)

    assert results["A"].recorded == "lost"
    assert log_of(world) == [("claim-1", "abandoned"), ("claim-1", "failed"), ("claim-2", "delivered")]
    assert world.the_notice().status == "delivered"
    assert world.telemetry.total("DuplicateDelivery") == 0
    assert world.telemetry.total("NoticeFailed") == 0


def test_a_dead_workers_claim_is_taken_up_at_once() -> None:
    world = a_world()
    gate = Gate()
    gate.after_call = Lever(raising(Killed()), operation="PutItem")
    with pytest.raises(Killed):
        world.worker(gate).told()

    told = world.worker().told()

    assert (told.result, told.attempt) == ("delivered", 2)
    assert log_of(world) == [("claim-1", "abandoned"), ("claim-2", "delivered")]
    assert len(world.provider.accepted) == 1


def test_with_a_lease_a_dead_workers_claim_is_left_to_its_own_next_attempt() -> None:
    world = a_world(lease=timedelta(seconds=60))
    gate = Gate()
    gate.after_call = Lever(raising(Killed()), operation="PutItem")
    with pytest.raises(Killed):
        world.worker(gate).told()

    assert world.worker().handle(settled()) == []

    assert world.provider.letters == []
    assert world.telemetry.total("NoticeInProgress") == 1
    world.quiesce()
    assert world.the_notice().status == "delivered"
    assert len(world.provider.accepted) == 1


def all_schedules(a_calls: int, b_calls: int) -> list[str]:
    length = a_calls + b_calls
    return [
        "".join("A" if place in chosen else "B" for place in range(length))
        for chosen in itertools.combinations(range(length), a_calls)
    ]


def test_every_order_of_two_senders_leaves_one_delivered_record() -> None:
    # 5 calls alone, up to 7 with the other in the way; what a schedule leaves over runs at its end
    orders = set()
    for schedule in all_schedules(5, 5):
        world = a_world()
        results = two_senders(schedule, world)
        orders.add(results["trace"])
        notice = world.the_notice()
        assert notice.status == "delivered", schedule
        assert notice.next_attempt_at is None
        first = next(entry for entry in notice.attempt_log if entry.result == "delivered")
        assert notice.provider_reference == first.reference, schedule
        mails = len(world.provider.accepted)
        assert [entry.result for entry in notice.attempt_log].count("delivered") == mails, schedule
        assert world.telemetry.total("DuplicateDelivery") == mails - 1, schedule
        assert world.telemetry.total("NoticeDelivered") == 1, schedule
    assert len(orders) > 100


def test_the_same_schedule_gives_the_same_run_twice() -> None:
    def run() -> tuple:
        world = a_world()
        results = two_senders("ABBAABAB", world)
        return results, world.store.items("Notices"), world.telemetry.lines

    assert run() == run()


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_duplicate_delivered_while_the_first_sender_stands_before_any_call_loses_nothing(stop) -> None:
    world = a_world()
    gate = Gate()
    gate.on_call = Lever(lambda: world.worker().told(), nth=stop)

    assert world.worker(gate).handle(settled()) == []

    assert gate.on_call.pulled
    assert_settled(world)
    # the second sender claims in the first one's way, unless the first has claimed nothing yet
    assert len(world.provider.accepted) == (1 if stop <= 3 else 2)


# -- lost replies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", range(1, 6))
def test_a_reply_lost_at_any_call_ends_in_one_delivered_record(call) -> None:
    world = a_world()
    gate = Gate()
    gate.after_call = Lever(raising(ReplyLost()), nth=call)

    assert world.worker(gate).handle(settled()) == []

    world.quiesce()
    assert_settled(world)
    assert len(world.provider.accepted) == 1
    assert world.telemetry.total("DuplicateDelivery") == 0
    assert world.telemetry.total("NoticeDelivered") == 1
    assert [result for _, result in log_of(world)].count("delivered") == 1


def test_a_claim_whose_reply_was_lost_is_ours_and_the_notice_is_sent_once() -> None:
    world = a_world()
    gate = Gate()
    gate.after_call = Lever(raising(ReplyLost()), operation="PutItem")

    told = world.worker(gate).told()

    assert (told.result, told.attempt) == ("delivered", 1)
    assert len(world.provider.accepted) == 1
    assert log_of(world) == [("claim-1", "delivered")]


def test_an_outcome_whose_reply_was_lost_is_a_success_and_no_duplicate() -> None:
    world = a_world()
    gate = Gate()
    gate.after_call = Lever(raising(ReplyLost()), operation="UpdateItem")

    told = world.worker(gate).told()

    assert told.recorded is None
    assert log_of(world) == [("claim-1", "delivered")]
    assert world.telemetry.total("DuplicateDelivery") == 0
    assert world.telemetry.total("OutcomeNotRecorded") == 0


# -- every crash and every refusal ----------------------------------------------------------------------------------


def spoiled(world: World, call: int, when: str, error: BaseException) -> list[str]:
    """Handle the event with this call spoiled; return the messages that come back."""
    gate = Gate()
    lever = Lever(raising(error), nth=call)
    if when == "before":
        gate.on_call = lever
    else:
        gate.after_call = lever
    try:
        reported = world.worker(gate).handle(settled())
    except Killed:
        return [settled()]
    finally:
        assert lever.pulled
    return [settled() for _ in reported]


@pytest.mark.parametrize("feedback", [True, False], ids=["with feedback", "without feedback"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", range(1, 6))
def test_a_sender_killed_at_any_call_ends_with_the_notice_delivered(call, when, feedback) -> None:
    world = a_world()
    back = spoiled(world, call, when, Killed())

    world.quiesce(*back, feedback=feedback)

    assert_settled(world)
    assert world.the_notice().status == "delivered"
    interrupted_after_sending = (call, when) in {(4, "after"), (5, "before")}
    assert len(world.provider.accepted) == (2 if interrupted_after_sending else 1)


@pytest.mark.parametrize("call", [4, 5])
def test_feedback_before_the_redelivery_saves_the_second_mail(call) -> None:
    world = a_world()
    back = spoiled(world, call, "after" if call == 4 else "before", Killed())
    world.worker().handle_feedback(ses_event(world.provider.accepted[0]))

    world.quiesce(*back)

    assert_settled(world)
    assert len(world.provider.accepted) == 1
    assert world.telemetry.total("NoticeAlreadyHandled") == 1


@pytest.mark.parametrize("feedback", [True, False], ids=["with feedback", "without feedback"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException", "time-out"])
@pytest.mark.parametrize("call", [1, 2, 3, 5])
def test_a_database_call_that_fails_ends_with_the_notice_delivered(call, code, when, feedback) -> None:
    error = read_timeout() if code == "time-out" else refusal("Operation", code)
    world = a_world()
    back = spoiled(world, call, when, error)

    assert len(back) == (1 if call == 3 else 0), (
        "a joint read that fails is made alone; a claim is the queue's to repeat"
    )
    world.quiesce(*back, feedback=feedback)

    assert_settled(world)
    assert world.the_notice().status == "delivered"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", range(1, 10))
def test_a_retry_killed_at_any_call_ends_with_the_notice_delivered(call, when) -> None:
    world = a_world()
    world.provider.script.append(THROTTLED)
    world.worker().told()
    world.clock.advance(timedelta(minutes=16))
    gate = Gate()
    lever = Lever(raising(Killed()), nth=call)
    if when == "before":
        gate.on_call = lever
    else:
        gate.after_call = lever
    killed = []
    worker = world.worker(gate)
    bodies: list[str] = []
    try:
        worker.run_retry()  # 4 calls: two queries, a move, a batch
        bodies = [message.body for message in world.queues.sent]
        world.queues.sent.clear()
        worker.handle(*bodies)  # and its event: the job, the notice, the claim, the requester, the mail, the outcome
    except Killed:
        killed.append(True)

    world.quiesce(*bodies)

    assert killed
    assert_settled(world)
    assert world.the_notice().status == "delivered"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", [1, 2])
def test_feedback_killed_at_any_call_ends_with_the_notice_delivered_once(call, when) -> None:
    world = a_world()
    spoiled(world, 5, "before", refusal("UpdateItem", "AccessDeniedException"))
    event = ses_event(world.provider.accepted[0])
    gate = Gate()
    lever = Lever(raising(Killed()), nth=call)
    if when == "before":
        gate.on_call = lever
    else:
        gate.after_call = lever

    with pytest.raises(Killed):
        world.worker(gate).handle_feedback(event)
    world.worker().handle_feedback(event)  # the queue brings it back
    world.quiesce()

    assert_settled(world)
    assert len(world.provider.accepted) == 1
    assert [result for _, result in log_of(world)].count("delivered") == 1


def test_a_sender_killed_at_each_of_its_lives_ends_with_the_notice_delivered() -> None:
    world = a_world()
    for call, when in itertools.product(range(1, 6), ("before", "after")):
        gate = Gate()
        lever = Lever(raising(Killed()), nth=call)
        if when == "before":
            gate.on_call = lever
        else:
            gate.after_call = lever
        try:
            world.worker(gate).handle(settled())
        except Killed:
            continue

    world.quiesce(settled())

    assert_settled(world)


# -- feedback and the outcome write ---------------------------------------------------------------------------------


def first_letter() -> Accepted:
    tags = notice_tags(JOB_ID, OUTCOME, "claim-1")
    return Accepted(Letter("dana@example.com", "subject", "text", "html", tags), "message-1")


EVENTS = {
    "Send": ("send", {}),
    "Delivery": ("delivery", {}),
    "DeliveryDelay": ("delivery_delay", {}),
    "Bounce": ("permanent_bounce", {"bounceType": "Permanent", "bounceSubType": "General"}),
    "Complaint": ("complaint", {}),
}


@pytest.mark.parametrize("order", ["".join(each) for each in itertools.product("AF", repeat=4)])
@pytest.mark.parametrize("event_type", EVENTS)
@pytest.mark.parametrize("answer", ["accepted", "unknown"])
def test_feedback_in_any_order_with_the_outcome_write_settles_the_notice_once(answer, event_type, order) -> None:
    feedback_type, facts = EVENTS[event_type]
    world = a_world()
    turns = Turns("AAAA" + order)  # A's four calls up to its mail, then as it comes
    gates = {name: turns.gate(name) for name in "AF"}
    if answer == "unknown":
        gates["A"].after_call = Lever(raising(ReplyLost()), operation=SEND_EMAIL)
    sender, feedback = (world.worker(gates[name]) for name in "AF")
    event = ses_event(first_letter(), event_type, **facts)

    results = turns.run(A=lambda: sender.handle(settled()), F=lambda: feedback.handle_feedback(event))

    assert results == {"A": [], "F": []}
    notice = world.the_notice()
    assert (notice.status, notice.provider_reference) == ("delivered", "message-1")
    assert notice.next_attempt_at is None
    assert notice.error is None
    assert notice.feedback.type == feedback_type
    assert [result for _, result in log_of(world)].count("delivered") == 1
    assert {"DuplicateDelivery", "OutcomeNotRecorded"}.isdisjoint(world.telemetry.metrics())
    assert world.telemetry.total("NoticeDelivered") == 1


@pytest.mark.parametrize("order", ["".join(each) for each in itertools.product("FG", repeat=4)])
def test_two_events_at_once_keep_the_graver_news_and_one_delivery(order) -> None:
    world = a_world()
    spoiled(world, 5, "before", refusal("UpdateItem", "AccessDeniedException"))
    turns = Turns(order)
    workers = {name: world.worker(turns.gate(name)) for name in "FG"}
    bounce = ses_event(first_letter(), "Bounce", bounceType="Permanent")
    sent = ses_event(first_letter(), "Send")

    results = turns.run(F=lambda: workers["F"].handle_feedback(bounce), G=lambda: workers["G"].handle_feedback(sent))

    assert results == {"F": [], "G": []}
    assert world.the_notice().feedback.type == "permanent_bounce"
    assert log_of(world) == [("claim-1", "delivered")]
    assert world.telemetry.total("NoticeDelivered") == 1


@pytest.mark.parametrize("order", ["".join(each) for each in itertools.product("BF", repeat=6)])
def test_feedback_of_a_dead_sender_and_a_second_sender_in_any_order_lose_nothing(order) -> None:
    world = a_world()
    spoiled(world, 4, "after", Killed())  # claim-1 was accepted as message-1 and died
    turns = Turns(order)
    workers = {name: world.worker(turns.gate(name)) for name in "BF"}
    event = ses_event(first_letter())

    turns.run(B=lambda: workers["B"].handle(settled()), F=lambda: workers["F"].handle_feedback(event))
    world.quiesce()

    assert_settled(world)
    delivered = [entry for entry in world.the_notice().attempt_log if entry.result == "delivered"]
    assert {entry.reference for entry in delivered} == set(references(world))
    assert world.the_notice().feedback.type == "send"
    assert world.telemetry.total("DuplicateDelivery") == len(delivered) - 1
    assert world.telemetry.total("NoticeDelivered") == 1


# -- the retry ------------------------------------------------------------------------------------------------------


def ten_due(world: World) -> None:
    for number in range(10):
        world.job(f"job-{number}")
        world.provider.script.append(THROTTLED)
        world.worker().told(f"job-{number}")
    world.clock.advance(timedelta(minutes=16))
    world.provider.letters.clear()


@pytest.mark.parametrize("schedule", ["AB" * 20, "AAB" * 15, "A" + "B" * 30, "AAAAAAAB" * 6, "ABBBAAAB" * 6])
def test_of_two_runs_at_once_each_notice_is_queued_by_one(schedule) -> None:
    world = a_world()
    ten_due(world)
    turns = Turns(schedule)
    workers = {name: world.worker(turns.gate(name)) for name in "AB"}

    runs = turns.run(**{name: worker.run_retry for name, worker in workers.items()})

    assert sorted(event["job_id"] for event in world.queues.events()) == [f"job-{number}" for number in range(10)]
    assert runs["A"].enqueued + runs["B"].enqueued == 10
    assert all(event["retry"] == world.the_notice(event["job_id"]).revision for event in world.queues.events())
    world.quiesce()
    assert len(world.provider.accepted) == 10
    assert all(world.the_notice(f"job-{number}").status == "delivered" for number in range(10))


RETRIED_CALLS = 6  # the job with the notice, the requester, the claim, the mail, the outcome


@pytest.mark.parametrize("stop", range(1, RETRIED_CALLS))
@pytest.mark.parametrize("first", ["retry", "fresh"])
def test_a_retry_and_a_fresh_delivery_meet_in_the_claim(first, stop) -> None:
    world = a_world()
    world.provider.script.append(THROTTLED)
    world.worker().told()
    world.clock.advance(timedelta(minutes=16))
    world.worker().run_retry()
    (retried,) = [message.body for message in world.queues.sent]
    world.queues.sent.clear()
    outer, inner = (retried, settled()) if first == "retry" else (settled(), retried)
    gate = Gate()
    gate.on_call = Lever(lambda: world.worker().handle(inner), nth=stop)

    assert world.worker(gate).handle(outer) == []

    assert gate.on_call.pulled
    world.quiesce()
    assert_settled(world)
    assert world.the_notice().status == "delivered"
    if first == "fresh":
        assert len(world.provider.accepted) == 1, "after a fresh claim the retry's event is void"
    assert world.telemetry.total("NoticeDelivered") == 1


def test_events_that_pile_up_for_one_notice_lead_to_one_claim() -> None:
    world = a_world()
    world.provider.script.append(THROTTLED)
    world.worker().told()
    for _ in range(4):  # an hour in which nobody reads the queue
        world.clock.advance(timedelta(minutes=16))
        world.worker().run_retry()
    bodies = [message.body for message in world.queues.sent]
    world.queues.sent.clear()
    assert len(bodies) == 4

    assert world.worker().handle(*bodies) == []

    assert world.telemetry.total("RetryOvertaken") == 3
    assert world.the_notice().attempts == 2
    assert len(world.provider.accepted) == 1


def test_piled_up_events_of_a_notice_that_fails_again_do_not_defeat_the_backoff() -> None:
    world = a_world()
    world.provider.script.extend([THROTTLED] * 5)
    world.worker().told()
    for _ in range(4):
        world.clock.advance(timedelta(minutes=16))
        world.worker().run_retry()
    bodies = [message.body for message in world.queues.sent]
    world.queues.sent.clear()

    world.worker().handle(*reversed(bodies))

    assert world.the_notice().attempts == 2


@pytest.mark.parametrize("stop", range(1, 5))
def test_a_claim_between_any_two_calls_of_the_retry_wins(stop) -> None:
    world = a_world()
    world.provider.script.append(THROTTLED)
    world.worker().told()
    world.clock.advance(timedelta(minutes=16))
    gate = Gate()
    gate.on_call = Lever(lambda: world.worker().told(), nth=stop)

    world.worker(gate).run_retry()
    world.quiesce()

    assert gate.on_call.pulled == (stop <= len(gate.calls))
    assert world.the_notice().status == "delivered"
    assert len(world.provider.accepted) == 1


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_a_delivery_recorded_while_the_retry_gives_up_wins(stop) -> None:
    world = a_world(horizon=timedelta(hours=1))
    world.provider.script.append(UNKNOWN)
    world.worker().told()
    world.clock.advance(timedelta(hours=2))
    event = ses_event(first_letter())
    gate = Gate()
    gate.on_call = Lever(lambda: world.worker().handle_feedback(event), nth=stop)

    run = world.worker(gate).run_retry()

    assert gate.on_call.pulled
    assert run.given_up == 0
    assert world.the_notice().status == "delivered"


def test_a_delivery_that_is_proved_after_the_notice_was_given_up_is_recorded() -> None:
    world = a_world(horizon=timedelta(hours=1))
    world.provider.script.append(UNKNOWN)
    world.worker().told()
    world.clock.advance(timedelta(hours=2))
    assert world.worker().run_retry().given_up == 1
    assert world.the_notice().error == "gave_up: provider_unknown: ReadTimeoutError"

    world.worker().handle_feedback(ses_event(first_letter()))

    assert world.the_notice().status == "delivered"


def test_a_provider_that_never_comes_back_ends_with_the_notice_given_up() -> None:
    world = a_world()
    world.provider.script.extend([THROTTLED] * 200)

    world.quiesce(settled())

    notice = world.the_notice()
    assert (notice.status, notice.error) == ("failed", "gave_up: throttled: TooManyRequestsException")
    assert world.clock() - START < timedelta(hours=77)
    assert world.telemetry.total("NoticeGivenUp") == 1
    assert_settled(world)


def test_an_unknown_send_that_reached_ses_is_settled_by_feedback_without_a_second_mail() -> None:
    world = a_world()
    gate = Gate()
    gate.after_call = Lever(raising(ReplyLost()), operation=SEND_EMAIL)
    assert world.worker(gate).handle(settled()) == []
    assert world.the_notice().error.startswith("provider_unknown")

    world.quiesce()

    assert_settled(world)
    assert len(world.provider.accepted) == 1
