"""The claim, the outcome and the retry, with everything that can come between."""

import json
import threading
from datetime import timedelta

import pytest

from cases import book, wire
from cases.checks import time_of
from cases.run import Run, runs, ses_event
from cases.stage import Handler, LambdaContext, Stage, job_settled, plain, sqs_event, typed
from cases.wire import Call, Turns, error
from fakes import ses_server

STOPPED = SystemExit  # a worker that dies leaves by no `except Exception`


# --- CL-01, CL-02: what a refused put means


@runs("CL-01")
def test_a_write_whose_answer_was_lost_is_recognised_as_our_own(run: Run) -> None:
    run.stage.wire.on("PutItem", wire.landed_but_lost, times=1)
    run.stage.wire.on("UpdateItem", wire.landed_but_lost, times=1)
    run.play()
    run.check()
    assert run.stage.wire.count("PutItem") == 2
    assert run.stage.wire.count("UpdateItem") == 2
    assert run.counted == {"NoticeDelivered": 1}


@runs("CL-02")
def test_only_a_failed_condition_means_that_a_notice_is_not_ours(run: Run) -> None:
    faults = {
        "job-0002": error("ProvisionedThroughputExceededException"),
        "job-0003": error("TransactionConflictException"),
        "job-0004": error("ThrottlingException"),
        "job-0005": error("AccessDeniedException"),
        "job-0006": wire.read_timeout,
    }
    for job_id, fault in faults.items():
        run.stage.wire.on("PutItem", fault, when=wire.about(job_id))
    run.play()
    run.check()
    assert run.counted == {"NoticeAlreadyHandled": 1}
    assert run.stage.wire.count("UpdateItem") == 0
    codes = [
        "ProvisionedThroughputExceeded", "TransactionConflict", "Throttling", "AccessDenied", "ReadTimeout",
    ]  # fmt: skip
    for record, code in zip(run.event["Records"][1:], codes, strict=True):
        (line,) = run.stage.output.of(record["messageId"])
        assert line["level"] == "ERROR"
        assert code in json.dumps(line)
        assert "NoticesTable" in json.dumps(line)


@runs("CL-02")
def test_a_claim_that_landed_before_its_read_time_out_is_claimed_again_by_the_redelivered_message(run: Run) -> None:
    run.event["Records"] = run.event["Records"][5:]
    run.stage.wire.on("PutItem", wire.landed_but_lost, times=1)
    run.stage.wire.on("PutItem", wire.read_timeout, times=9)
    run.play()
    run.check({"failures": [run.event["Records"][0]["messageId"]], "ses_calls": 0})
    assert run.notice("job-0006")["status"] == "pending"

    run.stage.wire.clear()
    run.play()
    run.check({"failures": [], "ses_calls": 1})
    assert run.results("job-0006") == ["abandoned", "delivered"]


# --- CL-03: two workers, and one that died


