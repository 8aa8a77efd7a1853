"""What SES is given, and what its answers count as."""

import re
from email.utils import getaddresses
from pathlib import Path

import pytest

from cases import book, kinds
from cases.run import Run, runs, ses_event
from cases.stage import job_of, job_settled, sqs_event
from cases.wire import error as refuse
from fakes import ses_server


@pytest.fixture
def _short_read_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notices.mail.READ_SECONDS", 0.3)


def _send_without_an_answer(run: Run) -> None:
    run.stage.ses.script(ses_server.stall(2))
    run.play()
    run.check()
    assert run.stage.ses.request_count == 1
    assert run.counted == {"NoticeFailed": 1}
    run.stage.output.forget()


@pytest.mark.usefixtures("_short_read_timeout")
@runs("SE-01-a", "SE-01-b")
def test_a_send_without_an_answer_is_one_request_and_unknown_until_claimed_again_or_left_alone_under_a_lease(
    run: Run,
) -> None:
    _send_without_an_answer(run)
    run.play_then()
    run.check_then()
    assert run.counted == ({"NoticeDelivered": 1} if run.letter == "a" else {"NoticeInProgress": 1})


@pytest.mark.usefixtures("_short_read_timeout")
@runs("SE-01-a", "SE-01-b")
def test_an_unknown_send_is_sent_again_by_the_retrys_own_event_when_its_grace_is_over(run: Run) -> None:
    _send_without_an_answer(run)
    run.play({}, function="retry_due_notices")
    assert run.stage.take("JOB_SETTLED_QUEUE_URL") == []

    run.stage.change("job-0001", next_attempt_at=run.notice()["claimed_at"])
    run.play({}, function="retry_due_notices")
    (retried,) = run.stage.take("JOB_SETTLED_QUEUE_URL")
    run.play(sqs_event(retried["Body"]), function="tell_requester")
    run.check({"failures": [], "ses_calls": 1})
    assert run.notice()["status"] == "delivered"


SETTLES = {
    "send": True, "delivery": True, "delivery-delay": True, "bounce-permanent": True, "bounce-out-of-office": True,
    "complaint": True, "reject": False, "rendering-failure": False,
}  # fmt: skip


@pytest.mark.usefixtures("_short_read_timeout")
@pytest.mark.parametrize(("event", "settles"), SETTLES.items(), ids=SETTLES)
@runs("SE-01-a")
def test_an_ses_event_settles_an_unknown_send_if_it_proves_that_ses_accepted(
    run: Run, event: str, settles: bool
) -> None:
    _send_without_an_answer(run)
    (mail,) = run.stage.mails()
    feedback = book.sample(f"ses-eventbridge/{event}.json")
    for record in feedback["Records"]:
        record["body"] = ses_event(record["body"], run.notice()["claim_id"], mail.message_id)
    run.play(feedback, function="record_feedback")
    run.check({"failures": []})
    notice = run.notice()
    assert notice["status"] == ("delivered" if settles else "failed")
    assert ("next_attempt_at" in notice) == (not settles)
    assert notice.get("provider_reference") == (mail.message_id if settles else None)


@runs("SE-01-c")
def test_a_connection_that_is_never_made_is_unavailable(run: Run) -> None:
    run.stage.ses.refuse_connections()
    run.play()
    run.check()


@runs("SE-02")
def test_the_rate_limit_and_the_daily_quota_are_told_apart(run: Run, one_at_a_time: None) -> None:
    run.stage.ses.script(
        ses_server.error("TooManyRequestsException", 429, "Maximum sending rate exceeded."),
        ses_server.error("TooManyRequestsException", 429, "Daily message quota exceeded"),
        ses_server.error("LimitExceededException", 400, "limit"),
    )
    run.play()
    run.check()
    assert run.counted == {"NoticeFailed": 3}
    run.play({}, function="retry_due_notices")
    assert run.stage.take("JOB_SETTLED_QUEUE_URL") == []


@runs("SE-06")
def test_an_unverified_identity_is_a_setting_and_its_text_is_not_stored(run: Run) -> None:
    text = (
        "Email address is not verified. The following identities failed the check in region EU-WEST-1: "
        "dana@example.com\n"
    )
    run.stage.ses.otherwise(ses_server.error("MessageRejected", 400, text.ljust(5000, "x")))
    run.play()
    run.check()
    stored = run.notice()["error"]
    assert len(stored) <= 256
    assert stored.isprintable()
    assert "xxx" not in run.stage.output.text
    assert run.counted == {"NoticeFailed": 1, "MailMisconfigured": 1}


