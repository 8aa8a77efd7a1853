"""The answer to a batch, whatever happens to its records."""

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from cases.run import Run, runs
from cases.stage import LambdaContext, job_settled, sqs_event
from cases.wire import about, error
from fakes import ses_server

THROTTLED = error("ThrottlingException")


@runs("BA-01-a", "BA-01-b")
def test_a_batch_that_fails_whole_is_answered_with_a_list(run: Run) -> None:
    if run.letter == "a":
        run.stage.ses.otherwise(ses_server.error("TooManyRequestsException", 429, "Maximum sending rate exceeded."))
    else:
        run.stage.wire.on("PutItem", THROTTLED)
    run.play()
    run.check()
    if run.letter == "a":
        assert all("handled_at" in notice for notice in run.stage.notices())
        assert run.counted == {"NoticeFailed": 3}


@runs("BA-02")
def test_a_mixed_batch_names_what_has_to_come_back_and_nothing_else(run: Run) -> None:
    run.stage.wire.on("PutItem", THROTTLED, when=about("job-0004"))
    run.play()
    run.check()
    assert run.counted == {
        "NoticeDelivered": 1, "EventParked": 1, "NoticeFailed": 1, "NoticeFailedForGood": 1,
    }  # fmt: skip


GOOD, PARKED, SKIPPED, BACK = "good", "parked", "skipped", "back"
BODIES = {
    GOOD: job_settled("job-good"),
    PARKED: "{",
    SKIPPED: job_settled("job-nowhere"),
    BACK: job_settled("job-back"),
}


@runs("BA-02")
def test_any_mixture_is_answered_with_ids_of_the_batch_each_once(run: Run) -> None:
    job = {"kind": "workspace_provisioning", "tenant_id": "t", "requester_id": "req", "details": {}}
    run.stage.seed(
        jobs=[{"job_id": name, **job} for name in ("job-good", "job-back")],
        requesters=[{"requester_id": "req", "tenant_id": "t", "email": "dana@example.com"}],
    )
    run.stage.wire.on("PutItem", error("AccessDeniedException"), when=about("job-back"))

    @settings(max_examples=40, deadline=None, database=None)
    @given(kinds=st.lists(st.sampled_from(list(BODIES)), max_size=6), twice=st.booleans())
    def holds(kinds: list[str], twice: bool) -> None:
        records = sqs_event(*(BODIES[kind] for kind in kinds))["Records"]
        if twice and records:
            records, kinds = [*records, records[0]], [*kinds, kinds[0]]
        answer = run.stage.invoke("tell_requester", {"Records": records})
        back = [record["messageId"] for record, kind in zip(records, kinds, strict=True) if kind == BACK]
        assert answer == {"batchItemFailures": [{"itemIdentifier": each} for each in dict.fromkeys(back)]}

    holds()


@runs("BA-05")
def test_records_that_there_is_no_time_for_are_reported_untouched(run: Run, one_at_a_time: None) -> None:
    def left() -> int:
        return 120_000 if run.stage.wire.count("PutItem") < 3 else 2500

    run.play(context=LambdaContext(left))
    run.check()
    assert run.stage.wire.count("PutItem") == 3
    assert run.counted == {"NoticeDelivered": 3}


@runs("BA-05")
def test_of_records_side_by_side_each_that_was_started_is_finished_and_each_other_comes_back(run: Run) -> None:
    asked = itertools.count()
    run.play(context=LambdaContext(lambda: 120_000 if next(asked) < 3 else 2500))
    assert run.played is not None
    job_of = {record["messageId"]: json.loads(record["body"])["job_id"] for record in run.event["Records"]}
    back = {job_of[failure["itemIdentifier"]] for failure in run.played.answer["batchItemFailures"]}
    started = {notice["job_id"]: notice["status"] for notice in run.stage.notices()}
    assert sorted(started.values()) == ["delivered"] * 3
    assert back == set(job_of.values()) - set(started)
    assert run.stage.wire.count("PutItem") == 3
    assert run.counted == {"NoticeDelivered": 3}
