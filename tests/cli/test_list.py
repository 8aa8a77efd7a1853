"""`notices list`: the notices asked for, newest first, and no more read than that takes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cli.operator import Operator
from fakes.mail import MISCONFIGURED, REFUSED, THROTTLED
from fakes.world import NOTICES
from notices.record import Status
from notices_cli.questions import Selection


@pytest.fixture
def operator() -> Operator:
    """Six notices, an hour between two: pending, throttled, misconfigured, refused, and two delivered."""
    operator = Operator()
    world = operator.world
    for number, scripted in enumerate([None, THROTTLED, MISCONFIGURED, REFUSED, "ok", "ok"]):
        world.job(f"job-{number}")
        if scripted is None:
            worker = world.worker()
            worker.notices.claim(worker.tell.jobs.get("job-0"), "succeeded")
        else:
            if scripted != "ok":
                world.provider.script.append(scripted)
            world.worker().told(f"job-{number}")
        world.clock.advance(timedelta(hours=1))
    world.store.rows.clear()
    return operator


def listed(operator: Operator, *words: str) -> list[str]:
    return [notice["job_id"] for notice in operator.asks("list", *words)["notices"]]


def test_all_are_listed_newest_first(operator):
    assert listed(operator) == ["job-5", "job-4", "job-3", "job-2", "job-1", "job-0"]


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        (("--status", "pending"), ["job-0"]),
        (("--status", "failed"), ["job-3", "job-2", "job-1"]),
        (("--status", "failed", "--error", "throttled"), ["job-1"]),
        (("--error", "throttled", "--error", "provider_refused"), ["job-3", "job-1"]),
        (("--waiting",), ["job-2", "job-1", "job-0"]),
        (("--waiting", "--status", "failed"), ["job-2", "job-1"]),
        (("--status", "delivered"), ["job-5", "job-4"]),
        (("--newer-than", "3h"), ["job-5", "job-4", "job-3"]),
        (("--older-than", "5h"), ["job-1", "job-0"]),
        (("--kind", "export"), []),
    ],
)
def test_they_are_chosen_by_status_code_kind_and_age(operator, words, jobs):
    assert listed(operator, *words) == jobs


def test_pages_follow_each_other_and_the_command_for_the_next_is_shown(operator):
    assert listed(operator, "--limit", "4") == ["job-5", "job-4", "job-3", "job-2"]
    assert listed(operator, "--limit", "4", "--page", "2") == ["job-1", "job-0"]
    text = operator.types("list", "--limit", "2", "--status", "failed", "--newer-than", "1d").output
    assert "notices list --status failed --newer-than 86400s --limit 2 --page 2" in text


def test_what_waits_is_read_by_the_index_and_nothing_else_is(operator):
    document = operator.asks("list", "--waiting")
    assert (document["source"], document["read"], document["complete"]) == ("index", 3, True)
    assert operator.world.store.rows == {"Query": 3}


def test_a_bounded_read_says_that_there_is_more(operator):
    for number in range(6, 600):
        item = dict(operator.world.store.item(NOTICES, "job-5", "succeeded"))
        operator.world.store.place(NOTICES, {**item, "job_id": {"S": f"job-{number}"}})
    result = operator.types("list", "--max-read", "10")
    assert "there are more" in result.output
    assert operator.asks("list", "--max-read", "10")["complete"] is False
    assert operator.asks("list")["total"] == 600


@pytest.mark.parametrize(
    ("selection", "by"),
    [
        (Selection(), ()),
        (Selection(frozenset({Status.PENDING})), ("pending",)),
        (Selection(frozenset({Status.FAILED})), ()),
        (Selection(frozenset({Status.FAILED}), frozenset({"throttled"})), ("failed",)),
        (Selection(frozenset({Status.FAILED}), frozenset({"throttled", "gave_up"})), ()),
        (Selection(frozenset({Status.FAILED, Status.PENDING}), waiting=True), ("failed", "pending")),
        (Selection(waiting=True), ("failed", "pending")),
        (Selection(frozenset({Status.DELIVERED})), ()),
        (Selection(frozenset({Status.DELIVERED, Status.PENDING})), ()),
        (Selection(frozenset(), frozenset({"throttled"})), ()),
    ],
)
def test_the_index_is_read_only_where_it_has_all_that_is_asked_for(selection, by):
    assert selection.by_index == by


def test_listing_into_a_pipe_has_no_colours_and_no_blanks_at_line_ends(operator):
    text = operator.types("list").output
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_an_age_that_is_none_is_refused(operator):
    assert "15m, 24h or 7d" in operator.types("list", "--newer-than", "soon", code=2).output


def test_on_a_narrow_terminal_a_job_id_is_not_broken(operator, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = operator.types("list", "--status", "failed").output.splitlines()
    assert "job-1 succeeded" in lines
    assert any(line.startswith("  status failed · tries 1 · age") for line in lines)
    assert all(len(line) <= 60 for line in lines)
