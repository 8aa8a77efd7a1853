"""`notices pause` and `resume`: both switches together, as often as one likes."""

from __future__ import annotations

import pytest

from cli.operator import Operator


@pytest.fixture
def operator() -> Operator:
    return Operator()


def test_pausing_stops_the_schedule_and_then_the_taking_of_events(operator):
    document = operator.asks("pause", "--yes")
    assert document == {"sending": "paused", "events": "Disabled", "schedule": "DISABLED", "changed": True}
    assert operator.changes == ["schedule off", "event source off"]


def test_resuming_starts_the_taking_of_events_and_then_the_schedule(operator):
    operator.types("pause", "--yes")
    operator.changes.clear()
    assert operator.asks("resume", "--yes")["sending"] == "on"
    assert operator.changes == ["event source on", "schedule on"]


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_done_again_it_changes_nothing_and_does_not_ask(operator, command):
    operator.types("pause", "--yes")
    operator.types(command, "--yes")
    operator.changes.clear()
    result = operator.types(command)
    assert "nothing was changed" in result.output
    assert operator.changes == []


def test_half_a_pause_is_completed(operator):
    operator.rules.state = "DISABLED"
    assert operator.asks("pause", "--status")["sending"] == "partly"
    assert operator.asks("pause", "--yes")["sending"] == "paused"


def test_it_says_what_a_pause_means_and_for_how_long_before_it_asks(operator):
    result = operator.types("pause", answer="n\n", code=4)
    for words in ("keeps each for 10 days", "resume before 2026-12-09", "two minutes", "3 days after", "15 minutes"):
        assert words in " ".join(result.output.split())
    assert operator.changes == []


def test_the_status_alone_changes_nothing(operator):
    assert operator.asks("pause", "--status") == {
        "sending": "on",
        "events": "Enabled",
        "schedule": "ENABLED",
        "changed": False,
    }
    assert operator.changes == []


def test_it_waits_until_lambda_has_stopped(operator):
    states = ["Disabling", "Disabling", "Disabled"]
    slept: list[float] = []
    tool = operator.open
    operator.functions.get_event_source_mapping = lambda **_: {"State": states.pop(0) if len(states) > 1 else states[0]}

    def open_(options):
        opened = tool(options)
        opened.switch._sleep = slept.append
        return opened

    operator.open = open_
    assert operator.asks("pause", "--yes")["sending"] == "paused"
    assert slept


def test_a_stack_of_an_older_template_is_told_to_be_deployed_again(operator):
    del operator.stack.outputs["RetryScheduleRuleName"]
    assert "no output RetryScheduleRuleName. Deploy it again" in operator.types("pause", code=3).stderr
