"""`notices check`: would a notice be sent?"""

from __future__ import annotations

import click

from notices_cli.checks import Finding, Level
from notices_cli.checks import check as look
from notices_cli.options import with_tool
from notices_cli.show import Output
from notices_cli.tool import Tool
from notices_cli.trouble import EXIT_CODES, Exit
from notices_cli.words import count

_MARKS = {
    Level.OK: ("ok", "green"),
    Level.NOTE: ("note", "yellow"),
    Level.FAULT: ("FAULT", "bold red"),
    Level.UNSEEN: ("?", "magenta"),
}


@click.command(epilog=EXIT_CODES)
@click.option("--quiet", "-q", is_flag=True, help="Only what is not as it should be.")
@with_tool
def check(quiet: bool, tool: Tool, out: Output) -> None:
    """Before the first notice and after each deploy: would a notice be sent?

    Settings, from-address and base URLs as deployed; SES's account, quota and send rate, identity, configuration set
    and its events; tables, keys and index; queues; and whether sending goes on. Each fault comes with its remedy. A
    FAULT stops notices, or loses what became of them, and makes the exit code 1; a note does not. What could not be
    seen makes it 3 where there is no fault. It changes and sends nothing.
    """
    tool.place.name("notices_table")  # a stack that is not there is no finding but the end
    findings: list[Finding] = []
    area = ""
    for finding in look(tool):
        findings.append(finding)
        if quiet and finding.level is Level.OK:
            continue
        if finding.area != area:
            area = finding.area
            out.say(area, "bold")
        mark, style = _MARKS[finding.level]
        out.field(f"  {mark}", finding.says, "" if finding.level is Level.OK else style)
        if finding.remedy:
            out.field("", f"→ {finding.remedy}")
    numbers = {level: sum(1 for finding in findings if finding.level is level) for level in Level}
    faults, unseen = numbers[Level.FAULT], numbers[Level.UNSEEN]
    out.json(
        {
            "ok": not (faults or unseen),
            "findings": [
                {"area": each.area, "level": each.level.value, "says": each.says, "remedy": each.remedy or None}
                for each in findings
            ],
        }
    )
    out.say()
    summary = f"{count(faults, 'fault')}, {count(numbers[Level.NOTE], 'note')}, {numbers[Level.OK]} as they should be"
    if unseen:
        summary += f", {unseen} could not be seen"
    out.say(f"{summary}.", "red" if faults else "magenta" if unseen else "green")
    if faults or unseen:
        click.get_current_context().exit(Exit.FAULT if faults else Exit.AWS)
