"""`notices explain`: right for every state that a notice, or its absence, can be in."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cli.operator import Operator, refusal
from fakes.gate import Gate, Killed, Lever, raising
from fakes.mail import MISCONFIGURED, REFUSED, THROTTLED, UNKNOWN, failing, ses_event
from fakes.queues import Message
from fakes.store import refusal as store_refusal
from fakes.world import JOB_ID, JOBS, KIND, World, settled
from notices.event import JobSettled
from notices.mail import Verdict
from notices.record import Result
from notices_cli.codes import CODES

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
RETRY = "notices retry job-1 succeeded"


@pytest.fixture
def operator() -> Operator:
    return Operator()


def answers(*scripted) -> Operator:
    operator = Operator()
    operator.world.provider.script.extend(scripted)
    operator.world.worker().told()
    return operator


# -- notices that exist ---------------------------------------------------------------------------------------------


def test_a_delivered_notice_without_feedback_is_told_and_nothing_is_to_be_done():
    said = answers().explains()
    assert (said["told"], said["state"], said["step"]) == ("yes", "delivered", None)
    assert said["ses_said"] == "Nothing yet."
    assert [line["text"] for line in said["history"]] == [
        "first claimed; the job's event had come",
        "attempt 1: SES accepted the message (message-1)",
    ]


@pytest.mark.parametrize(
    ("event", "facts", "told", "words"),
    [
        ("Send", {}, "yes", "on its way"),
        ("Delivery", {}, "yes", "mail server took it"),
        ("DeliveryDelay", {"delayType": "MailboxFull"}, "doubtful", "delayed"),
        ("Bounce", {"bounceType": "Transient", "bounceSubType": "MailboxFull"}, "doubtful", "bounced for now"),
        ("Bounce", {"bounceType": "Permanent", "bounceSubType": "General"}, "no", "bounced for good"),
        ("Reject", {}, "no", "rejected"),
        ("Rendering Failure", {}, "no", "could not render"),
        ("Complaint", {}, "yes", "spam"),
    ],
)
def test_what_ses_said_afterwards_decides_whether_the_requester_was_told(event, facts, told, words):
    operator = answers()
    operator.world.worker().handle_feedback(ses_event(operator.world.provider.accepted[0], event, **facts))
    said = operator.explains()
    assert (said["state"], said["told"], said["step"]) == ("delivered", told, None)
    assert words in said["ses_said"]


def test_a_duplicate_in_the_log_is_named():
    operator = Operator()
    world = operator.world
    first, second = world.worker(), world.worker()
    claims = [worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded") for worker in (first, second)]
    for worker, claim in zip((first, second), claims, strict=True):
        kind, job = worker.tell.find(JobSettled("job-1", "succeeded"))
        worker.notices.record(claim, worker.tell.attempt(claim, kind, job))
    said = operator.explains()
    assert said["told"] == "yes"
    assert "2 messages went out" in said["answer"]
    assert "duplicate (message message-2)" in said["history"][-1]["text"]


def test_a_failure_that_was_logged_after_the_delivery_is_said_to_change_nothing():
    operator = Operator()
    worker = operator.world.worker()
    claim = worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    later = worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    worker.notices.record(claim, Result.delivered("message-1"))
    worker.notices.record(later, Result.failed("throttled: X", operator.world.clock.at + MINUTE))
    said = operator.explains()
    assert said["told"] == "yes"
    assert "changes nothing" in said["history"][-1]["text"]


def pending() -> Operator:
    operator = Operator()
    worker = operator.world.worker()
    worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    return operator


def test_a_fresh_claim_is_not_told_yet_and_left_alone():
    operator = pending()
    operator.waits(20 * timedelta(seconds=1))
    said = operator.explains()
    assert (said["told"], said["state"], said["step"]) == ("not yet", "pending", None)
    assert "10:15:00 UTC (in 14 min)" in said["next"]
    assert said["history"][-1]["text"] == "attempt 1: claimed; no result so far"


def test_an_abandoned_claim_is_brought_back_by_the_retry():
    operator = pending()
    operator.waits(16 * MINUTE)
    said = operator.explains()
    assert (said["told"], said["state"], said["step"]) == ("not yet", "pending", None)
    assert "came to nothing" in said["answer"]
    assert "brings it back" in said["next"]


@pytest.mark.parametrize("state", [pending, lambda: answers(THROTTLED)])
def test_what_has_long_been_due_says_that_the_retry_has_stopped(state):
    operator = state()
    operator.waits(HOUR)
    said = operator.explains()
    assert (said["state"], said["step"]) == ("overdue", "notices check")
    assert "the retry has stopped" in said["next"]


@pytest.mark.parametrize("state", [pending, lambda: answers(THROTTLED)])
def test_while_sending_is_paused_nothing_happens_before_it_is_resumed(state):
    operator = state()
    operator.rules.state = "DISABLED"
    operator.functions.source["State"] = "Disabled"
    operator.waits(HOUR)
    said = operator.explains()
    assert (said["told"], said["step"]) == ("not yet", "notices resume")
    assert said["next"].startswith("Nothing while sending is paused")


RETRIED = {
    "throttled": (THROTTLED, None, "not yet"),
    "quota_exceeded": (failing(Verdict.UNAVAILABLE, "quota_exceeded"), None, "not yet"),
    "provider_unreachable": (failing(Verdict.UNAVAILABLE, "provider_unreachable"), None, "not yet"),
    "provider_misconfigured": (MISCONFIGURED, "notices check", "not yet"),
    "sender_unset": (failing(Verdict.MISCONFIGURED, "sender_unset"), "notices check", "not yet"),
    "provider_unknown": (UNKNOWN, None, "doubtful"),
    "internal_error": (RuntimeError("x"), "notices check", "not yet"),
}


@pytest.mark.parametrize("code", RETRIED)
def test_a_failure_that_is_retried_says_when_and_until_when(code):
    scripted, step, told = RETRIED[code]
    operator = answers(scripted)
    said = operator.explains()
    assert (said["told"], said["state"], said["reason"], said["step"]) == (told, "retrying", code, step)
    assert CODES[code].says in said["answer"]
    due = operator.world.the_notice().next_attempt_at
    assert f"{due:%Y-%m-%d %H:%M:%S} UTC" in said["next"]
    assert "2026-12-02 10:00:00 UTC (in 3 days)" in said["next"]
    assert CODES[code].remedy in said["next"]


def test_a_missing_requester_is_retried():
    operator = Operator()
    operator.world.job(requester_id="nobody")
    operator.world.worker().told()
    said = operator.explains()
    assert (said["state"], said["reason"]) == ("retrying", "requester_missing")


def test_past_the_horizon_a_failure_is_about_to_be_given_up():
    operator = answers(THROTTLED)
    operator.waits(73 * HOUR)
    said = operator.explains()
    assert "gives it up at its next run" in said["next"]


FOR_GOOD = {
    "address_missing": {"email": None},
    "address_invalid": {"email": "dana@"},
    "tenant_mismatch": {"tenant_id": "another"},
}


@pytest.mark.parametrize("code", FOR_GOOD)
def test_a_failure_for_good_says_whether_its_cause_is_mended(code):
    operator = Operator()
    operator.world.requester(**FOR_GOOD[code])
    operator.world.worker().told()

    said = operator.explains()
    assert (said["told"], said["state"], said["reason"], said["step"]) == ("no", "failed_for_good", code, RETRY)
    assert "a retry now would fail" in said["next"]
    assert CODES[code].remedy in said["next"]

    operator.world.requester()
    said = operator.explains()
    assert said["step"] == RETRY
    assert "looks mended" in said["next"]


def test_what_is_known_of_a_notice_is_told_though_its_job_cannot_be_read():
    operator = Operator()
    operator.world.requester(email=None)
    operator.world.worker().told()
    gone = store_refusal("GetItem", "ResourceNotFoundException", table=JOBS)
    operator.gate.on_call = Lever(raising(gone), operation="GetItem")

    document = operator.asks("explain", JOB_ID)
    (said,) = document["outcomes"]
    assert (said["state"], said["reason"], said["step"]) == ("failed_for_good", "address_missing", RETRY)
    (unseen,) = document["unseen"]
    assert unseen.startswith("what another attempt would come to: ")
    assert JOBS in unseen


def test_a_message_that_ses_refused_is_never_said_to_be_mended():
    said = answers(REFUSED).explains()
    assert (said["state"], said["reason"], said["step"]) == ("failed_for_good", "provider_refused", RETRY)
    assert "mended" not in said["next"]


def test_a_notice_given_up_says_after_how_long_and_why():
    operator = answers(THROTTLED)
    operator.waits(73 * HOUR)
    operator.world.worker().run_retry()
    said = operator.explains()
    assert (said["told"], said["state"], said["reason"], said["step"]) == ("no", "gave_up", "gave_up", RETRY)
    assert "given up 3 days 1 h after the first claim" in said["answer"]
    assert CODES["throttled"].says in said["answer"]
    assert said["history"][-1]["text"].startswith("given up")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"removed_at": "2026-11-29"}, "job_removed"),
        ({"requester_id": None}, "no_requester"),
        ({"kind": "export"}, "undeclared"),
    ],
)
def test_a_closed_notice_needs_nothing(change, code):
    operator = answers(THROTTLED)
    operator.world.job(**change)
    operator.waits(2 * MINUTE)
    operator.world.worker().run_retry()
    operator.runs_the_queue()
    said = operator.explains()
    assert (said["told"], said["state"], said["reason"], said["step"]) == ("no", "closed", code, None)
    # not that there is no such job, where it was removed
    assert f"nobody would be told now either ({CODES[code].says})" in said["next"]


def test_a_closed_notice_whose_job_is_back_can_be_retried():
    operator = answers(THROTTLED)
    operator.world.job(removed_at="2026-11-29")
    operator.waits(2 * MINUTE)
    operator.world.worker().run_retry()
    operator.runs_the_queue()
    operator.world.job()
    said = operator.explains()
    assert (said["state"], said["step"]) == ("closed", RETRY)


def suppressed() -> Operator:
    operator = Operator(World(production=False))
    operator.world.worker().told()
    return operator


def test_a_suppressed_notice_is_right_outside_production():
    operator = suppressed()
    operator.variables["ENVIRONMENT"] = "staging"
    said = operator.explains()
    assert (said["told"], said["state"], said["step"]) == ("no", "suppressed", None)
    assert "staging" in said["next"]


def test_a_suppressed_notice_in_production_can_be_re_opened_and_then_says_so():
    operator = suppressed()
    said = operator.explains()
    assert said["step"] == "notices retry job-1 succeeded --suppressed --reason ..."
    operator.types("retry", "job-1", "succeeded", "--suppressed", "--reason", "wrong ENVIRONMENT", "--yes")
    said = operator.explains()
    assert (said["told"], said["state"], said["step"]) == ("not yet", "reopened", None)
    assert said["history"][-1]["text"] == "re-opened by an operator: wrong ENVIRONMENT"


def test_an_operators_retry_that_waits_on_the_queue_is_said_to():
    operator = Operator()
    operator.world.requester(email=None)
    operator.world.worker().told()
    operator.types("retry", "job-1", "succeeded", "--yes")
    said = operator.explains()
    assert said["state"] == "retrying"
    assert "put back on the queue" in said["next"]


def test_a_log_that_was_trimmed_says_how_many_attempts_are_gone():
    operator = Operator()
    worker = operator.world.worker()
    for _ in range(60):
        worker.notices.claim(worker.tell.jobs.get("job-1"), "succeeded")
    texts = [line["text"] for line in operator.explains()["history"]]
    assert texts[1] == "9 earlier attempts no longer in the log, which keeps the latest 50"
    assert len(texts) == 1 + 1 + 50 + 1


# -- the crash matrix -------------------------------------------------------------------------------------------------

CRASHES = ["PutItem", "SendEmail", "UpdateItem"]


@pytest.mark.parametrize("moment", ["on_call", "after_call"])
@pytest.mark.parametrize("operation", CRASHES)
def test_after_a_crash_at_any_call_the_answer_is_right_then_and_at_rest(operation, moment):
    operator = Operator()
    gate = Gate()
    setattr(gate, moment, Lever(raising(Killed()), operation=operation))
    with pytest.raises(Killed):
        operator.world.worker(gate).handle(settled())

    said = operator.explains()
    if (operation, moment) == ("PutItem", "on_call"):
        assert (said["state"], said["step"]) == ("not_arrived", RETRY)
    elif (operation, moment) == ("UpdateItem", "after_call"):
        assert (said["state"], said["told"]) == ("delivered", "yes")
    else:
        assert (said["state"], said["told"], said["step"]) == ("pending", "not yet", None)
        operator.waits(16 * MINUTE)
        assert "brings it back" in operator.explains()["next"]

    operator.world.quiesce(settled())
    said = operator.explains()
    assert (said["state"], said["told"]) == ("delivered", "yes")
    copies = len(operator.world.provider.accepted)
    assert (f"{copies} messages went out" in said["answer"]) == (copies > 1)


# -- no notice --------------------------------------------------------------------------------------------------------


def test_a_job_whose_event_did_not_arrive_can_be_sent_by_hand(operator):
    said = operator.explains()
    assert (said["told"], said["state"], said["reason"], said["step"]) == ("no", "not_arrived", None, RETRY)


def test_events_that_wait_on_the_queue_are_mentioned(operator):
    operator.world.queues.sent.append(Message(settled("another")))
    assert "1 event is on the queue" in operator.explains()["next"]


def test_a_job_whose_event_would_fail_says_so_beforehand(operator):
    operator.world.requester(email=None)
    said = operator.explains()
    assert (said["state"], said["reason"]) == ("not_arrived", "address_missing")


def test_without_an_outcome_the_jobs_table_says_how_it_ended(operator):
    operator.world.job(outcome="failed")
    said = operator.explains(outcome=None)
    assert (said["outcome"], said["step"]) == ("failed", "notices retry job-1 failed")


def test_without_an_outcome_that_anybody_knows_the_outcomes_are_named(operator):
    said = operator.explains(outcome=None)
    assert (said["outcome"], said["step"]) == (None, "notices explain job-1 OUTCOME")
    assert "succeeded, failed" in said["next"]


@pytest.mark.parametrize(
    ("change", "outcome", "reason", "words"),
    [
        ({"removed_at": "2026-11-29"}, "succeeded", "job_removed", "the job was removed"),
        ({"requester_id": None}, "succeeded", "no_requester", "nobody asked"),
        ({"kind": "export"}, "succeeded", "undeclared", "of the kind export"),
        ({}, "cancelled", "undeclared", "does not tell this outcome"),
    ],
)
def test_a_job_of_which_nobody_is_told_says_why(operator, change, outcome, reason, words):
    operator.world.job(**change)
    said = operator.explains(outcome=outcome)
    assert (said["told"], said["state"], said["reason"], said["step"]) == ("no", "skipped", reason, None)
    assert words in said["answer"]


def test_a_job_that_is_not_there_is_said_not_to_be(operator):
    said = operator.explains("no-such-job")
    assert (said["state"], said["reason"]) == ("skipped", "job_removed")
    assert "no such job" in said["answer"]


def test_a_parked_event_is_found_and_left_where_it_is(operator):
    operator.world.job(kind="export")
    operator.parks(settled(kind=KIND), "kind_mismatch")
    said = operator.explains()
    assert (said["told"], said["state"], said["reason"]) == ("no", "parked", "kind_mismatch")
    assert said["step"] == "notices parked"
    assert "A right event would tell nobody either" in said["next"]
    assert len(operator.world.queues.parked) == 1
    assert not operator.sqs.hidden


def test_an_event_that_came_by_receives_can_be_put_back(operator):
    operator.parks(settled())
    said = operator.explains()
    assert (said["state"], said["reason"]) == ("parked", "received_too_often")
    assert said["step"] == "notices parked --redrive --message parked-1"


def test_a_parked_event_that_cannot_be_read_is_found_by_its_text(operator):
    operator.parks('{"type": "job.settled", "job_id": "job-1"', "not_json")
    said = operator.explains()
    assert (said["state"], said["step"]) == ("parked", RETRY)
    assert "cannot be read as an event" in said["answer"]


def test_a_parked_text_that_names_a_longer_id_is_not_taken_for_this_job(operator):
    operator.parks('{"type": "job.settled", "job_id": "job-1001", "outcome": 7}', "invalid_field")
    assert operator.explains("job-1001", None)["state"] == "parked"
    assert operator.explains("job-1", None)["state"] == "not_arrived"


def test_of_several_parked_events_the_one_that_can_be_put_back_is_proposed(operator):
    operator.parks("job-1", "not_json", sent=timedelta(days=3))
    operator.parks(settled("job-1"), sent=timedelta(days=2))
    said = operator.explains()
    assert said["step"] == "notices parked --redrive --message parked-2"
    assert "SQS deletes it at 2026-12-10 10:00:00 UTC (in 11 days)." in said["next"]


def test_an_event_of_another_job_or_outcome_is_not_taken_for_it(operator):
    operator.parks(settled("job-12"))
    operator.parks(settled(outcome="failed"))
    assert operator.explains()["state"] == "not_arrived"


def test_a_notice_that_may_have_expired_is_not_proposed_lightly(operator):
    operator.world.job(outcome="succeeded", settled_at="2026-06-01T00:00:00+00:00")
    assert "a second time" in operator.explains()["next"]


# -- what else --------------------------------------------------------------------------------------------------------


def test_all_outcomes_of_a_job_are_explained(operator):
    for outcome in ("succeeded", "failed"):
        operator.world.worker().told(outcome=outcome)
    assert [each["outcome"] for each in operator.asks("explain", "job-1")["outcomes"]] == ["failed", "succeeded"]


def test_for_people_the_address_is_masked_and_the_name_absent(operator):
    text = operator.types("explain", "job-1", "succeeded").output
    assert "d***@example.com" in text
    assert "dana@" not in text
    assert "Dana" not in text


def test_an_explained_notice_costs_a_query_and_two_looks_at_the_switch():
    operator = answers()
    operator.types("explain", "job-1", "succeeded")
    assert operator.gate.calls == ["Query"]


def test_explaining_writes_nothing():
    for operator in (answers(), answers(THROTTLED), answers(REFUSED), suppressed(), pending(), Operator()):
        before = operator.world.store.snapshot()
        operator.types("explain", "job-1", "succeeded")
        assert operator.world.store.snapshot() == before
        assert not operator.world.queues.sent


def test_what_may_not_be_seen_is_named_and_the_rest_answered():
    operator = answers(THROTTLED)
    operator.functions.fault = refusal("AccessDeniedException", "GetFunctionConfiguration")
    document = operator.asks("explain", "job-1", "succeeded")
    assert document["outcomes"][0]["state"] == "retrying"
    assert ["AWS denies GetFunctionConfiguration" in line for line in document["unseen"]] == [True]


def test_a_table_that_may_not_be_read_ends_in_one_line():
    operator = answers()
    operator.gate.on_call = Lever(raising(store_refusal("Query", "AccessDeniedException")), operation="Query")
    result = operator.types("explain", "job-1", code=3)
    assert result.stderr.startswith("notices: AWS denies Query on the table Notices")
    assert "docs/cli.md" in result.stderr


@pytest.mark.parametrize("words", [("job 1",), ("job-1", "Succeeded")])
def test_a_key_that_no_event_can_have_is_refused(operator, words):
    operator.types("explain", *words, code=2)


def test_what_has_to_be_mended_first_is_no_step_to_take_at_once():
    refused = answers(REFUSED)
    assert refused.explains()["mend_first"] is True
    assert "\nthen        notices retry job-1 succeeded" in refused.types("explain", "job-1").output
    throttled = answers(THROTTLED)
    assert throttled.explains()["mend_first"] is False
    assert "\ndo          nothing" in throttled.types("explain", "job-1").output


def test_what_no_command_mends_is_not_called_nothing():
    operator = Operator()
    operator.world.job(requester_id="nobody")
    operator.world.worker().told()
    said = operator.explains()
    assert (said["step"], said["mend_first"]) == (None, True)
    assert "\ndo          what is said above" in operator.types("explain", "job-1").output


def test_a_job_that_nobody_knows_asks_whether_the_id_is_right(operator):
    assert "Is the id right" in operator.explains("job-99", "succeeded")["next"]


def test_commands_that_are_proposed_go_where_the_question_went():
    operator = answers(REFUSED)
    where = ("--region", "eu-north-1", "--endpoint-url", "http://127.0.0.1:4566")
    (said,) = operator.asks("explain", "job-1", *where)["outcomes"]
    assert said["step"] == f"{RETRY} {' '.join(where)}"


def test_on_a_narrow_terminal_the_history_keeps_its_words_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = answers(MISCONFIGURED).types("explain", "job-1").output
    assert any(word.startswith("(provider_misconfigured") for word in text.split())
    assert all(len(line) <= 60 for line in text.splitlines() if "notices " not in line)
