"""What all commands share: where the system is, what an operator can run into, and the words."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from datetime import timedelta

import botocore.exceptions as sdk
import click
import pytest
from click.testing import CliRunner
from moto import mock_aws

from cli.operator import Operator, refusal
from fakes.queues import sqs_error
from notices.database import DatabaseError
from notices.queues import QueueError
from notices_cli.dead_letters import DeadLetterQueue
from notices_cli.main import notices
from notices_cli.place import NAMES
from notices_cli.tool import Options, open_tool
from notices_cli.trouble import EXIT_CODES, Exit, Trouble, explained
from notices_cli.words import command, duration, masked, span
from scripts.cli_docs import DOCS, filled
from scripts.template import load

COMMANDS = ("check", "explain", "list", "parked", "pause", "preview", "resume", "retry")
FAKE = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}


# -- where it is ----------------------------------------------------------------------------------------------------


def test_a_stack_that_is_not_there_ends_in_one_line():
    result = Operator().types("list", "--stack", "other", code=3)
    assert result.stderr.startswith("notices: There is no stack other in eu-west-1.")
    assert len(result.stderr.splitlines()) == 1


def test_the_options_of_all_commands_may_come_before_the_command():
    operator = Operator()
    before = operator.types("--json", "--region", "eu-north-1", "--stack=requester-notices", "list").stdout
    assert operator.options.region == "eu-north-1"
    assert before == operator.types("list", "--json").stdout
    operator.types("--stack", "other", "list", code=3)


def test_what_is_said_after_the_command_counts_over_what_was_said_before():
    operator = Operator()
    operator.types("--region", "eu-north-1", "list", "--region", "eu-west-1")
    assert operator.options.region == "eu-west-1"


@pytest.mark.parametrize("words", [("--yes", "retry"), ("--stack", "x", "--status", "failed", "list")])
def test_an_option_of_one_command_before_it_says_where_it_goes(words):
    said = Operator().types(*words, code=2).stderr
    option = next(word for word in words if word in ("--yes", "--status"))
    assert f"No such option '{option}' before the command. Options come after it: notices {words[-1]} {option}" in said


def test_an_endpoint_that_is_none_ends_in_one_line():
    result = CliRunner(env=FAKE).invoke(notices, ["list", "--region", "eu-west-1", "--endpoint-url", "nonsense"])
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 1)
    assert "nonsense is no endpoint" in result.stderr


def test_a_terminal_that_cannot_show_a_letter_gets_an_answer_all_the_same(tmp_path):
    command = [sys.executable, "-m", "notices_cli.main", "preview", "workspace_provisioning"]
    environment = {"PATH": os.defpath, "PYTHONIOENCODING": "latin-1"}
    said = subprocess.run(
        [*command, "--html", "x"], cwd=tmp_path, env=environment, capture_output=True, encoding="latin-1"
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert "See the workspace\\u2019s status" in said.stdout


class CtrlC(io.BytesIO):
    """An operator who thinks better of it."""

    def read1(self, _size=-1):
        raise KeyboardInterrupt


def test_ctrl_c_at_the_question_is_an_interruption_and_changes_nothing():
    operator = Operator()
    result = operator.types("pause", answer=CtrlC(), code=130)
    assert result.stderr == "notices: Interrupted; nothing was changed.\n"
    assert operator.changes == []


def test_names_given_by_hand_need_no_stack():
    operator = Operator()
    operator.types("list", "--notices-table", "Notices", "--jobs-table", "Jobs", "--requesters-table", "Requesters")
    assert operator.stack.asked == 0


def test_the_stack_is_asked_once():
    operator = Operator()
    operator.types("explain", "job-1", "succeeded")
    assert operator.stack.asked == 1


def test_an_output_that_is_missing_is_named_with_the_option_that_replaces_it():
    operator = Operator()
    del operator.stack.outputs["NoticesTableName"]
    assert (
        "NoticesTableName. Deploy it again with this template or give --notices-table."
        in operator.types("list", code=3).stderr
    )


def test_another_stack_is_kept_in_the_commands_that_are_proposed():
    assert command("retry", "a job's", "x", suffix=" --stack y") == "notices retry 'a job'\"'\"'s' x --stack y"


def test_the_template_has_every_output_that_is_asked_for():
    assert {output for output, _ in NAMES.values()} <= set(load()["Outputs"])


def test_the_stack_region_profile_and_endpoint_come_from_the_environment_too():
    operator = Operator()
    environment = {
        "NOTICES_STACK": "requester-notices",
        "AWS_REGION": "eu-north-1",
        "AWS_PROFILE": "night",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
    }
    CliRunner(env=environment).invoke(notices, ["list"], obj=operator.open)
    assert operator.options == Options("requester-notices", "eu-north-1", "night", "http://127.0.0.1:4566", {}, "")


# -- the real thing -------------------------------------------------------------------------------------------------


def test_without_a_region_it_says_so(monkeypatch):
    result = CliRunner(env={"AWS_CONFIG_FILE": "/nowhere"}).invoke(notices, ["list"])
    assert (result.exit_code, result.stderr) == (3, "notices: There is no region. Give --region, or set AWS_REGION.\n")


def test_a_profile_that_is_not_there_is_named():
    result = CliRunner(env=FAKE).invoke(notices, ["list", "--region", "eu-west-1", "--profile", "nope"])
    assert result.exit_code == 3
    assert "nope" in result.stderr


def test_where_nobody_answers_it_says_so():
    arguments = ["list", "--region", "eu-west-1", "--endpoint-url", "http://127.0.0.1:1"]
    arguments += ["--notices-table", "a", "--jobs-table", "b", "--requesters-table", "c"]
    result = CliRunner(env={**FAKE, "AWS_MAX_ATTEMPTS": "1"}).invoke(notices, arguments)
    assert result.exit_code == 3
    assert "Nobody answers at http://127.0.0.1:1" in result.stderr


def test_against_an_aws_the_dead_letter_queue_is_looked_at_put_back_and_dropped():
    with mock_aws():
        options = Options("s", "eu-west-1", None, None, {})
        sqs = open_tool(options).client("sqs")
        source, dead = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("source", "dead"))
        for number in range(12):
            sqs.send_message(QueueUrl=dead, MessageBody=f"body {number}")
        dead_letters = DeadLetterQueue(sqs, dead, wait_seconds=0)
        first, second = dead_letters.look(100), dead_letters.look(100)
        assert sorted(each.body for each in first.messages) == sorted(each.body for each in second.messages)
        assert len(first.messages) == 12
        with dead_letters.held(100) as look:
            dead_letters.put_back(look.messages[0], source)
            dead_letters.delete(look.messages[1])
        assert len(dead_letters.look(100).messages) == 10
        assert sqs.receive_message(QueueUrl=source)["Messages"][0]["Body"] == look.messages[0].body


# -- what can go wrong ----------------------------------------------------------------------------------------------


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (sdk.NoCredentialsError(), "no AWS credentials"),
        (refusal("ExpiredTokenException", "X"), "have expired"),
        (refusal("UnrecognizedClientException", "X"), "does not accept the credentials"),
        (refusal("AccessDenied", "ListThings"), "AWS denies ListThings"),
        (refusal("ThrottlingException", "X"), "Wait a minute"),
        (refusal("ResourceNotFoundException", "X"), "Check --stack"),
        (refusal("SomethingElse", "X"), "X failed: SomethingElse"),
        (sdk.EndpointConnectionError(endpoint_url="http://a"), "Nobody answers at http://a"),
        (sdk.NoRegionError(), "no region"),
        (DatabaseError("Scan", "T", "ProvisionedThroughputExceededException"), "throttles Scan on the table T"),
        (caused(DatabaseError("Scan", "T", "NoCredentialsError"), sdk.NoCredentialsError()), "no AWS credentials"),
        (caused(QueueError("AccessDenied"), sqs_error("AccessDenied")), "denies a call to the queue"),
    ],
)
def test_whatever_aws_says_becomes_one_line_with_its_remedy(error, words):
    trouble = explained(error)
    assert isinstance(trouble, Trouble)
    assert words in str(trouble)
    assert "\n" not in str(trouble)
    assert trouble.code is Exit.AWS


# -- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("dana@example.com", "d***@example.com"),
        ("d@example.com", "d***@example.com"),
        (" dana@example.com ", "d***@example.com"),
        ("dana", "***"),
        ("", None),
        (None, None),
        ("@example.com", "***@example.com"),
    ],
)
def test_addresses_are_masked(address, shown):
    assert masked(address) == shown


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(seconds=61), "1 min 1 s"),
        (timedelta(minutes=14), "14 min"),
        (timedelta(hours=25), "1 day 1 h"),
        (timedelta(days=14), "14 days"),
        (timedelta(seconds=-3), "0 s"),
    ],
)
def test_lengths_of_time_are_short(length, words):
    assert span(length) == words


@pytest.mark.parametrize("text", ["", "1", "h", "1w", "-1h", "1.5h", "1 h"])
def test_only_plain_lengths_of_time_are_taken(text):
    with pytest.raises(ValueError, match="15m, 24h or 7d"):
        duration(text)


# -- help and docs --------------------------------------------------------------------------------------------------


def test_the_commands_are_those_of_the_docs():
    # `kind` is for those who write kinds: docs/kinds.md
    assert tuple(sorted(set(notices.commands) - {"kind"})) == COMMANDS


def test_kinds_are_checked_without_aws():
    result = CliRunner().invoke(notices, ["kind", "check"])
    assert result.exit_code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_names_the_exit_codes_and_explains_each_option(name):
    text = CliRunner().invoke(notices, [name, "--help"]).output
    assert " ".join(EXIT_CODES.split()) in " ".join(text.split())
    for parameter in notices.commands[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]}"


def test_the_exit_codes_of_the_help_are_those_of_the_code():
    named = {int(word.strip(".;")) for word in EXIT_CODES.split() if word.strip(".;").isdigit()}
    assert named == {int(code) for code in Exit}


def test_the_docs_hold_the_help_as_it_is():
    text = DOCS.read_text(encoding="utf-8")
    assert text == filled(text), "run python -m scripts.cli_docs"
