"""`make deploy`: asks what has no safe default, once, and hands the rest to sam."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts.deploy import ASKED, main

ANSWERS = {
    "SesIdentity": "example.com",
    "NoticeFromAddress": '"Example, Notices" <notices@example.com>',
    "HqBaseUrl": "https://hq.example.com",
    "CustomerBaseUrl": "https://app.example.com",
    "JobsTableName": "jobs",
    "RequestersTableName": "requesters",
    "AlarmEmail": "oncall@example.com",
}


class Sam:
    """A command in sam's place, which writes down how it was called."""

    def __init__(self, folder: Path, status: int = 0) -> None:
        self.command = folder / "sam"
        self._calls = folder / "calls"
        write = 'import json, sys; *words, file = sys.argv[1:]; print(json.dumps(words), file=open(file, "a"))'
        self.command.write_text(
            f'#!/bin/sh\npython3 -c {shlex.quote(write)} "$@" {shlex.quote(str(self._calls))}\nexit {status}\n'
        )
        self.command.chmod(0o755)

    def calls(self) -> list[list[str]]:
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text().splitlines()]


@pytest.fixture
def sam(tmp_path: Path) -> Sam:
    return Sam(tmp_path)


def person(answers: Mapping[str, str]) -> tuple[Callable[[str], str], list[str]]:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question.removesuffix(": "))
        return answers[asked[-1]]

    return ask, asked


def deploy(sam: Sam, *arguments: str, stack: Mapping[str, str] | None = None, ask: Any = None) -> int:
    return main([*arguments, "--sam", str(sam.command)], parameters_of=lambda _name: stack, ask=ask)


def test_the_first_deploy_of_a_stage_asks_what_has_no_safe_default(sam: Sam) -> None:
    ask, asked = person(ANSWERS)

    assert deploy(sam, "production", ask=ask) == 0

    assert asked == list(ASKED)
    build, deployed = sam.calls()
    assert build == ["build", "--config-env", "production"]
    assert deployed[:4] == ["deploy", "--config-env", "production", "--parameter-overrides"]
    assert deployed[4:] == [
        'Environment="production"',
        'ServiceName="requester-notices"',
        'SesIdentity="example.com"',
        r'NoticeFromAddress="\"Example, Notices\" <notices@example.com>"',
        'HqBaseUrl="https://hq.example.com"',
        'CustomerBaseUrl="https://app.example.com"',
        'JobsTableName="jobs"',
        'RequestersTableName="requesters"',
        'AlarmEmail="oncall@example.com"',
    ]


def test_later_deploys_ask_nothing_and_leave_the_answers_as_they_were(sam: Sam) -> None:
    assert deploy(sam, "staging", "--set", "RetryHorizonHours=100", stack=ANSWERS) == 0

    deployed = sam.calls()[-1]
    assert deployed[4:] == [
        'Environment="staging"',
        'ServiceName="requester-notices-staging"',
        'RetryHorizonHours="100"',
    ]


def test_what_is_given_or_given_instead_is_not_asked(sam: Sam) -> None:
    ask, asked = person(ANSWERS)
    topic = "AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:alarms"
    given = ("SesIdentity=example.org", "MailFromAddress=mail@example.org", topic)

    assert deploy(sam, "staging", *(word for each in given for word in ("--set", each)), ask=ask) == 0

    assert asked == ["HqBaseUrl", "CustomerBaseUrl", "JobsTableName", "RequestersTableName"]


def test_an_answer_that_the_template_would_refuse_is_asked_again(sam: Sam, capsys: pytest.CaptureFixture[str]) -> None:
    answers: Iterator[str] = iter(["example", *ANSWERS.values()])

    assert deploy(sam, "staging", ask=lambda _question: next(answers)) == 0

    assert "SesIdentity must be a domain such as example.com" in capsys.readouterr().out
    assert 'SesIdentity="example.com"' in sam.calls()[-1]


def test_without_a_terminal_what_is_missing_is_named_and_nothing_is_built(
    sam: Sam, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    assert deploy(sam, "staging") == 2

    said = capsys.readouterr().err
    assert [name for name in ASKED if f"--set {name}=" in said] == list(ASKED)
    assert sam.calls() == []


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("elsewhere",), "samconfig.toml has no stage 'elsewhere'; it has default, staging, production"),
        (("staging", "--set", "Nonsense=1"), "Nonsense is not a parameter of the template"),
        (("staging", "--set", "RetryHorizonHours=1000"), "RetryHorizonHours must be a whole number from 1 to 336"),
        (("staging", "--set", "RetryHorizonHours=long"), "RetryHorizonHours must be a whole number"),
        (("staging", "--set", "Architecture=riscv"), "Architecture must be one of arm64, x86_64"),
        (("staging", "--set", "HqBaseUrl"), "'HqBaseUrl' is not NAME=VALUE"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_built(
    sam: Sam, arguments: tuple[str, ...], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deploy(sam, *arguments, stack=ANSWERS) == 2
    assert fault in capsys.readouterr().err
    assert sam.calls() == []


def test_a_build_that_fails_is_not_deployed(tmp_path: Path) -> None:
    sam = Sam(tmp_path, status=1)
    assert deploy(sam, "staging", stack=ANSWERS) == 1
    assert [call[0] for call in sam.calls()] == ["build"]


def test_without_sam_it_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["staging", "--sam", "no-such-sam"], parameters_of=lambda _name: None) == 2
    assert "pip install aws-sam-cli" in capsys.readouterr().err
