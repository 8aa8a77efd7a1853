"""`notices retry`: what may be tried again is, once, and nothing else."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from cli.operator import Operator
from fakes.gate import Lever, raising
from fakes.mail import MISCONFIGURED, REFUSED, THROTTLED, UNKNOWN
from fakes.queues import sqs_error
from fakes.store import read_timeout, refusal
from fakes.world import NOTICES, World
from notices.record import Claim, Result
from notices_cli.codes import CODES

ONE = ("retry", "job-1", "succeeded")


def failed(*scripted, jobs: int = 1) -> Operator:
    operator = Operator()
    for number in range(1, jobs + 1):
        operator.world.job(f"job-{number}")
        operator.world.provider.script.extend(scripted)
        operator.world.worker().told(f"job-{number}")
    return operator


def suppressed(jobs: int = 1) -> Operator:
    operator = Operator(World(production=False))
    for number in range(1, jobs + 1):
        operator.world.job(f"job-{number}")
        operator.world.worker().told(f"job-{number}")
    operator.world.production = True
    return operator


# -- one ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scripted", [THROTTLED, MISCONFIGURED, REFUSED])
def test_a_failed_notice_is_moved_on_and_queued_at_its_new_revision_and_then_delivered(scripted):
    operator = failed(scripted)
    revision = operator.world.the_notice().revision

    assert operator.asks(*ONE, "--yes")["queued"] == 1

    notice = operator.world.the_notice()
    assert notice.revision == revision + 1
    assert notice.next_attempt_at == operator.world.clock.at + timedelta(minutes=15)
    assert [event["retry"] for event in operator.world.queues.events()] == [notice.revision]
    operator.runs_the_queue()
    assert operator.world.the_notice().status == "delivered"


def test_a_delivered_notice_is_never_re_opened():
    operator = failed()
    before = operator.world.store.snapshot()
    for more in ((), ("--force",), ("--suppressed", "--reason", "x"), ("--suppressed", "--reason", "x", "--force")):
        assert "delivered" in operator.types(*ONE, "--yes", *more, code=4).stderr
    operator.types("retry", "--status", "failed", "--yes")
    operator.types("retry", "--suppressed", "--reason", "x", "--yes")
    assert operator.world.store.snapshot() == before
    assert not operator.world.queues.sent


def test_what_an_attempt_may_be_sending_is_left_alone_unless_forced():
    operator = Operator()
    worker = operator.world.worker()
    worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    assert "--force" in operator.types(*ONE, "--yes", code=4).stderr
    assert not operator.world.queues.sent
    assert operator.asks(*ONE, "--yes", "--force")["queued"] == 1


def test_an_abandoned_claim_may_be_retried():
    operator = Operator()
    worker = operator.world.worker()
    worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    operator.waits(timedelta(minutes=16))
    assert operator.asks(*ONE, "--yes")["queued"] == 1


def test_an_unknown_send_is_left_to_ses_unless_forced():
    operator = failed(UNKNOWN)
    assert "SES may have it" in operator.types(*ONE, "--yes", code=4).stderr
    assert operator.asks(*ONE, "--yes", "--force")["queued"] == 1


def test_where_there_is_no_notice_the_event_is_sent_as_the_platform_would():
    operator = Operator()
    assert operator.asks(*ONE, "--yes")["event_sent"] == 1
    (event,) = operator.world.queues.events()
    assert event == {"type": "job.settled", "version": "1", "job_id": "job-1", "outcome": "succeeded"}
    operator.runs_the_queue()
    assert operator.world.the_notice().status == "delivered"


@pytest.mark.parametrize(
    "change",
    [{"removed_at": "2026-11-29"}, {"requester_id": None}, {"kind": "export"}],
    ids=["removed", "nobody", "kind"],
)
def test_no_event_is_sent_of_which_nobody_would_be_told(change):
    operator = Operator()
    operator.world.job(**change)
    assert "Nobody would be told" in operator.types(*ONE, "--yes", code=4).stderr
    assert not operator.world.queues.sent


def test_it_shows_what_it_will_do_and_asks_and_a_no_changes_nothing():
    operator = failed(THROTTLED)
    before = operator.world.store.snapshot()
    result = operator.types(*ONE, answer="n\n", code=4)
    assert "throttled: TooManyRequestsException" in result.stdout
    assert "Put back on the queue: 1 notice?" in result.stdout
    assert "Nothing was changed" in result.stderr
    assert "--yes" in operator.types(*ONE, answer="", code=4).stderr
    assert "--yes" in operator.types(*ONE, "--json", code=4).stderr
    assert operator.world.store.snapshot() == before
    operator.types(*ONE, answer="y\n")
    assert len(operator.world.queues.sent) == 1


def test_while_sending_is_paused_it_says_that_nothing_goes_out_yet():
    operator = failed(THROTTLED)
    operator.rules.state = "DISABLED"
    assert "Sending is paused" in operator.types(*ONE, "--yes").output


# -- many -----------------------------------------------------------------------------------------------------------


def test_many_are_chosen_queued_in_tens_and_delivered():
    operator = failed(THROTTLED, jobs=25)
    document = operator.asks("retry", "--status", "failed", "--error", "throttled", "--yes")
    assert document == {
        "queued": 25, "reopened": 0, "event_sent": 0, "left": 0, "moved_on": 0, "not_queued": 0, "failed": 0,
    }  # fmt: skip
    assert operator.gate.calls.count("SendMessageBatch") == 3
    operator.runs_the_queue()
    assert len(operator.world.provider.accepted) == 25


def test_run_twice_before_the_queue_is_read_each_requester_gets_one_message():
    operator = failed(THROTTLED, jobs=12)
    for _ in range(2):
        operator.types("retry", "--status", "failed", "--yes")
    assert len(operator.world.queues.sent) == 24
    operator.runs_the_queue()
    assert len(operator.world.provider.accepted) == 12


@pytest.mark.parametrize("nth", [1, 7, 10, 11, 15])
def test_interrupted_anywhere_and_repeated_each_requester_gets_one_message(nth):
    operator = failed(THROTTLED, jobs=15)
    operator.gate.on_call = Lever(raising(KeyboardInterrupt()), operation="UpdateItem", nth=nth)
    result = operator.types("retry", "--status", "failed", "--yes", code=130)
    assert "repeated safely" in result.stderr
    assert len(operator.world.queues.sent) == nth - 1
    operator.types("retry", "--status", "failed", "--yes")
    operator.runs_the_queue()
    assert len(operator.world.provider.accepted) == 15
    assert {notice["status"]["S"] for notice in operator.world.store.items(NOTICES)} == {"delivered"}


def test_interrupted_a_script_is_told_how_far_it_came():
    operator = failed(THROTTLED, jobs=15)
    operator.gate.on_call = Lever(raising(KeyboardInterrupt()), operation="UpdateItem", nth=12)
    assert operator.asks("retry", "--status", "failed", "--yes", code=130)["queued"] == 11


def test_one_that_moves_on_meanwhile_is_left_alone():
    operator = failed(THROTTLED)
    operator.gate.on_call = Lever(lambda: operator.world.worker().told(), operation="UpdateItem")
    assert operator.asks(*ONE, "--yes")["moved_on"] == 1
    assert not operator.world.queues.sent
    assert len(operator.world.provider.accepted) == 1


def test_what_the_queue_does_not_take_is_told_and_comes_back_by_itself():
    operator = failed(THROTTLED, jobs=3)
    operator.world.queues.faults.append(sqs_error("ServiceUnavailable"))
    assert operator.asks("retry", "--status", "failed", "--yes", code=1)["not_queued"] == 3
    operator.waits(timedelta(minutes=16))
    assert operator.world.worker().run_retry().enqueued == 3


def test_a_call_that_fails_for_one_does_not_keep_the_others_back():
    operator = failed(THROTTLED, jobs=3)
    operator.gate.on_call = Lever(raising(read_timeout()), operation="UpdateItem", nth=2)
    document = operator.asks("retry", "--status", "failed", "--yes", code=1)
    assert (document["queued"], document["failed"]) == (2, 1)


def test_a_call_that_would_fail_for_all_ends_it_after_queueing_what_was_moved():
    operator = failed(THROTTLED, jobs=3)
    denied = refusal("UpdateItem", "AccessDeniedException", table=NOTICES)
    operator.gate.on_call = Lever(raising(denied), operation="UpdateItem", nth=3)
    assert "AWS denies UpdateItem" in operator.types("retry", "--status", "failed", "--yes", code=3).stderr
    assert len(operator.world.queues.sent) == 2


def test_closed_notices_are_retried_by_name_alone():
    operator = failed(THROTTLED)
    operator.world.job(removed_at="2026-11-29")
    operator.waits(timedelta(minutes=2))
    operator.world.worker().run_retry()
    operator.runs_the_queue()
    assert operator.asks("retry", "--status", "failed", "--yes")["left"] == 1
    assert operator.asks(*ONE, "--yes")["queued"] == 1


# -- suppressed -----------------------------------------------------------------------------------------------------

REOPEN = ("--suppressed", "--reason", "ENVIRONMENT was wrong", "--yes")


def test_a_suppressed_notice_is_re_opened_and_the_retry_delivers_it_however_old():
    operator = suppressed()
    operator.waits(timedelta(days=5))
    assert operator.asks(*ONE, *REOPEN)["reopened"] == 1
    notice = operator.world.the_notice()
    assert (notice.status, notice.error) == ("failed", "reopened: ENVIRONMENT was wrong")
    assert not operator.world.queues.sent
    assert operator.world.worker().run_retry().enqueued == 1
    operator.runs_the_queue()
    assert operator.world.the_notice().status == "delivered"


def test_many_suppressed_notices_are_re_opened_once():
    operator = suppressed(jobs=12)
    assert operator.asks("retry", *REOPEN)["reopened"] == 12
    assert operator.asks("retry", *REOPEN)["reopened"] == 0


def test_without_the_option_a_suppressed_notice_stays():
    operator = suppressed()
    assert "--suppressed" in operator.types(*ONE, "--yes", code=4).stderr
    assert operator.world.the_notice().status == "suppressed"


def test_outside_production_nothing_is_re_opened():
    operator = suppressed()
    operator.variables["ENVIRONMENT"] = "staging"
    for words in (ONE, ("retry",)):
        assert "'staging'" in operator.types(*words, *REOPEN, code=4).stderr
    assert operator.world.the_notice().status == "suppressed"


def test_a_delivery_that_comes_meanwhile_is_not_re_opened():
    operator = suppressed()
    worker = operator.world.worker()
    stored = operator.world.the_notice()

    def delivered() -> None:
        claim = Claim("job-1", "succeeded", stored.kind, stored.claim_id, 1)
        worker.notices.record(claim, Result.delivered("message-9"))

    operator.gate.on_call = Lever(delivered, operation="UpdateItem")
    assert operator.asks(*ONE, *REOPEN)["moved_on"] == 1
    assert operator.world.the_notice().status == "delivered"


# -- what cannot be -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("job-1",),
        ("job-1", "succeeded", "--status", "failed"),
        ("--suppressed",),
        ("--suppressed", "--reason", " "),
        ("--suppressed", "--reason", "for dana@example.com"),
        ("--suppressed", "--reason", "see https://example.com"),
        ("--suppressed", "--reason", "x" * 201),
        ("--suppressed", "--reason", "x", "--status", "failed"),
        ("--status", "failed", "--reason", "x"),
        ("--status", "delivered"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_before_anything_is_asked(words):
    operator = Operator()
    operator.types("retry", *words, code=2)
    assert operator.gate.calls == []
    assert operator.stack.asked == 0


def test_every_error_code_of_the_design_has_plain_words():
    design = (Path(__file__).parents[2] / "docs" / "DESIGN.md").read_text()
    (listed,) = re.findall(r"nothing personal in it \(.*?\): (.*?)\(closed\)", design, re.DOTALL)
    assert set(re.findall(r"`([a-z_]+)`", listed)) == set(CODES)
