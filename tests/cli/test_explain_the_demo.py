"""`notices explain` on the cast of the demo: the same jobs, requesters and faults, and the answer to each row."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest

from cli.operator import Operator
from demo.cast import ANSWER_LOST, BOUNCED, MALFORMED, PAUSED, REQUESTERS, ROWS, UNVERIFIED, Row
from fakes.mail import MISCONFIGURED, UNKNOWN, ses_event

ANSWERS = {UNVERIFIED.job_id: MISCONFIGURED, PAUSED.job_id: MISCONFIGURED, ANSWER_LOST.job_id: UNKNOWN}
CUT_OFF = '{"type":"job.settled","job_id":"job-10'

SAYS = {
    "delivered": ("yes", "delivered", None),
    "skipped": ("no", "skipped", None),
    "failed": ("no", "failed_for_good", "notices retry {job} succeeded"),
    "untold": ("no", "not_arrived", "notices retry {job} succeeded"),
}


def played(row: Row) -> Operator:
    """The row as the demo's story has it, up to its end."""
    operator = Operator()
    world = operator.world
    for requester in REQUESTERS:
        world.requester(**{"email": None, "name": None, **requester})
    if row.stored:
        settled_at = world.clock.at.isoformat()
        facts = {"kind": row.kind, "tenant_id": "acme", "requester_id": row.requester_id, "details": row.details}
        world.job(row.job_id, **facts, outcome=row.outcome, settled_at=settled_at, **row.job)
    if not row.announced:
        return operator
    if row.job_id in ANSWERS:
        world.provider.script.append(ANSWERS[row.job_id])
    letters = world.provider.letters
    world.worker().told(row.job_id, row.outcome)
    if row is ANSWER_LOST:
        # SES has it all the same
        world.worker().handle_feedback(ses_event(_Accepted(letters[0]), "Send"))
    elif row is BOUNCED:
        bounce = {"bounceType": "Permanent", "bounceSubType": "General"}
        world.worker().handle_feedback(ses_event(world.provider.accepted[0], "Bounce", **bounce))
    elif row.job_id in ANSWERS:
        operator.waits(timedelta(minutes=2))
        world.worker().run_retry()
        operator.runs_the_queue()
    return operator


class _Accepted:
    def __init__(self, letter: Any) -> None:
        self.letter = letter
        self.reference = "message-1"


@pytest.mark.parametrize("row", [row for row in ROWS if row is not MALFORMED], ids=lambda row: row.job_id)
def test_the_answer_to_a_row_of_the_demo_is_that_of_its_table(row: Row) -> None:
    expected = row.expected
    said = played(row).explains(row.job_id, row.outcome)
    told, state, step = SAYS[expected.result]
    if expected.feedback == "permanent_bounce":
        told = "no"
    assert (said["told"], said["state"]) == (told, state), asdict(row)
    assert said["step"] == (step and step.format(job=row.job_id))
    if expected.result in ("skipped", "failed"):
        assert said["reason"] == expected.why
    attempts = {line["text"].split(":")[0] for line in said["history"] if line["text"].startswith("attempt")}
    assert len(attempts) == (expected.attempts or 0)


def test_the_event_that_was_cut_off_is_shown_as_parked_and_taken_for_no_other_job() -> None:
    operator = Operator()
    operator.parks(CUT_OFF, "not_json")
    (message,) = operator.asks("parked")["messages"]
    assert (message["reason"], message["fate"]) == (MALFORMED.expected.why, "broken")
    assert operator.explains("job-1001", None)["state"] == "skipped"  # nobody knows that job here
