"""Every `notices` command line that a document, an alarm or the tool itself shows is one that the tool takes."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from cli.operator import Operator
from fakes.world import KIND, settled
from notices_cli import kinds
from notices_cli.codes import CODES
from notices_cli.main import notices
from scripts.template import ROOT, load
from template.resolve import Stack

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
STANDS_FOR = {
    "JOB": "job-1",
    "OUTCOME": "succeeded",
    "KIND": KIND,
    "[KIND]": KIND,
    "CODE": "throttled",
    "ID": "parked-1",
    "WHY": "it was wrong",
    "COMMAND": "explain",
}
HELP = re.compile(r"<!-- help: .*?<!-- end -->", re.DOTALL)  # written by the tool, and compared with it elsewhere


def lines(text: str) -> set[str]:
    """The command lines of a page: in back quotes, and lines of code without the remarks that follow them."""
    text = HELP.sub("", text)
    blocks = re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)
    quoted = re.findall(r"`(notices\s[^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    indented = re.findall(r"^(?: {4,}|\t)(notices .*)$", text, re.MULTILINE)
    typed = [line for block in blocks for line in re.findall(r"^\s*(notices .*)$", block, re.MULTILINE)]
    bare = (re.sub(r"( {2,}| #).*", "", line) for line in (*indented, *typed))
    each = (" ".join(line.split()) for line in (*quoted, *bare))
    return {line for whole in each for line in alternatives(whole)}


def alternatives(line: str) -> list[str]:
    """`notices pause | resume` is two."""
    first, *others = line.split(" | ")
    return [first, *(f"notices {other.removeprefix('notices ')}" for other in others)]


def of_alarms() -> set[str]:
    alarms = Stack(SesIdentity="example.com", UntoldCheck="scan").of_type("AWS::CloudWatch::Alarm").values()
    return {line for alarm in alarms for line in lines(alarm["AlarmDescription"])}


def of_remedies() -> set[str]:
    return {f"notices {word}" for about in CODES.values() for word in re.findall(r"\bnotices (\w+)", about.remedy)} - {
        "notices go"
    }


SHOWN = {
    **{line: page.relative_to(ROOT) for page in PAGES for line in lines(page.read_text(encoding="utf-8"))},
    **{line: Path("template.yaml") for line in of_alarms()},
    **{line: Path("codes.py") for line in of_remedies()},
}


def test_there_are_lines_to_check() -> None:
    assert len(SHOWN) > 25


@pytest.mark.parametrize("line", sorted(SHOWN))
def test_a_line_that_is_shown_is_one_that_the_tool_takes(line: str, tmp_path: Path, monkeypatch) -> None:
    assert taken(line, tmp_path, monkeypatch) is None, f"in {SHOWN[line]}"


@pytest.mark.parametrize(
    "line",
    [
        "notices explian JOB",
        "notices retry --state failed",
        "notices retry --status delivered",
        "notices retry --error nonsense --status failed",
        "notices parked --drop",
        "notices retry --suppressed",
        "notices retry JOB",
        "notices explain JOB OUTCOME more",
        "notices kind chek",
    ],
)
def test_a_line_that_is_wrong_is_found(line: str, tmp_path: Path, monkeypatch) -> None:
    assert taken(line, tmp_path, monkeypatch)


def test_lines_are_found_wherever_they_stand() -> None:
    page = (
        "Do `notices retry --status\n  failed`.\n\n    notices pause | resume   # both\n\n```sh\nnotices check\n```\n"
    )
    assert lines(page) == {"notices retry --status failed", "notices pause", "notices resume", "notices check"}


def not_read_by_kind(words: list[str]) -> str | None:
    try:
        kinds.command_line().parse_args(words)
    except SystemExit:
        return f"notices kind does not take {words}"
    return None


def taken(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """None where the tool takes the line, else what it says. Nothing is agreed to, so nothing is changed."""
    words = [STANDS_FOR.get(word, word) for word in shlex.split(line)[1:]]
    name, *rest = words
    if name not in notices.commands:
        return f"no command {name}"
    if rest in ([], ["..."]):
        return None  # it is spoken of
    if name == "kind":
        return not_read_by_kind(rest)  # what they do is tried by the test of docs/kinds.md
    monkeypatch.chdir(folder)  # a preview is written there
    operator = Operator()
    operator.world.job(outcome="succeeded")
    operator.parks(settled("job-1"))
    result = operator.types(*words, answer="n\n", code=None)
    return result.output if result.exit_code == 2 else None


# -- make -------------------------------------------------------------------------------------------------------------


MADE = {
    line: page.relative_to(ROOT)
    for page in PAGES
    for line in re.findall(r"(?:^\s+|`)(make [^`#\n]*)", page.read_text(encoding="utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("line", sorted(MADE))
def test_a_make_line_that_is_shown_has_its_target_stage_and_parameters(line: str) -> None:
    words = shlex.split(re.sub(r" {2,}.*", "", line))[1:]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert words[0] in targets, f"in {MADE[line]}"
    given = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    if given.get("STAGE", "…") != "…":
        assert given["STAGE"] in tomllib.loads((ROOT / "samconfig.toml").read_text())
    if words[0] == "deploy":
        parameters = set(load()["Parameters"]) | {"Name"}
        assert set(re.findall(r"--set (\w+)=", given.get("ARGS", ""))) <= parameters


def test_there_are_make_lines_to_check() -> None:
    assert len(MADE) > 10