@runs("SE-07")
def test_addresses_that_ses_will_not_take_fail_for_good(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"NoticeDelivered": 2, "NoticeFailed": 9, "NoticeFailedForGood": 9}
    run.play({}, function="retry_due_notices")
    assert run.stage.take("JOB_SETTLED_QUEUE_URL") == []


@runs("SE-08-a", "SE-08-b")
def test_display_names_leave_one_recipient_and_one_sender(run: Run) -> None:
    run.play()
    run.check()
    for mail in run.stage.mails():
        assert re.fullmatch(r"[ -~]*<dana@example\.com>|dana@example\.com", mail.to)
        assert getaddresses([mail.sender]) == [("Example, Inc.", "notices@example.com")]


@runs("SE-09")
def test_a_line_break_in_a_fact_does_not_reach_the_subject_or_the_headers(run: Run) -> None:
    run.play()
    run.check()
    for mail in run.stage.mails():
        assert mail.subject.isprintable()
        assert mail.subject == mail.subject.strip()
        assert mail.to == "dana@example.com"
        assert "Bcc" not in mail.headers


@runs("SE-11")
def test_tags_bring_the_job_id_back_exactly(run: Run) -> None:
    run.play()
    run.check()
    assert {job_of(mail) for mail in run.stage.mails()} == {"team/42:run-7", "~" * 128}
    for mail in run.stage.mails():
        assert set(mail.tags) == {"notice_job", "notice_outcome", "notice_claim"}
        assert mail.tags["notice_outcome"] == "succeeded"
        assert mail.tags["notice_claim"] == run.notice(job_of(mail))["claim_id"]
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,256}", value) for value in mail.tags.values())
    assert sorted(len(mail.tags["notice_job"]) for mail in run.stage.mails())[-1] == 171


@runs("SE-12")
def test_the_mail_is_marked_as_automatic_and_no_fact_becomes_a_header(run: Run) -> None:
    run.play()
    run.check()
    (mail,) = run.stage.mails()
    assert mail.headers["Auto-Submitted"] == "auto-generated"
    assert len(mail.headers) <= 15
    for name, value in mail.headers.items():
        assert re.fullmatch(r"[!-9;-~]{1,126}", name)
        assert re.fullmatch(r"[ -~]{1,995}", value)
        assert "Gr" not in value
        assert "Evil" not in name + value


SWITCH = [f"SE-13-{letter}" for letter in "abcdefg"]


@runs(*SWITCH)
def test_only_the_exact_word_production_sends(run: Run) -> None:
    run.play()
    sends = run.letter == "a"
    run.check({**book.result(run.case, run.letter), "ses_calls": int(sends)})
    notice = run.notice()
    assert notice["status"] == ("delivered" if sends else "suppressed")
    assert "handled_at" in notice
    assert ("provider_reference" in notice) == sends
    assert run.counted == {"NoticeDelivered" if sends else "NoticeSuppressed": 1}


@runs(*SWITCH[1:])
def test_outside_production_it_is_said_at_start(run: Run) -> None:
    run.stage.start("tell_requester")
    assert run.stage.output.at("WARNING")


@runs("SE-13-e")
def test_outside_production_a_broken_text_still_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kinds.break_a_text(monkeypatch, tmp_path)
    run.play()
    run.check({"failures": [], "ses_calls": 0})
    assert run.notice()["status"] == "failed"
    assert run.notice()["error"].startswith("template_error")


@runs("SE-13-e")
def test_outside_production_a_missing_address_still_fails_for_good(run: Run) -> None:
    requester = run.case["seed"]["requesters"][0]
    run.stage.put("RequestersTable", [{**requester, "email": None}])
    run.play()
    assert run.notice()["error"].startswith("address_missing")
    assert run.counted == {"NoticeFailed": 1, "NoticeFailedForGood": 1}


@runs("SE-13-a")
def test_a_suppressed_notice_gives_way_to_a_delivery_but_is_not_claimed_again(run: Run) -> None:
    run.stage.wire.on("SendEmail", refuse("AccessDeniedException", 403))
    run.stage.seed(notices=[])
    run.play()
    assert run.notice()["error"].startswith("provider_misconfigured")
    run.stage.wire.clear()
    suppressed = {name: value for name, value in run.notice().items() if name not in ("error", "next_attempt_at")} | {
        "status": "suppressed"
    }
    run.stage.put("NoticesTable", [suppressed])
    run.play(sqs_event(job_settled("job-0001")))
    run.check({"failures": [], "ses_calls": 0})
    assert run.notice()["status"] == "suppressed"
