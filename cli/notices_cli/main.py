"""The console script."""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from notices_cli.commands.check import check
from notices_cli.commands.explain import explain
from notices_cli.commands.kind import kind
from notices_cli.commands.list import list_notices
from notices_cli.commands.parked import parked
from notices_cli.commands.pause import pause, resume
from notices_cli.commands.preview import preview
from notices_cli.commands.retry import retry
from notices_cli.options import after_the_command
from notices_cli.show import complain
from notices_cli.tool import open_tool
from notices_cli.trouble import EXIT_CODES, EXPECTED, Exit, Trouble, explained


class _Commands(click.Group):
    """The group: what an operator can cause ends in one line, never in a traceback."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options of all commands before the command too; of others say where they go."""
        try:
            return super().parse_args(ctx, after_the_command(args, list(self.commands)))
        except click.NoSuchOption as error:
            command = next((word for word in args if word in self.commands), "COMMAND")
            message = f"No such option '{error.option_name}' before the command. Options come after it: "
            raise click.UsageError(f"{message}notices {command} {error.option_name} ...", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Trouble as trouble:
            complain(trouble)
            ctx.exit(trouble.code)
        except EXPECTED as error:
            answer = explained(error)
            complain(answer)
            ctx.exit(answer.code)
        except (KeyboardInterrupt, click.Abort):
            message = "Interrupted. What was done stays done; the command can be repeated safely."
            complain(Trouble(message, "", Exit.INTERRUPTED))
            ctx.exit(Exit.INTERRUPTED)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(package_name="requester-notices", prog_name="notices")
@click.pass_context
def notices(ctx: click.Context) -> None:
    """Was the requester told, and if not, why, and what is to be done?

    Begin with: notices explain JOB. Names of tables and queues come from the stack's outputs; credentials and region
    come as usual for AWS. Against make up, give --endpoint-url or set AWS_ENDPOINT_URL.
    """
    if ctx.obj is None:
        ctx.obj = open_tool


for _command in (explain, list_notices, retry, parked, pause, resume, check, preview, kind):
    notices.add_command(_command)


def main() -> None:
    """Run the tool. What a terminal cannot show of an answer is shown as its code, not as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    notices(prog_name="notices")


if __name__ == "__main__":
    main()
