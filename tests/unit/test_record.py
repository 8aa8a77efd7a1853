"""The notice: claim and outcome (DESIGN 3.2 to 3.4)."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta

import pytest

from fakes.clock import START, Clock
from fakes.gate import Gate, Lever, ReplyLost, raising
from fakes.store import Store, read_timeout, refusal
from notices.database import DatabaseError, Table
from notices.jobs import Job
from notices.record import (
    ERROR_LENGTH,
    LOG_LENGTH,
    NOTICE_KEYS,
    Attempt,
    Claim,
    ClaimContended,
    Feedback,
    NotClaimed,
    Notice,
    Notices,
    Recorded,
    Result,
    Status,
    one_line,
)

JOB = Job("job-1", "workspace_provisioning", "tenant-1", "requester-1")
MINUTE = timedelta(minutes=1)
ALL_RESULTS = {
    "delivered": Result.delivered("message-1"),
    "suppressed": Result.suppressed(),
    "failed": Result.failed("throttled: X", START + MINUTE),
    "failed for good": Result.failed("provider_refused: X", None),
}


class Desk:
    """A notices table with several writers at it."""

    def __init__(self, lease: timedelta = timedelta(0)) -> None:
        self.clock = Clock()
        self.store = Store()
        self.store.create("Notices", NOTICE_KEYS, due=("status", "next_attempt_at"))
        self.gate = Gate()
        self.lease = lease
        self.numbers = itertools.count(1)
        self.slept: list[float] = []
        self.notices = self.writer(self.gate)

    def writer(self, gate: Gate | None = None) -> Notices:
        return Notices(
            Table(self.store.connect(gate), "Notices", NOTICE_KEYS),
            now=self.clock,
            retention=timedelta(days=90),
            claim_lease=self.lease,
            new_claim_id=lambda: f"claim-{next(self.numbers)}",
            sleep=self.slept.append,
        )

    def claim(self, **kwargs) -> Claim:
        claim = self.notices.claim(JOB, "succeeded", **kwargs)
        assert isinstance(claim, Claim), claim
        return claim

    @property
    def item(self) -> dict:
        return self.store.item("Notices", "job-1", "succeeded")

    @property
    def notice(self) -> Notice:
        return Notice.from_raw_data(dict(self.item))

    @property
    def log(self) -> list[tuple[str, str]]:
        return [(entry.claim_id, entry.result) for entry in self.notice.attempt_log]


@pytest.fixture
def desk():
    desk = Desk()
    yield desk
    assert all(getattr(hook, "pulled", True) for hook in (desk.gate.on_call, desk.gate.after_call))


# -- claim --------------------------------------------------------------------------------------------------------


def test_a_first_claim_is_one_put_without_a_read(desk):
    claim = desk.claim(settled_at=START - MINUTE)

    assert desk.gate.calls == ["PutItem"]
    assert claim == Claim("job-1", "succeeded", JOB.kind, "claim-1", 1, START - MINUTE)


def test_a_first_claim_writes_the_whole_item(desk):
    desk.claim(settled_at=START - MINUTE)

    assert desk.item == {
        "job_id": {"S": "job-1"},
        "outcome": {"S": "succeeded"},
        "status": {"S": "pending"},
        "kind": {"S": "workspace_provisioning"},
        "tenant_id": {"S": "tenant-1"},
        "requester_id": {"S": "requester-1"},
        "attempts": {"N": "1"},
        "claim_id": {"S": "claim-1"},
        "claimed_at": {"S": "2026-11-29T10:00:00.000000+0000"},
        "created_at": {"S": "2026-11-29T10:00:00.000000+0000"},
        "settled_at": {"S": "2026-11-29T09:59:00.000000+0000"},
        "next_attempt_at": {"S": "2026-11-29T10:15:00.000000+0000"},
        "attempt_log": {"L": []},
        "revision": {"N": "1"},
        "expires_at": {"N": str(int((START + timedelta(days=90)).timestamp()))},
    }


def test_a_claim_id_is_new_and_fits_a_mail_tag():
    store = Store()
    store.create("Notices", NOTICE_KEYS)
    notices = Notices(Table(store.connect(), "Notices", NOTICE_KEYS), now=Clock(), retention=timedelta(1))
    ids = {notices.claim(Job(f"job-{number}", "kind"), "succeeded").claim_id for number in range(5)}
    assert len(ids) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,256}", claim_id) for claim_id in ids)


def test_a_pending_notice_is_claimed_again_and_the_earlier_claim_logged_as_abandoned(desk):
    desk.claim()
    desk.clock.advance(MINUTE)

    claim = desk.claim()

    assert (claim.attempt, claim.claim_id) == (2, "claim-2")
    notice = desk.notice
    assert (notice.status, notice.attempts, notice.claim_id, notice.revision) == ("pending", 2, "claim-2", 2)
    (entry,) = notice.attempt_log
    assert (entry.attempt, entry.claim_id, entry.result, entry.recorded_at) == (
        1,
        "claim-1",
        "abandoned",
        START + MINUTE,
    )


def test_a_failed_notice_is_claimed_again_without_an_abandoned_entry(desk):
    desk.notices.record(desk.claim(), ALL_RESULTS["failed"])

    desk.claim()

    assert desk.log == [("claim-1", "failed")]
    assert (desk.notice.status, desk.notice.attempts, desk.notice.revision) == ("pending", 2, 3)


def test_a_notice_that_failed_for_good_may_be_claimed_by_a_fresh_event(desk):
    desk.notices.record(desk.claim(), ALL_RESULTS["failed for good"])
    assert desk.claim().attempt == 2


@pytest.mark.parametrize("handled", ["delivered", "suppressed"])
def test_a_handled_notice_is_refused_with_one_call_and_not_changed(desk, handled):
    desk.notices.record(desk.claim(), ALL_RESULTS[handled])
    before = desk.item
    desk.gate.calls.clear()

    assert desk.notices.claim(JOB, "succeeded") is NotClaimed.HANDLED
    assert desk.gate.calls == ["PutItem"]
    assert desk.item == before


def test_a_claim_keeps_created_at_settled_at_log_and_feedback_and_renews_the_rest(desk):
    desk.notices.record(desk.claim(settled_at=START - MINUTE), ALL_RESULTS["failed"])
    news = Feedback(type="send", at=START, message_id="message-9")
    desk.notices.add_feedback(desk.notice, feedback=news, accepted=None)
    desk.clock.advance(timedelta(days=1))

    desk.notices.claim(
        Job("job-1", "export", "tenant-2", "requester-2"), "succeeded", settled_at=START + timedelta(hours=9)
    )

    notice = desk.notice
    assert (notice.created_at, notice.settled_at) == (START, START - MINUTE)
    assert desk.log == [("claim-1", "failed")]
    assert notice.feedback.message_id == "message-9"
    assert (notice.kind, notice.tenant_id, notice.requester_id) == ("export", "tenant-2", "requester-2")
    assert notice.claimed_at == START + timedelta(days=1)
    assert notice.next_attempt_at == START + timedelta(days=1, minutes=15)
    assert notice.expires_at == int((START + timedelta(days=91)).timestamp())
    assert {"handled_at", "error", "provider_reference"}.isdisjoint(desk.item)


def test_a_claim_takes_settled_at_of_a_later_event_where_none_was_known(desk):
    desk.claim()
    assert desk.claim(settled_at=START).settled_at == START
    assert desk.claim().settled_at == START


def test_a_claim_trims_the_log_to_the_latest_fifty(desk):
    for _ in range(LOG_LENGTH + 3):
        desk.claim()

    attempts = [entry.attempt for entry in desk.notice.attempt_log]
    assert attempts == list(range(3, LOG_LENGTH + 3))


def test_a_claim_loses_no_feedback_written_after_it_read_the_item(desk):
    desk.claim()
    other = desk.writer()

    def feedback_comes() -> None:
        news = Feedback(type="send", at=START)
        assert other.add_feedback(desk.notice, feedback=news, accepted=None)

    desk.gate.on_call = Lever(feedback_comes, operation="PutItem", nth=2)
    claim = desk.claim()

    assert desk.notice.feedback.type == "send"
    assert (claim.attempt, desk.notice.attempts, desk.notice.revision) == (2, 2, 3)


def test_a_put_whose_reply_was_lost_is_recognised_by_its_claim_id(desk):
    desk.gate.after_call = Lever(raising(ReplyLost()), operation="PutItem")

    claim = desk.claim()

    assert (claim.claim_id, claim.attempt) == ("claim-1", 1)
    assert desk.gate.calls == ["PutItem", "PutItem"]
    assert (desk.notice.attempts, desk.notice.revision, desk.log) == (1, 1, [])


def test_a_reclaim_whose_reply_was_lost_is_recognised_too(desk):
    desk.claim()
    desk.gate.after_call = Lever(raising(ReplyLost()), operation="PutItem", nth=2)

    claim = desk.claim()

    assert (claim.claim_id, claim.attempt) == ("claim-2", 2)
    assert desk.log == [("claim-1", "abandoned")]


def test_a_put_that_landed_and_was_then_claimed_by_another_is_claimed_again(desk):
    other = desk.writer()

    def reply_is_lost_and_another_claims() -> None:
        other.claim(JOB, "succeeded")
        raise ReplyLost

    desk.gate.after_call = Lever(reply_is_lost_and_another_claims, operation="PutItem")
    claim = desk.claim()

    assert claim.attempt == 3
    assert desk.notice.claim_id == claim.claim_id


def test_a_claim_whose_own_put_landed_and_was_settled_by_feedback_is_refused_as_handled(desk):
    other = desk.writer()

    def reply_is_lost_and_another_delivers() -> None:
        other.record(Claim("job-1", "succeeded", JOB.kind, "claim-1", 1), Result.delivered("message-1"))
        raise ReplyLost

    desk.gate.after_call = Lever(reply_is_lost_and_another_delivers, operation="PutItem")
    assert desk.notices.claim(JOB, "succeeded") is NotClaimed.HANDLED


def test_others_at_every_one_of_five_tries_make_it_contended(desk):
    other = desk.writer()
    desk.gate.on_call = lambda operation, kwargs: other.claim(JOB, "succeeded")

    with pytest.raises(ClaimContended):
        desk.notices.claim(JOB, "succeeded")
    assert desk.gate.calls == ["PutItem"] * 5


def test_four_interruptions_do_not_keep_a_claim_from_succeeding(desk):
    other = desk.writer()
    left = iter(range(4))
    desk.gate.on_call = lambda operation, kwargs: (
        other.claim(JOB, "succeeded") if next(left, None) is not None else None
    )
    assert desk.claim().attempt == 5


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (refusal("PutItem", "ProvisionedThroughputExceededException"), "ProvisionedThroughputExceededException"),
        (refusal("PutItem", "TransactionConflictException"), "TransactionConflictException"),
        (refusal("PutItem", "ThrottlingException"), "ThrottlingException"),
        (refusal("PutItem", "AccessDeniedException"), "AccessDeniedException"),
        (read_timeout(), "ReadTimeoutError"),
    ],
)
def test_only_a_failed_condition_means_not_ours(desk, error, code):
    desk.gate.on_call = Lever(raising(error), operation="PutItem")

    with pytest.raises(DatabaseError, match=f"PutItem on Notices: {code}"):
        desk.notices.claim(JOB, "succeeded")
    assert desk.item is None


def test_a_claim_that_timed_out_but_landed_is_claimed_again_by_the_redelivery(desk):
    desk.gate.after_call = Lever(raising(read_timeout()), operation="PutItem")
    with pytest.raises(DatabaseError):
        desk.notices.claim(JOB, "succeeded")

    assert desk.claim().attempt == 2
    assert desk.log == [("claim-1", "abandoned")]


def test_a_refusal_that_does_not_show_the_item_is_followed_by_a_read(desk):
    desk.claim()
    desk.gate.on_call = Lever(
        raising(refusal("PutItem", "ConditionalCheckFailedException")), operation="PutItem", nth=2
    )
    assert desk.claim().attempt == 2
    assert desk.gate.calls[-3:] == ["PutItem", "GetItem", "PutItem"]


def test_an_item_that_expires_between_the_tries_is_claimed_anew(desk):
    desk.claim()
    desk.gate.on_call = Lever(lambda: desk.store.discard("Notices", "job-1", "succeeded"), operation="PutItem", nth=2)
    claim = desk.claim()
    assert desk.notice.claim_id == claim.claim_id


# -- the retry's own event ----------------------------------------------------------------------------------------


def test_the_retry_claims_at_the_revision_that_it_names(desk):
    desk.claim()
    revision = desk.notices.move_on(desk.notice)
    assert revision == 2

    claim = desk.claim(retry=2)

    assert claim.attempt == 2
    assert desk.notice.revision == 3


@pytest.mark.parametrize("named", [1, 3, 7])
def test_the_retry_is_overtaken_at_any_other_revision(desk, named):
    desk.claim()
    desk.notices.move_on(desk.notice)
    before = desk.item

    assert desk.notices.claim(JOB, "succeeded", retry=named) is NotClaimed.OVERTAKEN
    assert desk.item == before


def test_the_retry_of_a_notice_that_is_gone_creates_nothing(desk):
    assert desk.notices.claim(JOB, "succeeded", retry=1) is NotClaimed.OVERTAKEN
    assert desk.item is None


def test_the_retry_of_a_handled_notice_finds_it_handled(desk):
    desk.notices.record(desk.claim(), ALL_RESULTS["delivered"])
    assert desk.notices.claim(JOB, "succeeded", retry=2) is NotClaimed.HANDLED


def test_the_retry_gives_way_to_a_claim_between_its_read_and_its_put(desk):
    desk.claim()
    desk.notices.move_on(desk.notice)
    other = desk.writer()
    desk.gate.on_call = Lever(lambda: other.claim(JOB, "succeeded"), operation="PutItem")

    assert desk.notices.claim(JOB, "succeeded", retry=2) is NotClaimed.OVERTAKEN
    assert desk.notice.attempts == 2


def test_the_retrys_own_put_whose_reply_was_lost_is_not_overtaken_by_itself(desk):
    desk.claim()
    desk.notices.move_on(desk.notice)
    desk.gate.after_call = Lever(raising(ReplyLost()), operation="PutItem")

    assert desk.claim(retry=2).attempt == 2


# -- lease --------------------------------------------------------------------------------------------------------


def test_without_a_lease_a_fresh_pending_notice_is_claimed(desk):
    desk.claim()
    assert desk.claim().attempt == 2


def test_within_the_lease_a_pending_notice_is_left_alone():
    desk = Desk(lease=MINUTE)
    desk.claim()
    before = desk.item
    desk.clock.advance(seconds=59)

    assert desk.notices.claim(JOB, "succeeded") is NotClaimed.IN_PROGRESS
    assert desk.item == before


def test_after_the_lease_a_pending_notice_is_claimed():
    desk = Desk(lease=MINUTE)
    desk.claim()
    desk.clock.advance(seconds=60)
    assert desk.claim().attempt == 2


def test_the_lease_holds_for_an_unknown_notice_until_its_next_attempt():
    desk = Desk(lease=MINUTE)
    due = START + timedelta(minutes=10)
    desk.notices.record(desk.claim(), Result.failed("provider_unknown: ReadTimeoutError", due))
    desk.clock.advance(seconds=599)
    assert desk.notices.claim(JOB, "succeeded") is NotClaimed.IN_PROGRESS
    desk.clock.advance(seconds=1)
    assert desk.claim().attempt == 2


def test_the_lease_does_not_hold_the_retrys_own_event_back_from_an_unknown_notice():
    desk = Desk(lease=MINUTE)
    due = START + timedelta(minutes=10)
    desk.notices.record(desk.claim(), Result.failed("provider_unknown: ReadTimeoutError", due))
    revision = desk.notices.move_on(desk.notice)
    assert desk.claim(retry=revision).attempt == 2


def test_the_lease_does_not_hold_for_a_notice_that_failed_otherwise():
    desk = Desk(lease=MINUTE)
    desk.notices.record(desk.claim(), ALL_RESULTS["failed"])
    assert desk.claim().attempt == 2


def test_without_a_lease_an_unknown_notice_is_claimed_at_once(desk):
    desk.notices.record(desk.claim(), Result.failed("provider_unknown: X", START + timedelta(minutes=10)))
    assert desk.claim().attempt == 2


# -- outcome ------------------------------------------------------------------------------------------------------


def test_delivered_sets_reference_and_handled_at_and_removes_what_was_next(desk):
    claim = desk.claim()
    desk.clock.advance(MINUTE)

    assert desk.notices.record(claim, Result.delivered("message-1")) is Recorded.WRITTEN

    notice = desk.notice
    assert (notice.status, notice.provider_reference, notice.handled_at) == ("delivered", "message-1", START + MINUTE)
    assert {"next_attempt_at", "error"}.isdisjoint(desk.item)
    assert (notice.revision, notice.attempts) == (2, 1)
    assert notice.expires_at == int((START + MINUTE + timedelta(days=90)).timestamp())
    (entry,) = notice.attempt_log
    assert (entry.attempt, entry.claim_id, entry.result, entry.reference, entry.error) == (
        1,
        "claim-1",
        "delivered",
        "message-1",
        None,
    )


def test_suppressed_is_handled_without_a_reference(desk):
    assert desk.notices.record(desk.claim(), Result.suppressed()) is Recorded.WRITTEN
    assert desk.notice.status == "suppressed"
    assert desk.notice.handled_at == START
    assert {"next_attempt_at", "error", "provider_reference"}.isdisjoint(desk.item)


def test_failed_keeps_its_error_and_its_next_attempt(desk):
    assert desk.notices.record(desk.claim(), ALL_RESULTS["failed"]) is Recorded.WRITTEN
    notice = desk.notice
    assert (notice.status, notice.error, notice.handled_at) == ("failed", "throttled: X", START)
    assert notice.next_attempt_at == START + MINUTE
    assert notice.attempt_log[0].error == "throttled: X"


def test_failed_for_good_has_no_next_attempt(desk):
    desk.notices.record(desk.claim(), ALL_RESULTS["failed for good"])
    assert desk.notice.status == "failed"
    assert "next_attempt_at" not in desk.item


@pytest.mark.parametrize("late", ["suppressed", "failed", "failed for good"])
def test_delivered_is_final_and_a_late_result_joins_the_log_alone(desk, late):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, Result.delivered("message-2"))
    before = desk.item

    assert desk.notices.record(first, ALL_RESULTS[late]) is Recorded.LOST

    assert desk.log[-1] == ("claim-1", str(ALL_RESULTS[late].status))
    assert {**desk.item, "attempt_log": None, "revision": None} == {**before, "attempt_log": None, "revision": None}
    assert desk.notice.revision == 4


def test_a_second_delivery_keeps_the_first_reference_and_is_called_by_its_name(desk):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, Result.delivered("message-2"))

    assert desk.notices.record(first, Result.delivered("message-1")) is Recorded.SECOND_DELIVERY

    assert desk.notice.provider_reference == "message-2"
    assert desk.log == [("claim-1", "abandoned"), ("claim-2", "delivered"), ("claim-1", "delivered")]


def test_a_delivery_is_recorded_whoever_has_the_latest_claim(desk):
    first = desk.claim()
    desk.claim()
    assert desk.notices.record(first, Result.delivered("message-1")) is Recorded.WRITTEN
    assert desk.notice.status == "delivered"


def test_suppressed_gives_way_to_delivered_alone(desk):
    first, second, third = desk.claim(), desk.claim(), desk.claim()
    desk.notices.record(first, Result.suppressed())
    assert desk.notices.record(second, ALL_RESULTS["failed"]) is Recorded.LOST
    assert desk.notice.status == "suppressed"
    assert desk.notices.record(third, Result.delivered("message-3")) is Recorded.WRITTEN
    assert desk.notice.status == "delivered"


def test_a_second_suppressed_joins_the_log_alone(desk):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, Result.suppressed())
    assert desk.notices.record(first, Result.suppressed()) is Recorded.LOST


def test_suppressed_replaces_failed(desk):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, ALL_RESULTS["failed"])
    assert desk.notices.record(first, Result.suppressed()) is Recorded.WRITTEN
    assert desk.notice.status == "suppressed"
    assert "error" not in desk.item


def test_delivered_replaces_failed_even_failed_for_good(desk):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, ALL_RESULTS["failed for good"])
    assert desk.notices.record(first, Result.delivered("message-1")) is Recorded.WRITTEN
    assert desk.notice.provider_reference == "message-1"
    assert "error" not in desk.item


def test_failed_is_written_only_by_the_latest_claim(desk):
    first, second = desk.claim(), desk.claim()

    assert desk.notices.record(first, ALL_RESULTS["failed for good"]) is Recorded.LOST

    assert (desk.notice.status, desk.notice.claim_id) == ("pending", "claim-2")
    assert desk.notice.next_attempt_at is not None
    assert desk.log == [("claim-1", "abandoned"), ("claim-1", "failed")]
    assert desk.notices.record(second, ALL_RESULTS["failed"]) is Recorded.WRITTEN


@pytest.mark.parametrize("result", ALL_RESULTS)
def test_a_result_for_an_item_that_is_gone_creates_nothing(desk, result):
    claim = desk.claim()
    desk.store.discard("Notices", "job-1", "succeeded")

    assert desk.notices.record(claim, ALL_RESULTS[result]) is Recorded.ITEM_GONE
    assert desk.item is None


def test_a_delivery_whose_item_expired_and_was_claimed_anew_is_recorded_and_not_only_logged(desk):
    claim = desk.claim()
    desk.store.discard("Notices", "job-1", "succeeded")
    other = desk.writer()
    # the write is refused because there is no item; before it is looked at again, another event claims
    desk.gate.on_call = Lever(lambda: other.claim(JOB, "succeeded"), operation="GetItem")

    assert desk.notices.record(claim, Result.delivered("message-1")) is Recorded.WRITTEN
    assert desk.notice.status == "delivered"


@pytest.mark.parametrize("result", ALL_RESULTS)
def test_a_result_whose_reply_was_lost_is_in_the_log_once_and_counts_as_written(desk, result):
    claim = desk.claim()
    desk.gate.after_call = Lever(raising(ReplyLost()), operation="UpdateItem")

    assert desk.notices.record(claim, ALL_RESULTS[result]) is Recorded.WRITTEN
    assert desk.log == [("claim-1", str(ALL_RESULTS[result].status))]
    assert desk.notice.revision == 2


@pytest.mark.parametrize("result", ALL_RESULTS)
def test_a_losing_result_whose_reply_was_lost_is_in_the_log_once(desk, result):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, Result.delivered("message-2"))
    desk.gate.after_call = Lever(raising(ReplyLost()), operation="UpdateItem", nth=2)  # the write to the log

    desk.notices.record(first, ALL_RESULTS[result])

    assert desk.log[2:] == [("claim-1", str(ALL_RESULTS[result].status))]


@pytest.mark.parametrize("result", ALL_RESULTS)
def test_a_result_that_timed_out_but_landed_is_in_the_log_once(desk, result):
    claim = desk.claim()
    desk.gate.after_call = Lever(raising(read_timeout()), operation="UpdateItem")

    assert desk.notices.record(claim, ALL_RESULTS[result]) is Recorded.WRITTEN
    assert desk.log == [("claim-1", str(ALL_RESULTS[result].status))]
    assert len(desk.slept) == 1


def test_a_delivery_that_feedback_recorded_first_is_known_and_no_second_one(desk):
    claim = desk.claim()
    entry = Attempt(attempt=1, claim_id="claim-1", recorded_at=START, result="delivered", reference="message-1")
    desk.notices.add_feedback(desk.notice, feedback=None, accepted=entry)
    before = desk.item
    desk.clock.advance(seconds=1)

    assert desk.notices.record(claim, Result.delivered("message-1")) is Recorded.KNOWN
    assert desk.item == before


def test_a_delivery_that_feedback_recorded_without_our_claim_is_known_by_its_reference(desk):
    claim = desk.claim()
    entry = Attempt(attempt=1, claim_id="another", recorded_at=START, result="delivered", reference="message-1")
    desk.notices.add_feedback(desk.notice, feedback=None, accepted=entry)
    assert desk.notices.record(claim, Result.delivered("message-1")) is Recorded.KNOWN


def test_an_abandoned_entry_with_our_claim_id_is_no_result_of_ours(desk):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, Result.delivered("message-2"))
    assert ("claim-1", "abandoned") in desk.log
    assert desk.notices.record(first, Result.delivered("message-1")) is Recorded.SECOND_DELIVERY


def test_a_failure_after_feedback_proved_the_delivery_is_known_and_changes_nothing(desk):
    claim = desk.claim()
    entry = Attempt(attempt=1, claim_id="claim-1", recorded_at=START, result="delivered", reference="message-1")
    desk.notices.add_feedback(desk.notice, feedback=None, accepted=entry)

    assert desk.notices.record(claim, ALL_RESULTS["failed"]) is Recorded.KNOWN
    assert desk.notice.status == "delivered"


def test_a_delivery_is_written_although_the_notice_was_closed_under_its_claim(desk):
    claim = desk.claim()
    assert desk.notices.close(desk.notice, "gave_up: abandoned")

    assert desk.notices.record(claim, Result.delivered("message-1")) is Recorded.WRITTEN
    assert desk.notice.status == "delivered"


def test_that_the_notice_was_closed_under_its_claim_does_not_make_a_second_delivery_known(desk):
    first = desk.claim()
    desk.notices.close(desk.notice, "gave_up: abandoned")
    desk.notices.record(desk.claim(), Result.delivered("message-2"))

    assert desk.notices.record(first, Result.delivered("message-1")) is Recorded.SECOND_DELIVERY
    assert desk.log[-1] == ("claim-1", "delivered")


def test_a_losing_result_is_logged_although_others_write_in_between(desk):
    first, second = desk.claim(), desk.claim()
    desk.notices.record(second, Result.delivered("message-2"))
    other = desk.writer()

    def feedback_comes() -> None:
        other.add_feedback(desk.notice, feedback=Feedback(type="delivery", at=START), accepted=None)

    desk.gate.on_call = Lever(feedback_comes, operation="UpdateItem", nth=2)
    assert desk.notices.record(first, ALL_RESULTS["failed"]) is Recorded.LOST
    assert desk.log[-1] == ("claim-1", "failed")
    assert desk.notice.feedback.type == "delivery"


def test_a_write_that_fails_is_tried_again_after_a_pause(desk):
    claim = desk.claim()
    desk.gate.on_call = Lever(raising(refusal("UpdateItem", "ThrottlingException")), operation="UpdateItem")

    assert desk.notices.record(claim, Result.delivered("message-1")) is Recorded.WRITTEN
    assert desk.gate.calls.count("UpdateItem") == 2
    assert len(desk.slept) == 1


def test_a_write_that_keeps_failing_raises_and_leaves_the_notice_pending(desk):
    claim = desk.claim()
    before = desk.item
    desk.gate.on_call = lambda operation, kwargs: raising(refusal(operation, "ThrottlingException"))()

    with pytest.raises(DatabaseError, match="ThrottlingException"):
        desk.notices.record(claim, Result.delivered("message-1"))
    assert desk.item == before


@pytest.mark.parametrize("code", ["ValidationException", "AccessDeniedException"])
def test_a_write_that_would_fail_the_same_way_again_is_tried_once(desk, code):
    claim = desk.claim()
    desk.gate.calls.clear()
    desk.gate.on_call = lambda operation, kwargs: raising(refusal(operation, code))()

    with pytest.raises(DatabaseError):
        desk.notices.record(claim, Result.delivered("message-1"))
    assert desk.gate.calls == ["UpdateItem"]
    assert desk.slept == []


# -- the other writers --------------------------------------------------------------------------------------------


def test_closing_fails_a_notice_for_good_with_its_reason(desk):
    desk.claim()
    desk.clock.advance(MINUTE)

    assert desk.notices.close(desk.notice, "gave_up: throttled")

    notice = desk.notice
    assert (notice.status, notice.error, notice.handled_at) == ("failed", "gave_up: throttled", START + MINUTE)
    assert notice.next_attempt_at is None
    assert desk.log == [("claim-1", "failed")]
    assert notice.revision == 2


@pytest.mark.parametrize("operation", ["close", "move_on", "add_feedback"])
def test_another_writer_yields_to_a_notice_that_has_moved_on(desk, operation):
    desk.claim()
    read = desk.notice
    desk.claim()
    before = desk.item

    match operation:
        case "close":
            assert not desk.notices.close(read, "gave_up: x")
        case "move_on":
            assert desk.notices.move_on(read) is None
        case _:
            news = Feedback(type="send", at=START)
            assert not desk.notices.add_feedback(read, feedback=news, accepted=None)
    assert desk.item == before


@pytest.mark.parametrize("operation", ["close", "move_on", "add_feedback"])
def test_another_writer_creates_no_item(desk, operation):
    desk.claim()
    read = desk.notice
    desk.store.discard("Notices", "job-1", "succeeded")

    match operation:
        case "close":
            assert not desk.notices.close(read, "gave_up: x")
        case "move_on":
            assert desk.notices.move_on(read) is None
        case _:
            news = Feedback(type="send", at=START)
            assert not desk.notices.add_feedback(read, feedback=news, accepted=None)
    assert desk.item is None


def test_moving_on_puts_the_next_attempt_fifteen_minutes_off_and_says_the_new_revision(desk):
    desk.notices.record(desk.claim(), ALL_RESULTS["failed"])
    desk.clock.advance(MINUTE)

    assert desk.notices.move_on(desk.notice) == 3
    assert desk.notice.next_attempt_at == START + timedelta(minutes=16)
    assert (desk.notice.revision, desk.notice.status, desk.notice.error) == (3, "failed", "throttled: X")


def test_feedback_alone_changes_nothing_else(desk):
    desk.claim()
    before = desk.item
    news = Feedback(type="permanent_bounce", at=START, detail="Permanent/General 5.1.1", message_id="message-1")
    assert desk.notices.add_feedback(desk.notice, feedback=news, accepted=None)
    assert desk.item == {
        **before,
        "revision": {"N": "2"},
        "feedback": {
            "M": {
                "type": {"S": "permanent_bounce"},
                "at": {"S": "2026-11-29T10:00:00.000000+0000"},
                "detail": {"S": "Permanent/General 5.1.1"},
                "message_id": {"S": "message-1"},
            }
        },
    }


@pytest.mark.parametrize("earlier", ["pending", "failed", "failed for good", "suppressed"])
def test_a_proved_delivery_settles_the_notice(desk, earlier):
    claim = desk.claim()
    if earlier != "pending":
        desk.notices.record(claim, ALL_RESULTS[earlier])
    entry = Attempt(attempt=1, claim_id="claim-1", recorded_at=START, result="delivered", reference="message-1")

    assert desk.notices.add_feedback(desk.notice, feedback=None, accepted=entry)

    assert (desk.notice.status, desk.notice.provider_reference) == ("delivered", "message-1")
    assert {"next_attempt_at", "error"}.isdisjoint(desk.item)
    assert desk.log[-1] == ("claim-1", "delivered")


def test_a_proved_second_delivery_joins_the_log_alone(desk):
    desk.notices.record(desk.claim(), Result.delivered("message-1"))
    entry = Attempt(attempt=1, claim_id="another", recorded_at=START, result="delivered", reference="message-2")

    assert desk.notices.add_feedback(desk.notice, feedback=None, accepted=entry)

    assert desk.notice.provider_reference == "message-1"
    assert desk.log == [("claim-1", "delivered"), ("another", "delivered")]


# -- every write --------------------------------------------------------------------------------------------------


def test_every_write_adds_one_to_the_revision(desk):
    first = desk.claim()
    revisions = [desk.notice.revision]
    second = desk.claim()
    revisions.append(desk.notice.revision)
    desk.notices.record(first, ALL_RESULTS["failed"])
    revisions.append(desk.notice.revision)
    desk.notices.move_on(desk.notice)
    revisions.append(desk.notice.revision)
    desk.notices.close(desk.notice, "gave_up: x")
    revisions.append(desk.notice.revision)
    desk.notices.record(second, Result.delivered("message-1"))
    revisions.append(desk.notice.revision)
    assert revisions == [1, 2, 3, 4, 5, 6]


def test_times_are_written_so_that_they_sort(desk):
    desk.clock.at = datetime(2026, 11, 29, 10, 0, 0, 1, tzinfo=UTC)
    desk.notices.record(desk.claim(), ALL_RESULTS["failed"])
    times = [value["S"] for name, value in desk.item.items() if name.endswith("_at") and "S" in value]
    assert len(times) == 4
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+0000", text) for text in times)


def test_an_error_is_one_line_of_at_most_256_characters():
    assert one_line(" provider_refused:\n\tno  good ") == "provider_refused: no good"
    assert len(one_line("x" * 1000)) == ERROR_LENGTH
    assert len(Result.failed("y" * 1000, None).error) == ERROR_LENGTH


@pytest.mark.parametrize(
    ("status", "handled"), [("pending", False), ("failed", False), ("delivered", True), ("suppressed", True)]
)
def test_delivered_and_suppressed_alone_are_handled(status, handled):
    assert Status(status).handled is handled


def test_a_look_up_that_fails_is_no_absent_notice(desk):
    desk.gate.on_call = Lever(raising(refusal("GetItem", "ThrottlingException")))
    with pytest.raises(DatabaseError):
        desk.notices.get("job-1", "succeeded")


# -- re-opening ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "error"), [(None, "reopened"), ("ENVIRONMENT was wrong", "reopened: ENVIRONMENT was wrong")]
)
def test_a_suppressed_notice_is_re_opened_as_failed_due_now_and_logged(desk, reason, error):
    desk.notices.record(desk.claim(), Result.suppressed())
    before = desk.notice
    now = desk.clock.advance(MINUTE)

    assert desk.notices.reopen(before, reason) is True

    notice = desk.notice
    assert (notice.status, notice.error, notice.next_attempt_at, notice.handled_at) == ("failed", error, now, now)
    assert notice.revision == before.revision + 1
    assert notice.expires_at == int((now + timedelta(days=90)).timestamp())
    assert desk.log == [("claim-1", "suppressed"), ("claim-1", "failed")]
    entry = notice.attempt_log[-1]
    assert (entry.attempt, entry.error, entry.recorded_at) == (1, error, now)


def test_a_re_opened_notice_may_be_claimed_and_delivered(desk):
    desk.notices.record(desk.claim(), Result.suppressed())
    desk.notices.reopen(desk.notice)
    claim = desk.claim()
    assert claim.attempt == 2
    assert desk.notices.record(claim, Result.delivered("message-2")) is Recorded.WRITTEN
    assert (desk.notice.status, desk.notice.error, desk.notice.next_attempt_at) == ("delivered", None, None)


@pytest.mark.parametrize("result", ["delivered", "failed", "failed for good"])
def test_only_a_suppressed_notice_is_re_opened(desk, result):
    desk.notices.record(desk.claim(), ALL_RESULTS[result])
    before = desk.item
    with pytest.raises(ValueError, match="is not re-opened"):
        desk.notices.reopen(desk.notice)
    assert desk.item == before


def test_a_delivery_that_comes_between_the_read_and_the_re_opening_stands(desk):
    claim = desk.claim()
    desk.notices.record(claim, Result.suppressed())
    read = desk.notice
    desk.notices.record(claim, Result.delivered("message-1"))

    assert desk.notices.reopen(read) is False
    assert (desk.notice.status, desk.notice.next_attempt_at) == ("delivered", None)


def test_of_two_who_re_open_a_notice_one_does(desk):
    desk.notices.record(desk.claim(), Result.suppressed())
    read = desk.notice
    assert desk.notices.reopen(read) is True
    desk.clock.advance(MINUTE)
    assert desk.notices.reopen(read) is False
    assert desk.notice.revision == read.revision + 1


def test_a_re_opening_whose_reply_was_lost_is_a_success(desk):
    desk.notices.record(desk.claim(), Result.suppressed())
    desk.gate.after_call = Lever(raising(ReplyLost()), operation="UpdateItem")
    assert desk.notices.reopen(desk.notice) is True
    assert desk.log == [("claim-1", "suppressed"), ("claim-1", "failed")]
