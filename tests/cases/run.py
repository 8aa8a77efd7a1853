"""One run of one case: seed, play, check."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from cases import book, checks
from cases.checks import Expected, Played
from cases.stage import Handler, LambdaContext, Stage

covered: set[tuple[str, str]] = set()


def runs(*names: str) -> pytest.MarkDecorator:
    """Play a test once for each of these runs: a case's id and a letter, as `EV-04-b`; run A where there is none."""
    for name in names:
        covered.add(_split(name))
    return pytest.mark.parametrize("run", names, indirect=True)


def _split(name: str) -> tuple[str, str]:
    group, number, *letter = name.split("-")
    return f"{group}-{number}", letter[0] if letter else "a"


@dataclass
class Run:
    """The stage of a case, seeded, and what was played on it last."""

    case: dict[str, Any]
    letter: str
    stage: Stage
    played: Played | None = None

    @classmethod
    def of(cls, name: str, **environ: str | None) -> Run:
        """The run of this name; its stage has still to be entered."""
        case_id, letter = _split(name)
        case = book.case(case_id, book.real_now())
        return cls(case, letter, Stage({**book.variant(case, letter), **environ}))

    def seed(self) -> None:
        """Put what the case begins with."""
        seed = self.case["seed"]
        self.stage.seed(seed["jobs"], seed["requesters"], seed["notices"])

    @property
    def event(self) -> dict[str, Any]:
        """The case's event; a test may change it."""
        event: dict[str, Any] = self.case["event"]
        return event

    def add_record(self, body: str) -> str:
        """Add a record to the event and return its id."""
        number = len(self.event["Records"]) + 1
        message_id = f"00000000-0000-4000-8000-{number:012d}"
        self.event["Records"].append({**self.event["Records"][0], "messageId": message_id, "body": body})
        return message_id

    def play(
        self,
        event: dict[str, Any] | None = None,
        *,
        function: str | None = None,
        context: LambdaContext | None = None,
        handler: Handler | None = None,
    ) -> Played:
        """Call the handler with the case's event, or another, and keep what came of it."""
        event = self.event if event is None else event
        requests, lines, started = self.stage.ses.request_count, len(self.stage.output.logs), book.real_now()
        answer, raised = None, None
        try:
            answer = self.stage.invoke(function or self.case["function"], event, context, handler)
        except Exception as error:  # noqa: BLE001 - what a handler raises is what some cases are about
            raised = error
        self.played = Played(event, answer, raised, self.stage.ses.request_count - requests, started)
        checks.check_answer(self.played)
        checks.check_lines(self.played, self.stage.output.logs[lines:])
        checks.check_notices(self.stage)
        checks.check_privacy(self.stage, self.case["seed"], self.event)
        return self.played

    def then(self) -> dict[str, Any]:
        """The case's later call, whose `event` a test may change before it is played."""
        then: dict[str, Any] = self.case["then"][0]
        return then

    def play_then(self) -> Played:
        """Play the later call."""
        return self.play(self.then()["event"], function=self.then()["function"])

    def check(
        self,
        expected: Expected | None = None,
        *,
        failures: Iterable[str] = (),
        parked: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Compare what was played last with the case's result, or another, and what a test added to the case."""
        if self.played is None:
            raise AssertionError("nothing was played")
        expected = book.result(self.case, self.letter) if expected is None else expected
        if "failures" in expected:
            expected["failures"] += failures
        if "parked" in expected:
            expected["parked"] += [{"source_message_id": each, "reason": reason} for each, reason in parked]
        checks.check(self.stage, expected, self.played, self.case["seed"])

    def check_then(self) -> None:
        """Compare with the result of the later call."""
        self.check(book.result(self.then(), self.letter))

    # Short cuts

    @property
    def counted(self) -> dict[str, float]:
        """The counts of this run, but for the seconds."""
        return self.stage.output.counted

    def notice(self, job_id: str = "job-0001", outcome: str = "succeeded") -> dict[str, Any]:
        """A notice that has to be there."""
        notice = self.stage.notice(job_id, outcome)
        if notice is None:
            raise AssertionError(f"no notice for {job_id}")
        return notice

    def results(self, job_id: str = "job-0001", outcome: str = "succeeded") -> list[str]:
        """The results in a notice's log, in their order."""
        return [entry["result"] for entry in self.notice(job_id, outcome)["attempt_log"]]


def ses_event(body: str, claim_id: str, message_id: str) -> str:
    """An SES event's body with another claim and message in it."""
    event = json.loads(body)
    event["detail"]["mail"]["messageId"] = message_id
    event["detail"]["mail"]["tags"]["notice_claim"] = [claim_id]
    return json.dumps(event)
