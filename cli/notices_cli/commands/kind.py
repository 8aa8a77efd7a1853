"""`notices kind`: make, check and look at kinds. No AWS is asked."""

from __future__ import annotations

import sys

import click

from notices_cli import kinds


@click.command(
    name="kind",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    short_help="Make, check and look at kinds of messages.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kind(arguments: tuple[str, ...]) -> None:
    """Make, check and look at kinds of messages: new, check, preview, gallery. See: notices kind --help."""
    sys.exit(kinds.main(list(arguments)))
