"""`notices preview`: what readers would see, and nothing sent."""

from __future__ import annotations

import json

import pytest

from cli.operator import Operator
from fakes.world import World, catalogue


@pytest.fixture
def operator(tmp_path, monkeypatch) -> Operator:
    monkeypatch.chdir(tmp_path)
    return Operator()


def test_every_outcome_and_audience_of_a_kind_is_shown_without_asking_aws(operator, tmp_path):
    document = operator.asks("preview", "workspace_provisioning")
    titles = [each["title"] for each in document["messages"]]
    for kind in catalogue():
        for outcome in kind.outcomes:
            for whom in ("a colleague", "a customer"):
                assert f"{kind.name}: {outcome}, to {whom}" in titles
    page = (tmp_path / document["page"]).read_text()
    assert page.count("<iframe") == len(titles)
    assert page.count("sandbox srcdoc=") == len(titles)
    assert (operator.gate.calls, operator.stack.asked) == ([], 0)


def test_the_only_kind_needs_no_name_and_the_text_is_printed(operator):
    assert "Hello Dana Example" in operator.types("preview").output


def test_a_kind_or_language_that_is_not_there_is_refused_with_those_that_are(operator):
    assert "only: workspace_provisioning" in operator.types("preview", "exports", code=2).output
    assert "only in: de, en" in operator.types("preview", "--language", "xx", code=2).output


def test_a_real_job_shows_the_very_letter_that_would_be_sent(operator, tmp_path):
    document = operator.asks("preview", "--job", "job-1", "--outcome", "succeeded", "--html", "it.html")
    assert not operator.world.provider.letters
    assert operator.world.notice() is None
    operator.world.worker().told()
    (letter,) = operator.world.provider.letters
    (message,) = document["messages"]
    assert (message["subject"], message["text"]) == (letter.subject, letter.text)
    assert "dana@" not in json.dumps(document)
    assert "d***@example.com" in document["note"]
    assert (tmp_path / "it.html").exists()


def test_the_jobs_table_says_how_it_ended_where_it_does(operator):
    assert "Give --outcome" in operator.types("preview", "--job", "job-1", code=2).output
    operator.world.job(outcome="failed")
    assert "job-1 failed" in operator.asks("preview", "--job", "job-1")["note"]


def test_outside_production_it_says_that_nothing_would_be_sent(operator):
    operator.variables["ENVIRONMENT"] = "staging"
    assert "suppressed" in operator.asks("preview", "--job", "job-1", "--outcome", "failed")["note"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"removed_at": "2026-11-29"}, "nobody is told (job_removed)"),
        ({"requester_id": "nobody"}, "not in the requesters table"),
        ({"tenant_id": "another"}, "not of the job's tenant"),
    ],
)
def test_a_job_that_would_send_nothing_says_why(operator, change, words):
    operator.world.job(**change)
    assert words in operator.types("preview", "--job", "job-1", "--outcome", "failed", code=4).stderr


def test_a_job_that_is_not_there_is_refused(operator):
    assert "no job nope" in operator.types("preview", "--job", "nope", code=4).stderr


def test_a_page_that_cannot_be_written_is_one_line(operator):
    assert "Give another --html" in operator.types("preview", "--html", "no/such/folder.html", code=4).stderr


def test_a_job_id_with_slashes_stays_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    operator = Operator(World())
    operator.world.job("../job")
    document = operator.asks("preview", "--job", "../job", "--outcome", "failed")
    assert document["page"] == "preview-___job.html"
