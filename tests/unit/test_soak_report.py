"""A soak is judged by the notices and the mails alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from demo.mail_front import SentMail
from demo.soak_report import TIME, report

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def notice(job_id: str, *log: tuple[str, str, str], seconds: float = 5, **changes: Any) -> dict[str, Any]:
    entries = [{"claim_id": claim, "result": result, "error": error} for claim, result, error in log]
    item = {
        "job_id": job_id,
        "status": "delivered",
        "attempts": len(log),
        "attempt_log": entries,
        "created_at": (START + timedelta(seconds=1)).strftime(TIME),
        "handled_at": (START + timedelta(seconds=seconds)).strftime(TIME),
        **changes,
    }
    return {name: value for name, value in item.items() if value is not None}


def mail(job_id: str, claim_id: str) -> SentMail:
    text = f"Hello,\n\nReference: {job_id}\n\nWhy."
    tags = {"notice_claim": claim_id}
    return SentMail("id", "from", "to", "subject", text, "", {}, tags, "mail", START, answered=True)


def judged(*notices: dict[str, Any], mails: list[SentMail]) -> Any:
    return report({str(each["job_id"]): START for each in notices}, notices, mails)


def test_a_notice_with_one_mail_is_clean() -> None:
    seen = judged(notice("job-1", ("c1", "delivered", "")), mails=[mail("job-1", "c1")])
    assert seen.clean
    assert seen.mails_per_notice == {1: 1}
    assert seen.extra_mails == {}
    assert seen.seconds_from_event["longest"] == 5
    assert seen.seconds_from_claim["longest"] == 4


def test_a_second_mail_is_explained_by_what_the_log_says_of_the_first_ones_claim() -> None:
    lost = notice("job-1", ("c1", "failed", "provider_unknown: X"), ("c2", "delivered", ""))
    killed = notice("job-2", ("c1", "abandoned", ""), ("c2", "delivered", ""))
    slow = notice("job-3", ("c1", "abandoned", ""), ("c2", "delivered", ""), ("c1", "delivered", ""))
    seen = judged(lost, killed, slow, mails=[mail(f"job-{n}", claim) for n in (1, 2, 3) for claim in ("c1", "c2")])
    assert seen.clean
    assert seen.mails_per_notice == {2: 3}
    assert {why.split()[1]: often for why, often in seen.extra_mails.items()} == {"answer": 1, "worker": 2}


def test_mails_that_went_out_in_another_order_than_their_claims_are_explained_by_the_first_claim() -> None:
    overtaken = notice("job-1", ("c1", "abandoned", ""), ("c2", "delivered", ""), ("c1", "delivered", ""))
    seen = judged(overtaken, mails=[mail("job-1", "c2"), mail("job-1", "c1")])
    assert seen.clean
    assert [why.split()[1] for why in seen.extra_mails] == ["worker"]


def test_a_mail_after_a_delivery_is_not_taken_for_one_of_two_workers_at_once() -> None:
    claimed_again = notice("job-1", ("c1", "delivered", ""), ("c2", "delivered", ""))
    seen = judged(claimed_again, mails=[mail("job-1", "c1"), mail("job-1", "c2")])
    assert seen.unexplained == ["job-1"]


def test_a_second_mail_under_one_claim_is_not_explained() -> None:
    sent_twice = notice("job-1", ("c1", "failed", "provider_unknown: X"), ("c1", "delivered", ""))
    seen = judged(sent_twice, mails=[mail("job-1", "c1"), mail("job-1", "c1")])
    assert seen.unexplained == ["job-1"]


def test_a_notice_that_ended_without_a_mail_is_not_clean() -> None:
    refused = notice("job-1", ("c1", "failed", "provider_refused: X"), status="failed")
    suppressed = notice("job-2", ("c1", "suppressed", ""), status="suppressed")
    seen = judged(refused, suppressed, mails=[])
    assert seen.unsettled == []
    assert seen.undelivered == ["job-1", "job-2"]
    assert not seen.clean


def test_a_second_mail_that_nothing_explains_is_not_clean() -> None:
    seen = judged(notice("job-1", ("c2", "delivered", "")), mails=[mail("job-1", "c1"), mail("job-1", "c2")])
    assert seen.unexplained == ["job-1"]
    assert not seen.clean


def test_a_notice_that_is_still_due_is_not_clean() -> None:
    due = notice("job-1", ("c1", "failed", "throttled: X"), status="failed", next_attempt_at="later")
    assert judged(due, mails=[]).unsettled == ["job-1"]


def test_a_pending_notice_is_not_clean() -> None:
    assert judged(notice("job-1", status="pending", handled_at=None), mails=[]).unsettled == ["job-1"]


def test_a_job_without_a_notice_is_not_clean() -> None:
    assert report({"job-1": START}, [], []).unsettled == ["job-1"]


def test_a_delivered_notice_without_a_mail_is_not_clean() -> None:
    assert judged(notice("job-1", ("c1", "delivered", "")), mails=[]).unsettled == ["job-1"]
