"""``make deploy STAGE=staging``: build and deploy with sam, and ask only what has no safe default.

A stage is an environment of samconfig.toml. At its first deploy this asks for the parameters of ASKED that
samconfig.toml does not set; from then on CloudFormation keeps their values, and nothing is asked. ``--set Name=value``
changes one. (``sam deploy --guided`` works too, and asks for every parameter.) Exit status: 0 when deployed, 1 when sam
failed, 2 when a value is wrong or missing.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from scripts.template import ROOT, load

# Left out, nobody would be told, links would be missing, tables would be made beside the platform's own, and alarms
# would notify nobody. Every other parameter has a default that is safe.
ASKED = (
    "SesIdentity",
    "NoticeFromAddress",
    "HqBaseUrl",
    "CustomerBaseUrl",
    "JobsTableName",
    "RequestersTableName",
    "AlarmEmail",
)
INSTEAD_OF = {"NoticeFromAddress": "MailFromAddress", "AlarmEmail": "AlarmTopicArn"}  # given, the question is answered


class DeployError(RuntimeError):
    """It cannot be deployed like this; the message says what is wrong or missing."""


def main(
    arguments: Sequence[str] | None = None,
    *,
    parameters_of: Callable[[str], Mapping[str, str] | None] | None = None,
    ask: Callable[[str], str] | None = None,
) -> int:
    """Deploy. ``parameters_of`` gives a deployed stack's parameters, None where there is none; ``ask`` an answer."""
    parser = argparse.ArgumentParser(prog="make deploy", description=__doc__)
    parser.add_argument("stage", help="an environment of samconfig.toml")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the template")
    parser.add_argument("--sam", default="sam", help="the SAM CLI's command (default: %(default)s)")
    options = parser.parse_args(arguments)
    ask = ask or (input if sys.stdin.isatty() else None)
    try:
        config = _config(options.stage)
        sam = shutil.which(options.sam)
        if sam is None:
            raise DeployError("the SAM CLI is not on the PATH: `pip install aws-sam-cli` in an environment of its own")
        declared = load()["Parameters"]
        overrides = _pairs(config.get("parameter_overrides", []))
        overrides |= _pairs(options.set)
        if (parameters_of or _deployed)(config["stack_name"]) is None:
            overrides |= _answers(overrides, declared, ask)
        _check(overrides, declared)
    except DeployError as error:
        print(error, file=sys.stderr)
        return 2
    for command in (["build"], ["deploy", "--parameter-overrides", *[_quoted(*pair) for pair in overrides.items()]]):
        done = subprocess.run([sam, command[0], "--config-env", options.stage, *command[1:]], cwd=ROOT)
        if done.returncode:
            return 1
    return 0


def _config(stage: str, path: Path = ROOT / "samconfig.toml") -> Mapping[str, Any]:
    stages = tomllib.loads(path.read_text(encoding="utf-8"))
    stages.pop("version")
    if stage not in stages:
        raise DeployError(f"samconfig.toml has no stage {stage!r}; it has {', '.join(stages)}")
    found: Mapping[str, Any] = stages[stage]["deploy"]["parameters"]
    return found


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise DeployError(f"{text!r} is not NAME=VALUE")
        pairs[name] = value
    return pairs


def _deployed(stack_name: str) -> Mapping[str, str] | None:
    try:
        [stack] = boto3.client("cloudformation").describe_stacks(StackName=stack_name)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise DeployError(f"AWS does not say whether {stack_name} is deployed: {error}") from error
    except BotoCoreError as error:
        raise DeployError(f"AWS cannot be asked whether {stack_name} is deployed: {error}") from error
    if stack["StackStatus"] == "REVIEW_IN_PROGRESS":
        return None  # a change set that nobody carried out: nothing is there
    return {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack.get("Parameters", [])}


def _answers(given: Mapping[str, str], declared: Mapping[str, Any], ask: Callable[[str], str] | None) -> dict[str, str]:
    """What a person says to each parameter that is asked for and not given."""
    open_questions = [name for name in ASKED if name not in given and INSTEAD_OF.get(name) not in given]
    if open_questions and ask is None:
        raise DeployError(
            "the first deploy of a stage needs these, and there is no terminal to ask at:\n"
            + "\n".join(f"  --set {name}=...   {declared[name]['Description']}" for name in open_questions)
        )
    answers = {}
    for name in open_questions:
        assert ask is not None  # noqa: S101 - see above
        print(f"\n{declared[name]['Description']}")
        while True:
            answers[name] = ask(f"{name}: ").strip()
            if not (fault := _fault(name, answers[name], declared[name])):
                break
            print(f"  {fault}")
    return answers


def _check(overrides: Mapping[str, str], declared: Mapping[str, Any]) -> None:
    unknown = sorted(set(overrides) - set(declared))
    faults = [f"{name} is not a parameter of the template" for name in unknown]
    faults += [
        fault
        for name, value in overrides.items()
        if name in declared and (fault := _fault(name, value, declared[name]))
    ]
    if faults:
        raise DeployError("\n".join(faults))


def _fault(name: str, value: str, declared: Mapping[str, Any]) -> str | None:
    """What CloudFormation would have against a value; it would say so only after the build."""
    allowed = [str(each) for each in declared.get("AllowedValues", [])]
    if allowed and value not in allowed:
        return f"{name} must be one of {', '.join(allowed)}"
    if declared["Type"] == "Number":
        try:
            number = float(value)
        except ValueError:
            return f"{name} must be a number"
        least, most = declared.get("MinValue", number), declared.get("MaxValue", number)
        return None if least <= number <= most else f"{name} must be from {least} to {most}"
    fits = declared.get("MinLength", 0) <= len(value) <= declared.get("MaxLength", 4096)
    if fits and re.fullmatch(declared.get("AllowedPattern", ".*"), value):
        return None
    return f"{name} must be {declared.get('ConstraintDescription', 'as ' + declared.get('AllowedPattern', ''))}"


def _quoted(name: str, value: str) -> str:
    """As sam takes a pair: it unescapes what is in quotes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'


if __name__ == "__main__":
    sys.exit(main())
