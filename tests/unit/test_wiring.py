"""What the handlers are built from: one clear error for all that is missing, and nothing of AWS needed to start."""

from __future__ import annotations

import json
import shutil

import pytest

from fakes.context import FakeContext
from fakes.kinds import KIND, one_kind
from notices import wiring
from notices.kinds import load_catalogue
from notices.settings import SettingsError

ENVIRON = {
    "AWS_REGION": "eu-west-1",
    "NOTICES_TABLE": "Notices",
    "JOBS_TABLE": "Jobs",
    "REQUESTERS_TABLE": "Requesters",
    "JOB_SETTLED_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/queue",
    "JOB_SETTLED_DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/dead",
    "MAIL_CONFIGURATION_SET": "mail",
}
BUILDERS = {
    "tell_requester": [
        "NOTICES_TABLE",
        "JOBS_TABLE",
        "REQUESTERS_TABLE",
        "JOB_SETTLED_DEAD_LETTER_QUEUE_URL",
        "MAIL_CONFIGURATION_SET",
    ],
    "retry_due_notices": ["NOTICES_TABLE", "JOB_SETTLED_QUEUE_URL"],
    "record_feedback": ["NOTICES_TABLE"],
    "find_untold": ["NOTICES_TABLE", "JOBS_TABLE"],
}


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No profile and no region of the machine's own."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("name", BUILDERS)
def test_all_that_a_function_lacks_is_named_at_once(name):
    with pytest.raises(SettingsError) as raised:
        getattr(wiring, name)({})
    assert all(variable in str(raised.value) for variable in ("AWS_REGION", *BUILDERS[name]))


@pytest.mark.parametrize("name", BUILDERS)
def test_a_function_starts_with_what_it_needs_and_no_call(name):
    needed = {variable: ENVIRON[variable] for variable in ("AWS_REGION", *BUILDERS[name])}
    assert callable(getattr(wiring, name)(needed))


@pytest.mark.parametrize("name", ["tell_requester", "record_feedback"])
def test_an_empty_batch_is_answered_without_a_call(name):
    handler = getattr(wiring, name)(ENVIRON)
    assert handler({"Records": []}, FakeContext()) == {"batchItemFailures": []}


def started(capsys, service: str, **environ: str) -> list[dict]:
    wiring.tell_requester({**ENVIRON, "POWERTOOLS_SERVICE_NAME": service, **environ})
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("environment", ["staging", "Production", ""])
def test_a_start_that_will_not_send_says_so_loudly(capsys, environment):
    (line,) = started(capsys, f"suppressed-{environment}", ENVIRONMENT=environment)
    assert line["level"] == "WARNING"
    assert "suppressed" in line["message"]


def test_a_start_in_production_without_a_from_address_names_both(capsys):
    (line,) = started(capsys, "unset", ENVIRONMENT="production")
    assert line["level"] == "ERROR"
    assert "NOTICE_FROM_ADDRESS" in line["message"]
    assert "MAIL_FROM_ADDRESS" in line["message"]


def test_a_start_in_production_with_a_from_address_has_nothing_to_say(capsys):
    assert started(capsys, "set", ENVIRONMENT="production", MAIL_FROM_ADDRESS="mail@example.com") == []


@pytest.mark.parametrize("name", ["tell_requester", "find_untold"])
def test_a_function_starts_with_a_broken_kind_and_says_which(name, monkeypatch, tmp_path, caplog):
    kinds = one_kind(tmp_path)
    shutil.copytree(kinds / KIND, kinds / "export")
    (kinds / "export" / "kind.toml").unlink()
    monkeypatch.setattr("notices.kinds.load_catalogue", lambda: load_catalogue(kinds))

    assert callable(getattr(wiring, name)(ENVIRON))

    (line,) = [record for record in caplog.records if record.message.startswith("a kind is broken")]
    assert line.levelname == "ERROR"
    assert line.kind == "export"
    assert "export/kind.toml: the file is missing" in line.fault
