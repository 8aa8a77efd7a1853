"""What SES says afterwards."""

import json

import pytest

from cases import wire
from cases.run import Run, runs, ses_event
from cases.stage import job_settled, sqs_event


def _one_line_for_each(run: Run, *numbers: int) -> None:
    for number in numbers:
        message_id = run.event["Records"][number - 1]["messageId"]
        assert len(run.stage.output.of(message_id)) == 1, number


@runs("FE-01")
def test_one_complaint_in_both_forms_is_one_complaint(run: Run) -> None:
    run.play()
    run.check()
    _one_line_for_each(run, 1, 2)
    assert run.counted == {"FeedbackComplaint": 1}


@runs("FE-02")
def test_control_text_is_acknowledged_with_one_line_and_a_broken_body_goes_back(run: Run) -> None:
    run.play()
    run.check()
    _one_line_for_each(run, 1, 2, 3, 4)
    assert run.counted == {}
    assert run.stage.wire.calls == []


@runs("FE-03")
def test_a_rendering_failure_is_recorded_and_types_that_are_not_used_change_nothing(run: Run) -> None:
    run.play()
    run.check()
    _one_line_for_each(run, 1, 2, 3, 4, 5, 6)
    assert run.stage.wire.count("UpdateItem") == 1


@pytest.mark.parametrize("order", [1, -1], ids=["delivery-first", "bounce-first"])
@runs("FE-04")
def test_an_out_of_office_reply_leaves_the_notice_delivered_in_either_order(run: Run, order: int) -> None:
    run.event["Records"] = run.event["Records"][::order]
    run.play()
    run.check()
    assert run.notice()["feedback"]["detail"] == "Transient/General"
    assert run.counted == {"FeedbackBounce": 1}


@runs("FE-06")
def test_feedback_before_the_outcome_settles_by_the_tags_alone(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"NoticeDelivered": 2, "FeedbackBounce": 1}
    _one_line_for_each(run, 1, 2, 3)
    run.stage.output.forget()

    run.play_then()
    run.check_then()
    assert run.counted == {}
    run.play({}, function="retry_due_notices")
    assert run.stage.take("JOB_SETTLED_QUEUE_URL") == []


@pytest.mark.parametrize("kind", ["send", "bounce"])
@runs("FE-06")
def test_the_senders_own_result_that_comes_after_the_feedback_is_no_second_delivery(run: Run, kind: str) -> None:
    send, bounce = run.then()["event"]["Records"][0]["body"], run.event["Records"][0]["body"]
    run.stage.dynamodb.delete_item(
        TableName="NoticesTable", Key={"job_id": {"S": "job-0001"}, "outcome": {"S": "succeeded"}}
    )

    def feedback() -> None:
        (mail,) = run.stage.mails()
        body = ses_event(send if kind == "send" else bounce, run.notice()["claim_id"], mail.message_id)
        run.stage.invoke("record_feedback", sqs_event(body, prefix="20000000"))

    run.stage.wire.on("UpdateItem", wire.after(feedback), times=1)
    run.play(sqs_event(job_settled("job-0001")), function="tell_requester")
    run.check({"failures": [], "ses_calls": 1})
    assert run.notice()["status"] == "delivered"
    assert run.results() == ["delivered"]
    assert run.counted["NoticeDelivered"] == 1
    assert "DuplicateDelivery" not in run.counted
    assert "OutcomeNotRecorded" not in run.counted


@runs("FE-06")
def test_a_send_of_another_message_is_a_second_delivery(run: Run) -> None:
    run.play()
    run.stage.output.forget()
    body = run.then()["event"]["Records"][0]["body"]
    run.play(sqs_event(ses_event(body, "another-claim", "another-message")))
    assert run.counted == {"DuplicateDelivery": 1}
    assert run.results() == ["delivered", "delivered"]
    assert run.notice()["provider_reference"].startswith("0102019000000001-")


@runs("FE-08")
def test_thin_complaints_and_bounces_are_recorded_with_what_they_have(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"FeedbackComplaint": 4, "FeedbackBounce": 1}
    assert "message_id" not in run.notice("job-0007")["feedback"]
    for notice in run.stage.notices():
        assert None not in notice.get("feedback", {}).values()


@runs("FE-10")
def test_addresses_are_neither_compared_nor_stored_and_not_spam_is_no_complaint(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"FeedbackBounce": 1, "FeedbackComplaint": 1}
    assert "@" not in json.dumps(run.stage.notices(), default=str)
    assert "@" not in run.stage.output.text


@runs("FE-11")
def test_the_gravest_news_is_kept_with_its_sub_type_and_status_code(run: Run) -> None:
    run.play()
    run.check()
    assert run.notice("job-0001")["feedback"]["detail"] == "Permanent/OnAccountSuppressionList 5.1.1"
    assert run.notice("job-0002")["feedback"]["detail"] == "Transient/General 4.4.7"
    run.play({}, function="retry_due_notices")
    assert run.stage.take("JOB_SETTLED_QUEUE_URL") == []


@runs("FE-11")
def test_a_delay_alone_changes_no_status(run: Run) -> None:
    run.event["Records"] = run.event["Records"][2:3]
    run.play()
    notice = run.notice("job-0002")
    assert notice["status"] == "delivered"
    assert notice["feedback"]["type"] == "delivery_delay"
