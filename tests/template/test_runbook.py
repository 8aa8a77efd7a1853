"""The runbook's commands are ones that the AWS CLI knows, on what the stack names; its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore import xform_name

from notices.codes import Code
from scripts.template import ROOT
from template.resolve import Stack

TEXT = (ROOT / "docs" / "runbook.md").read_text()
PROSE = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
SHELL = [block.replace("\\\n", " ") for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)]
COMMANDS = [command for block in SHELL for command in re.findall(r"(?=\b(aws [^|\n]*))", block)]
NOTICES = {"explain", "list", "retry", "parked", "pause", "resume", "check", "preview"}
OF_THE_CLI_ITSELF = {"query", "output"}
RECIPES = [
    "Stopping and starting",
    "SES has paused our sending",
    "A bad deploy of a kind",
    "A flood of jobs",
    "A region's SES is down",
    "Removing a person's data",
    "Restoring the notices table",
    "Raising a quota",
]


@cache
def service(name: str) -> Any:
    return botocore.session.Session().get_service_model(name)


def words(command: str) -> list[str]:
    """The command's own words. What stands in ``$(...)`` is a value here, and a command of its own in the list."""
    while (outer := re.sub(r"\$\([^()]*\)", "VALUE", command)) != command:
        command = outer
    return shlex.split(command.partition(')"')[0])


def kebab(member: str) -> str:
    return xform_name(member, "-")


def test_there_is_a_recipe_for_each_of_what_is_bound_to_happen() -> None:
    recipes = TEXT[TEXT.index("\n## Recipes") :]
    assert re.findall(r"^### (.*)$", recipes, re.MULTILINE) == RECIPES


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 25


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.split()[1:3]))
def test_the_aws_cli_has_the_command_with_these_options(command: str) -> None:
    said = words(command)
    if said[1:3] == ["dynamodb", "wait"]:
        assert said[3:4] == ["table-exists"]
        return
    name, operation = said[1:3]
    [shape] = [
        service(name).operation_model(each).input_shape
        for each in service(name).operation_names
        if kebab(each) == operation
    ]
    options = {word.removeprefix("--") for word in said if word.startswith("--")}
    members = {kebab(member): member for member in shape.members}
    switches = {kebab(member) for member, of in shape.members.items() if of.type_name == "boolean"}
    known = {*members, *(f"no-{switch}" for switch in switches), *OF_THE_CLI_ITSELF}
    assert options <= known
    assert {kebab(member) for member in shape.required_members} <= options


def test_every_output_that_it_reads_is_one_of_the_stack() -> None:
    read = set(re.findall(r"\$\(output (\w+)\)", TEXT))
    assert len(read) >= 5
    assert read <= set(Stack(SesIdentity="example.com").outputs())


def test_every_command_of_the_tool_is_one_that_it_has() -> None:
    assert {*re.findall(r"`notices (\w+)", TEXT)} <= NOTICES
    descriptions = Stack(SesIdentity="example.com", UntoldCheck="scan").of_type("AWS::CloudWatch::Alarm").values()
    for alarm in descriptions:
        assert {*re.findall(r"`notices (\w+)", alarm["AlarmDescription"])} <= NOTICES


def test_every_error_code_that_it_selects_by_is_one_that_notices_have() -> None:
    codes = set(re.findall(r"--error\s+(\w+)", TEXT)) - {"CODE"}
    assert len(codes) >= 4
    assert codes <= set(Code)


def quoted(pattern: str) -> set[str]:
    alarms = Stack(SesIdentity="example.com", UntoldCheck="scan").of_type("AWS::CloudWatch::Alarm").values()
    texts = (PROSE, *(alarm["AlarmDescription"] for alarm in alarms))
    return {" ".join(words.split()) for text in texts for words in re.findall(rf"`({pattern})`", text)}


def test_every_log_line_that_it_looks_for_is_one_that_the_code_writes() -> None:
    sought = {words for words in quoted(r"[a-z]+(?:\s[a-z]+)+") if not words.startswith(("notices ", "aws ", "make "))}
    sources = [path.read_text() for path in (ROOT / "layers/notices/notices").rglob("*.py")]
    assert len(sought) >= 5
    assert {words for words in sought if not any(f'"{words}"' in source for source in sources)} == set()


def test_every_part_of_the_dashboard_that_it_points_to_is_there() -> None:
    sought = quoted(r"[A-Z][a-z]+(?:\s\w+)+") | {"Functions"}
    body = Stack(SesIdentity="example.com").properties("Dashboard")["DashboardBody"]
    assert len(sought) >= 4
    assert {words for words in sought if f"# {words}" not in body} == set()


def test_every_link_leads_to_a_heading_or_a_file() -> None:
    anchors = {slug(heading) for heading in re.findall(r"^#+ (.*)$", PROSE, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", PROSE):
        path, _, fragment = target.partition("#")
        if not path:
            assert fragment in anchors
            continue
        text = (ROOT / "docs" / path).read_text()
        assert fragment in {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def slug(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
