"""What all commands take: where the system is, and how to answer."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from notices.event import JobSettled, Unprocessable, parse
from notices.queues import Retry
from notices_cli.place import DEFAULT_STACK, NAMES
from notices_cli.show import Output
from notices_cli.tool import Options, Tool
from notices_cli.words import duration

_F = TypeVar("_F", bound=Callable[..., Any])

_BY_HAND = {option: what for what, (_, option) in NAMES.items() if option}

WHERE = ("--stack", "--region", "--profile", "--endpoint-url", *_BY_HAND)
JSON = "--json"

Opener = Callable[[Options], Tool]
"""Makes the tool of the options; the context's object, so that a test can pass one of its own."""


class Length(click.ParamType[timedelta]):
    """A length of time: 90s, 15m, 24h, 7d."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """See click."""
        if isinstance(value, timedelta):
            return value
        try:
            return duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def with_tool(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of all, and call it with `tool` and `out`."""

    @functools.wraps(command)
    def call(
        *args: Any,
        stack: str,
        region: str | None,
        profile: str | None,
        endpoint_url: str | None,
        as_json: bool,
        **rest: Any,
    ) -> None:
        ctx = click.get_current_context()
        typed = _typed(ctx)
        given = {what: value for what in _BY_HAND.values() if (value := rest.pop(what, None))}
        opener: Opener = ctx.obj
        tool = opener(Options(stack, region, profile, endpoint_url or None, given, typed))
        command(*args, tool=tool, out=Output(as_json), **rest)

    for option in reversed(_COMMON):
        call = option(call)
    return call


def _typed(ctx: click.Context) -> str:
    """Return where the command was sent, as it was typed, so that a command proposed to follow goes there too.

    What the environment says is left to it, but for the stack: that decides most.
    """
    words: list[str] = []
    for option in WHERE:
        name = option.lstrip("-").replace("-", "_")
        name = _BY_HAND.get(option, name)
        value, source = ctx.params.get(name), ctx.get_parameter_source(name)
        if value and (source is ParameterSource.COMMANDLINE or (name == "stack" and value != DEFAULT_STACK)):
            words += [option, str(value)]
    return shlex.join(words)


def after_the_command(args: Sequence[str], commands: Sequence[str]) -> list[str]:
    """Return a command line with the options of all commands, where they were typed first, behind the command."""
    args, moved = list(args), []
    while args and args[0].startswith("-"):
        option, equals, _ = args[0].partition("=")
        if option not in (*WHERE, JSON):
            break
        takes = 1 if equals or option == JSON else 2
        moved += args[:takes]
        del args[:takes]
    if args and args[0] in commands:
        return [args[0], *moved, *args[1:]]
    return [*args, *moved]


def _by_hand(option: str, what: str) -> Callable[[_F], _F]:
    output = NAMES[what][0]
    return click.option(option, what, metavar="NAME", help=f"Instead of the stack's output {output}.", hidden=False)


_COMMON = (
    click.option(
        "--stack", envvar="NOTICES_STACK", default=DEFAULT_STACK, show_default=True, help="The CloudFormation stack."
    ),
    click.option("--region", envvar=["AWS_REGION", "AWS_DEFAULT_REGION"], help="The AWS region."),
    click.option("--profile", envvar="AWS_PROFILE", help="The AWS profile."),
    click.option("--endpoint-url", envvar="AWS_ENDPOINT_URL", help="Another AWS, such as that of make up."),
    *(_by_hand(option, what) for option, what in _BY_HAND.items()),
    click.option(JSON, "as_json", is_flag=True, help="One JSON document for scripts (docs/cli.md)."),
)

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def checked_reason(reason: str | None, of: str) -> str:
    """Return why something is done, on one line.

    Raises:
        UsageError: it says nothing: it is missing, or the dots of a command that was proposed.
    """
    text = " ".join((reason or "").split())
    if not any(character.isalnum() for character in text):
        raise click.UsageError(f"{of} needs a --reason, in words.")
    return text


def checked_key(job_id: str, outcome: str | None) -> tuple[str, str | None]:
    """Return a job id and outcome that can be those of an event.

    Raises:
        UsageError: they cannot.
    """
    try:
        event: JobSettled = parse(Retry(job_id, outcome or "succeeded", 1).body())
    except Unprocessable as refused:
        what = {"job_id": "JOB is 1 to 128 printable ASCII characters without spaces"}.get(
            refused.field or "", "OUTCOME is lower case, such as succeeded or failed"
        )
        raise click.UsageError(f"{what}.") from None
    return event.job_id, outcome
