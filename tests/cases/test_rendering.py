"""The message that a requester gets, and what never becomes one."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from cases import kinds, stack
from cases.run import Run, runs


class _Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hrefs += [value or "" for name, value in attrs if name == "href"]


@runs("RE-01")
def test_the_page_escapes_a_fact_and_the_text_and_subject_have_it_as_it_is(run: Run) -> None:
    run.play()
    run.check()
    (mail,) = run.stage.mails()
    name = run.case["seed"]["jobs"][0]["details"]["workspace_name"]
    assert name in mail.subject
    assert name in mail.text
    assert str(escape(name)) in mail.html
    assert "<img src=x" not in mail.html


@runs("RE-01")
def test_the_link_is_percent_encoded_and_the_same_in_both_parts(run: Run) -> None:
    run.play()
    (mail,) = run.stage.mails()
    link = "https://app.example.com/workspaces/ws%201%2F2%26x%3D%C3%BC"
    assert link in mail.text.split()
    assert set(_Links(mail.html).hrefs) == {link}
    assert re.search(rf'href="{re.escape(link)}"', mail.html)


@runs("RE-03")
def test_a_requester_is_told_even_when_facts_are_lacking(run: Run) -> None:
    run.play()
    run.check()
    for mail in run.stage.mails():
        for part in (mail.subject, mail.text, mail.html):
            for slip in ("None", "{{", " ,", '""', "''", "“”", "new_fact", "«»"):
                assert slip not in part, (slip, part)


@runs("RE-03")
def test_missing_and_null_facts_read_alike(run: Run) -> None:
    run.play()

    def text(job_id: str) -> str:
        (mail,) = run.stage.mails(job_id)
        number = job_id[-4:]
        return f"{mail.subject}\n{mail.text}\n{mail.html}".replace(job_id, "job").replace(f"ws-{number}", "ws")

    assert text("job-0001") == text("job-0002") == text("job-0003")
    assert "Research" in text("job-0001")
    assert text("job-0004") == text("job-0005")
    assert "Research" not in text("job-0004")
    assert "Hello Dana Example," in text("job-0006")
    assert "Hello," in text("job-0001")


@runs("RE-03")
def test_a_text_that_cannot_do_without_a_fact_fails_before_anything_is_sent(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kinds.break_a_text(monkeypatch, tmp_path)
    run.event["Records"] = run.event["Records"][:1]
    run.play()
    run.check({"failures": [], "ses_calls": 0})
    notice = run.notice()
    assert notice["error"].startswith("template_error")
    assert "failure_reason" in notice["error"]
    assert "next_attempt_at" in notice
    assert run.counted == {"NoticeFailed": 1, "MailMisconfigured": 1}


@runs("RE-05")
def test_kinds_and_outcomes_that_nobody_declared_are_skipped_and_a_contradiction_is_parked(run: Run) -> None:
    run.play()
    run.check()
    assert run.counted == {"NoticeDelivered": 1, "NoticeSkipped": 5, "EventParked": 1}
    skipped = [line for line in run.stage.output.logs if line.get("result") == "skipped"]
    assert len(skipped) == 5
    assert {each.get("kind") for each in run.stage.output.emf} <= {None, "workspace_provisioning"}


@runs("RE-05")
def test_a_kind_that_is_not_known_is_skipped_without_a_look_up(run: Run) -> None:
    run.play()
    looked_up = _keys(run)
    assert looked_up.isdisjoint({"job-0001", "job-0002", "job-0003"})
    assert {"job-0004", "job-0005"} <= looked_up


def _keys(run: Run) -> set[str]:
    found: set[str] = set()
    for call in run.stage.wire.calls:
        keys: list[dict[str, Any]] = [call.payload["Key"]] if "Key" in call.payload else []
        for request in call.payload.get("RequestItems", {}).values():
            keys += request["Keys"]
        found |= {key["job_id"]["S"] for key in keys if "job_id" in key}
    return found


@runs("RE-06")
def test_the_link_is_in_the_message_alone_and_as_it_should_be(run: Run) -> None:
    run.play()
    run.check()
    (mail,) = run.stage.mails()
    link = "https://app.example.com/workspaces/ws%20a%2Fb%3D%3F%26"
    assert link in mail.text.split()
    assert set(_Links(mail.html).hrefs) == {link}
    for place in (run.stage.output.text, str(run.stage.notices())):
        assert "ws%20a" not in place
        assert "ws a/b" not in place


def test_nothing_is_tracked_that_would_rewrite_the_link() -> None:
    destinations = [
        each["Properties"]["EventDestination"]
        for each in stack.resources().values()
        if each["Type"] == "AWS::SES::ConfigurationSetEventDestination"
    ]
    assert destinations
    for destination in destinations:
        assert not {"OPEN", "CLICK"} & {each.upper() for each in destination["MatchingEventTypes"]}
