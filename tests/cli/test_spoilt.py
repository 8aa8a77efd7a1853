"""A notice that somebody spoilt by hand: it is named, and hides no other."""

from __future__ import annotations

import copy

import pytest

from cli.operator import Operator
from fakes.mail import THROTTLED
from fakes.world import NOTICES, settled

SPOILT = {
    "status": {"S": "told"},
    "created_at": {"S": "yesterday"},
    "attempts": {"S": "one"},
    "revision": None,
    "attempt_log": {"L": [{"M": {"result": {"S": "failed"}}}]},
    "feedback": {"M": {"type": {"S": "open"}, "at": {"S": "2026-11-29T10:00:00.000000+0000"}}},
    "next_attempt_at": {"S": "tomorrow"},
}


def spoilt(attribute: str) -> Operator:
    """Two notices that failed, the first of them spoilt."""
    operator = Operator()
    for job in ("job-1", "job-2"):
        operator.world.job(job)
        operator.world.provider.script.append(THROTTLED)
        operator.world.worker().told(job)
    item = copy.deepcopy(operator.world.store.item(NOTICES, "job-1", "succeeded"))
    item[attribute] = SPOILT[attribute]
    kept = {name: value for name, value in item.items() if value is not None}
    operator.world.store.place(NOTICES, kept)
    return operator


@pytest.mark.parametrize("attribute", SPOILT)
def test_a_spoilt_notice_is_explained_as_one_of_which_nobody_can_say(attribute):
    said = spoilt(attribute).explains("job-1")
    assert (said["told"], said["state"], said["step"], said["mend_first"]) == ("doubtful", "spoilt", None, True)


@pytest.mark.parametrize("attribute", SPOILT)
def test_a_spoilt_notice_hides_no_other_and_is_named(attribute):
    operator = spoilt(attribute)
    document = operator.asks("list")
    assert [each["job_id"] for each in document["notices"]] == ["job-2"]
    assert document["unreadable"] == [{"job_id": "job-1", "outcome": "succeeded"}]
    said = " ".join(operator.types("list").output.split())
    assert "1 item cannot be read, as somebody spoilt them by hand: job-1 succeeded" in said
    assert operator.asks("retry", "--status", "failed", "--yes")["queued"] == 1


@pytest.mark.parametrize("attribute", SPOILT)
def test_a_spoilt_notice_is_not_retried_by_name(attribute):
    operator = spoilt(attribute)
    said = operator.types("retry", "job-1", "succeeded", "--yes", code=4).stderr
    assert said.startswith("notices: The notice of job-1 succeeded cannot be read: ")
    assert len(said.splitlines()) == 1


def test_the_parked_event_of_a_spoilt_notice_is_not_put_back():
    operator = spoilt("status")
    operator.parks(settled("job-1"))
    (message,) = operator.asks("parked")["messages"]
    assert message["fate"] == "broken"
    assert "cannot be read" in message["why"]


def test_a_spoilt_notice_does_not_stop_the_check():
    operator = spoilt("next_attempt_at")
    assert operator.asks("check")["ok"] is True