def _side_by_side(run: Run, *steps: tuple[str, str], function: str) -> None:
    """Play the event in two workers, A and B, whose calls of these operations take place in this order.

    The requester is left out: it is read beside the claim, at any time.
    """
    turns = Turns(*steps)
    for operation in {operation for _, operation in steps}:
        run.stage.wire.on(operation, turns.take, when=lambda call: "RequestersTable" not in call.resources)
    workers = {name: run.stage.start(function, name, turns.watch(name)) for name in ("A", "B")}
    answers: dict[str, object] = {}

    def work(name: str, handler: Handler) -> None:
        answers[name] = handler(run.event, LambdaContext())

    with run.stage.as_lambda():
        threads = [threading.Thread(target=work, args=each) for each in workers.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert set(answers) == {"A", "B"}
    run.stage.wire.clear()
    if function == "tell_requester":
        assert list(answers.values()) == [{"batchItemFailures": []}] * 2


# both read before either claims: B's first put is refused by A's claim, and its second, at the revision read, claims
BOTH_SEND = [
    ("A", "BatchGetItem"), ("B", "BatchGetItem"),
    ("A", "PutItem"), ("B", "PutItem"), ("B", "PutItem"),
    ("A", "SendEmail"), ("B", "SendEmail"),
]  # fmt: skip


@runs("CL-03-a")
def test_two_workers_that_both_send_leave_one_delivered_record_with_the_first_reference(run: Run) -> None:
    records = [("A", "UpdateItem"), ("B", "UpdateItem"), ("B", "UpdateItem")]
    _side_by_side(run, *BOTH_SEND, *records, function="tell_requester")
    run.played = run.play(sqs_event())
    run.check({**book.result(run.case, "a"), "ses_calls": 0})
    assert len(run.stage.mails()) == 2
    assert run.notice()["provider_reference"] == run.stage.mails()[0].message_id
    assert run.results() == ["abandoned", "delivered", "delivered"]
    assert run.counted == {"NoticeDelivered": 1, "DuplicateDelivery": 1}


@runs("CL-03-a")
def test_the_opinion_of_a_worker_whose_claim_was_taken_over_is_only_logged(run: Run) -> None:
    run.stage.ses.script(ses_server.error("TooManyRequestsException", 429, "Maximum sending rate exceeded."))
    records = [("A", "UpdateItem"), ("A", "UpdateItem"), ("B", "UpdateItem")]
    _side_by_side(run, *BOTH_SEND, *records, function="tell_requester")
    assert run.notice()["status"] == "delivered"
    assert run.results() == ["abandoned", "failed", "delivered"]
    assert run.counted == {"NoticeDelivered": 1}


def _die(call: Call, let: wire.Let) -> None:
    raise STOPPED


def _die_after_the_claim(run: Run) -> None:
    run.stage.wire.on("SendEmail", _die)
    with pytest.raises(STOPPED):
        run.stage.invoke("tell_requester", run.event, handler=run.stage.start("tell_requester"))
    run.stage.wire.clear()
    run.stage.output.forget()
    assert run.notice()["status"] == "pending"


@runs("CL-03-b", "CL-03-c")
def test_the_claim_of_a_dead_worker_is_taken_over_at_once_unless_a_lease_is_set(run: Run) -> None:
    _die_after_the_claim(run)
    run.play()
    run.check()
    if run.letter == "b":
        assert run.counted == {"NoticeDelivered": 1}
        assert run.results() == ["abandoned", "delivered"]
    else:
        assert run.counted == {"NoticeInProgress": 1}


# --- CL-04, CL-09, CL-10, CL-13: the retry


def _retries(run: Run) -> list[str]:
    """The bodies that the retry put on the queue."""
    return [message["Body"] for message in run.stage.take("JOB_SETTLED_QUEUE_URL")]


@runs("CL-04")
def test_the_retry_brings_back_what_is_due_and_gives_up_what_is_past_the_horizon(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"RetryEnqueued": 3, "NoticeGivenUp": 2}
    queued: set[str] = set()
    for call in run.stage.wire.calls:
        for entry in call.payload.get("Entries", ()):
            queued |= {json.loads(entry["MessageBody"])["job_id"]}
        if call.operation == "UpdateItem":
            assert call.job_id not in queued, "queued before it was moved"


@runs("CL-04")
def test_what_the_retry_brings_back_is_claimed_once_more_and_told(run: Run) -> None:
    run.play()
    run.play(sqs_event(*_retries(run)), function="tell_requester")
    run.check({"failures": [], "ses_calls": 3})
    outcomes = {"job-0001": "succeeded", "job-0003": "failed", "job-0008": "failed"}
    assert {job: run.notice(job, outcome)["attempts"] for job, outcome in outcomes.items()} == dict.fromkeys(
        outcomes, 2
    )
    assert run.results("job-0001") == ["abandoned", "delivered"]
    assert run.results("job-0003", "failed") == ["failed", "delivered"]
    assert run.results("job-0008", "failed") == ["abandoned", "delivered"]


@runs("CL-04")
@pytest.mark.parametrize("job_id", ["job-0004", "job-0009"])
def test_a_claim_written_in_between_wins_over_giving_up(run: Run, job_id: str) -> None:
    def claimed() -> None:
        later = run.notice(job_id, "failed")
        run.stage.change(job_id, "failed", revision=later["revision"] + 1, claim_id="another")

    run.stage.wire.on("UpdateItem", wire.after(claimed), when=wire.about(job_id), times=1)
    run.play()
    assert run.notice(job_id, "failed")["claim_id"] == "another"
    assert "next_attempt_at" in run.notice(job_id, "failed")
    assert run.counted["NoticeGivenUp"] == 1


@runs("CL-09")
def test_a_stale_index_row_brings_nothing_back(run: Run) -> None:
    rows = [typed(item) for item in run.case["seed"]["due_index"]]
    run.stage.wire.on("Query", wire.answer(200, {"Items": rows, "Count": len(rows)}), times=1)
    before = run.notice()
    run.play()
    run.check()
    assert run.notice() == before
    assert "RetryEnqueued" not in run.counted


@runs("CL-09")
def test_an_event_for_a_delivered_notice_that_is_queued_by_hand_sends_nothing(run: Run) -> None:
    run.play(sqs_event(job_settled("job-0001", retry=2)), function="tell_requester")
    run.check({"failures": [], "ses_calls": 0})
    assert run.counted == {"NoticeAlreadyHandled": 1}


def _generated(run: Run) -> list[dict[str, object]]:
    """The notices that CL-10 describes."""
    now = book.real_now()

    def stamp(back: timedelta) -> str:
        return (now - back).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")

    def notice(number: int, status: str, claimed: timedelta, **more: object) -> dict[str, object]:
        item = {
            "job_id": f"job-{number:04d}", "outcome": "succeeded", "status": status,
            "kind": "workspace_provisioning", "tenant_id": "tenant-acme", "requester_id": "req-dana",
            "attempts": 1, "claim_id": f"claim-{number}", "claimed_at": stamp(claimed), "created_at": stamp(claimed),
            "attempt_log": [], "revision": 2, "expires_at": int(now.timestamp()) + 7_776_000,
        }  # fmt: skip
        if status != "pending":
            handled = stamp(claimed - timedelta(seconds=2))
            entry = {"attempt": 1, "claim_id": f"claim-{number}", "recorded_at": handled, "result": status}
            item |= {"handled_at": handled, "attempt_log": [entry]}
        return item | more

    second = timedelta(seconds=1)
    delivered = [notice(number, "delivered", 3600 * second) for number in range(300)]
    failed = [
        notice(
            300 + number,
            "failed",
            (number + 62) * second,
            next_attempt_at=stamp(number * second),
            error="throttled: sending rate exceeded",
        )
        for number in range(60, 0, -1)
    ]
    pending = [notice(999, "pending", 901 * second, next_attempt_at=stamp(second), revision=1)]
    return [*delivered, *failed, *pending]


def _pages_of_25(run: Run, *, empty_between: bool) -> wire.Action:
    """Let the index answer with pages of 25, and with an empty one that is not the last after the first."""
    emptied: set[str] = set()

    def act(call: Call, let: wire.Let) -> object:
        start = json.dumps(call.payload.get("ExclusiveStartKey"))
        if empty_between and start != "null" and start not in emptied:
            emptied.add(start)
            body = {"Items": [], "Count": 0, "LastEvaluatedKey": json.loads(start)}
        else:
            body = run.stage.dynamodb.query(**{**call.payload, "Limit": 25})
            body = {name: body[name] for name in ("Items", "Count", "LastEvaluatedKey") if name in body}
        return wire.answer(200, body)(call, let)

    return act


@runs("CL-10")
@pytest.mark.parametrize("empty_between", [False, True], ids=["pages-of-25", "empty-pages-in-between"])
def test_every_due_notice_is_brought_back_page_by_page_to_the_end(run: Run, empty_between: bool) -> None:
    run.stage.put("NoticesTable", _generated(run))
    run.stage.wire.on("Query", _pages_of_25(run, empty_between=empty_between))
    run.play()
    run.check()
    assert run.counted == {"RetryEnqueued": 61}
    (oldest,) = run.stage.output.values("OldestUnsettledSeconds")
    assert 901 <= oldest < 930


@runs("CL-10")
def test_the_reads_of_a_run_depend_on_what_is_due_and_not_on_the_table(run: Run) -> None:
    run.stage.put("NoticesTable", _generated(run))
    run.play()
    run.check()
    reads = [call for call in run.stage.wire.calls if call.operation in ("Query", "Scan", "GetItem", "BatchGetItem")]
    assert {call.operation for call in reads} == {"Query"}
    assert len(reads) <= 4  # two statuses, a page each, and room for a last empty page


@runs("CL-10")
def test_the_retrys_own_page_size_brings_back_the_same(run: Run) -> None:
    from pynamodb.connection.base import Connection

    from notices import queues
    from notices.database import Table
    from notices.record import NOTICE_KEYS, Notices, utc_now
    from notices.retry import Due, RetryDueNotices
    from notices.telemetry import PowertoolsTelemetry

    run.stage.put("NoticesTable", _generated(run))
    with run.stage.as_lambda():
        connection = Connection(region="eu-west-1")
        table = Table(connection, "NoticesTable", NOTICE_KEYS)
        retry = RetryDueNotices(
            due=Due(table, utc_now, page=25),
            notices=Notices(table, now=utc_now, retention=timedelta(days=90)),
            queue=queues.JobSettledQueue(run.stage.sqs, run.stage.environ["JOB_SETTLED_QUEUE_URL"]),
            horizon=timedelta(hours=72),
            telemetry=PowertoolsTelemetry("requester-notices"),
            now=utc_now,
        )
        done = retry(lambda: 60.0)
    assert done.enqueued == 61
    assert len(_retries(run)) == 61


@runs("CL-10")
def test_a_run_short_of_time_moves_nothing_that_it_does_not_queue(run: Run) -> None:
    run.stage.put("NoticesTable", _generated(run))
    run.stage.wire.on("Query", _pages_of_25(run, empty_between=False))

    def left() -> int:
        return 60_000 if run.stage.wire.count("UpdateItem") < 50 else 1_000

    before = {notice["job_id"]: notice for notice in run.stage.notices()}
    run.play(context=LambdaContext(left))
    assert run.played is not None
    assert run.played.raised is None
    queued = {json.loads(body)["job_id"] for body in _retries(run)}
    moved = {notice["job_id"] for notice in run.stage.notices() if notice != before[notice["job_id"]]}
    assert moved == queued
    assert len(queued) == 50
    assert run.counted == {"RetryEnqueued": 50}
    assert run.stage.output.values("OldestUnsettledSeconds")

    run.play()
    assert len(_retries(run)) == 11


def test_a_run_with_nothing_due_reports_that_nothing_waits(stage: Stage) -> None:
    stage.invoke("retry_due_notices", book.sample("schedule.json"))
    assert stage.output.values("OldestUnsettledSeconds") == [0]
    assert stage.output.counted == {}


TEN = [("A", "Query"), ("B", "Query")] * 2 + [
    (worker, "UpdateItem") for number in range(10) for worker in ("AB" if number % 3 else "BA")
]


@runs("CL-13")
def test_of_two_runs_at_once_one_wins_each_notice_and_each_is_queued_and_told_once(run: Run) -> None:
    _side_by_side(run, *TEN, function="retry_due_notices")
    queued = run.stage.take("JOB_SETTLED_QUEUE_URL")
    for message in queued:
        run.stage.sqs.send_message(QueueUrl=run.stage.environ["JOB_SETTLED_QUEUE_URL"], MessageBody=message["Body"])
    run.played = run.play({"Records": []}, function="tell_requester")
    run.check()
    assert run.counted == {"RetryEnqueued": 10}

    run.play_then()
    run.check_then()
    run.stage.output.forget()
    run.play_then()
    run.check({"failures": [], "ses_calls": 0})


@runs("CL-13")
def test_the_key_of_a_notice_has_no_time_in_it(run: Run) -> None:
    described = run.stage.dynamodb.describe_table(TableName="NoticesTable")["Table"]
    assert [key["AttributeName"] for key in described["KeySchema"]] == ["job_id", "outcome"]


@runs("CL-13")
@pytest.mark.parametrize("fresh_first", [True, False], ids=["fresh-first", "retried-first"])
def test_a_fresh_delivery_and_the_retried_one_meet_in_the_claim(run: Run, fresh_first: bool) -> None:
    run.play()
    retried = next(body for body in _retries(run) if json.loads(body)["job_id"] == "job-0001")
    bodies = [job_settled("job-0001"), retried]
    run.stage.output.forget()
    run.play(sqs_event(*(bodies if fresh_first else reversed(bodies))), function="tell_requester")
    run.check({"failures": [], "ses_calls": 1})
    assert run.counted == {"NoticeDelivered": 1, "NoticeAlreadyHandled": 1}


@runs("CL-13")
def test_the_retrys_events_that_pile_up_lead_to_one_claim_at_most(run: Run) -> None:
    run.stage.ses.otherwise(ses_server.error("TooManyRequestsException", 429, "Maximum sending rate exceeded."))
    piled: list[str] = []
    for _ in range(3):
        run.play()
        piled += [body for body in _retries(run) if json.loads(body)["job_id"] == "job-0001"]
        run.stage.change("job-0001", next_attempt_at=run.case["seed"]["notices"][0]["next_attempt_at"])
    assert len(piled) == 3
    attempts = run.notice()["attempts"]
    run.stage.output.forget()
    run.play(sqs_event(*piled), function="tell_requester")
    run.check({"failures": [], "ses_calls": 1})
    assert run.notice()["attempts"] == attempts + 1
    assert run.counted == {"RetryOvertaken": 2, "NoticeFailed": 1}


@runs("CL-13")
def test_a_run_whose_send_fails_only_delays_its_notices(run: Run) -> None:
    run.stage.wire.on("SendMessageBatch", error("AccessDeniedException", 403))
    run.play()
    run.check({"notices": book.result(run.case, "a")["notices"]})
    assert _retries(run) == []
    assert "RetryEnqueued" not in run.counted


# --- CL-06, CL-07: writes that fail


@runs("CL-06-a", "CL-06-b")
def test_an_outcome_that_cannot_be_written_is_logged_and_settled_by_the_send_event(run: Run) -> None:
    code = "ProvisionedThroughputExceededException" if run.letter == "a" else "ValidationException"
    run.stage.wire.on("UpdateItem", error(code))
    run.play()
    run.check()
    (mail,) = run.stage.mails()
    (line,) = run.stage.output.at("ERROR", provider_reference=mail.message_id)
    assert (line["job_id"], line["outcome"]) == ("job-0001", "succeeded")
    assert run.counted == {"OutcomeNotRecorded": 1}
    assert run.stage.wire.count("UpdateItem") > 1 or run.letter == "b"

    run.stage.wire.clear()
    record = run.then()["event"]["Records"][0]
    record["body"] = ses_event(record["body"], run.notice()["claim_id"], mail.message_id)
    run.play_then()
    run.check_then()
    assert run.notice()["provider_reference"] == mail.message_id
    assert run.results() == ["delivered"]


@runs("CL-06")
def test_an_outcome_that_was_never_written_is_sent_again_by_the_retry(run: Run) -> None:
    run.stage.wire.on("UpdateItem", error("ValidationException"))
    run.play()
    run.stage.wire.clear()
    run.stage.change("job-0001", next_attempt_at=run.notice()["claimed_at"])
    run.play({}, function="retry_due_notices")
    run.play(sqs_event(*_retries(run)), function="tell_requester")
    run.check({"failures": [], "ses_calls": 1})
    assert run.notice()["status"] == "delivered"
    assert run.results() == ["abandoned", "delivered"]
    assert len(run.stage.mails()) == 2


@runs("CL-07")
def test_values_that_dynamodb_refuses_are_ignored_or_parked_before_any_table_is_touched(run: Run) -> None:
    huge = run.add_record(job_settled("job-0008")[:-1] + f', "n": {"9" * 5000}}}')
    run.play()
    run.check(parked=[(huge, "not_json")])
    for notice in run.stage.notices():
        assert set(plain(typed(notice))) <= {
            "job_id", "outcome", "status", "kind", "tenant_id", "requester_id", "attempts", "claim_id", "claimed_at",
            "created_at", "settled_at", "handled_at", "provider_reference", "attempt_log", "revision", "expires_at",
        }  # fmt: skip
    touched = {call.job_id for call in run.stage.wire.calls if call.service == "dynamodb" and call.job_id}
    assert touched == {"job-0001", "k" * 128}


@runs("CL-06")
def test_a_claim_expires_after_the_queue_and_the_dead_letter_queue_have_let_go(run: Run) -> None:
    run.play()
    kept = int(run.notice()["expires_at"]) - time_of(run.notice()["handled_at"]).timestamp()
    assert kept == pytest.approx(timedelta(days=90).total_seconds(), abs=5)
