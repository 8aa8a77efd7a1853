"""Write the commands' help into docs/cli.md, between its markers: ``python -m scripts.cli_docs``."""

from __future__ import annotations

import re

import click

from notices_cli.main import notices
from scripts.template import ROOT

DOCS = ROOT / "docs" / "cli.md"
WIDTH = 100
_BLOCK = re.compile(r"<!-- help: ([a-z]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """Return the page with every help as it is now."""
    return _BLOCK.sub(lambda block: f"<!-- help: {block[1]} -->\n```\n{_help(block[1])}\n```\n<!-- end -->", text)


def _help(name: str) -> str:
    whole = notices.make_context("notices", [], resilient_parsing=True, terminal_width=WIDTH, max_content_width=WIDTH)
    if name == "notices":
        return notices.get_help(whole)
    command = notices.commands[name]
    context = click.Context(command, whole, info_name=name)
    return command.get_help(context)


if __name__ == "__main__":
    DOCS.write_text(filled(DOCS.read_text(encoding="utf-8")), encoding="utf-8")
