"""`notices preview`: the messages of a kind, or the one that a job would send; nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from notices.event import JobSettled, Unprocessable
from notices.examples import load_examples
from notices.kinds import Catalogue, Kind
from notices.message import Message
from notices_cli.codes import CODES
from notices_cli.options import checked_key, with_tool
from notices_cli.preview_page import Shown, page
from notices_cli.show import Output
from notices_cli.tool import Tool
from notices_cli.trouble import EXIT_CODES, refused
from notices_cli.words import command, masked


@click.command(epilog=EXIT_CODES)
@click.argument("kind", required=False)
@click.option("--job", help="Instead of examples: what this job would send, from the tables as they are.")
@click.option("--outcome", help="With --job: how it ended. Default: what the jobs table says.")
@click.option("--language", help="Of the examples: this language of the kind's instead of the readers' own.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Where the page goes.")
@with_tool
def preview(
    kind: str | None,
    job: str | None,
    outcome: str | None,
    language: str | None,
    html: Path | None,
    tool: Tool,
    out: Output,
) -> None:
    """Show every outcome and audience of KIND from its examples, as text and as one HTML page. Nothing is sent.

    Without KIND: of the only kind there is, else it names them. Examples need no AWS. With --job it renders what a real
    job would send now to its requester, by the deployed settings; that reads the job and the requester.
    """
    if job is not None:
        if kind or language:
            raise click.UsageError("With --job neither KIND nor --language: the job and its requester say both.")
        _job(job, outcome, html, tool, out)
        return
    if outcome:
        raise click.UsageError("--outcome goes with --job.")
    chosen = _kind(tool.kinds, kind)
    if language and language.lower() not in chosen.languages:
        languages = ", ".join(each.tag for each in chosen.languages.values())
        raise click.UsageError(f"{chosen.name} has no texts in '{language}', only in: {languages}.")
    shown = []
    for example in load_examples(chosen):
        title = f"{chosen.name}: {example.outcome}, to {_whom(example.audience)}"
        shown.append(Shown(title, example.message(chosen, language)))
    note = "Rendered from the kind's examples (examples.toml). Nothing was sent."
    _present(f"{chosen.title}: what is sent", note, shown, html or Path(f"preview-{chosen.name}.html"), out)


def _kind(kinds: Catalogue, name: str | None) -> Kind:
    names = ", ".join(kind.name for kind in kinds)
    if name is None and len(kinds.sound) == 1:
        return kinds.sound[0]
    if name is None:
        raise click.UsageError(f"Which kind? {names}")
    match kinds.get(name):
        case Kind() as kind:
            return kind
        case None:
            raise click.UsageError(f"There is no kind '{name}', only: {names}.")
        case broken:
            raise refused(f"The kind {name} cannot be rendered: {broken.fault}")


def _job(job: str, outcome: str | None, html: Path | None, tool: Tool, out: Output) -> None:
    checked_key(job, outcome)
    if outcome is None:
        settled = tool.questions.job(job)
        if settled is None:
            raise refused(f"The jobs table has no job {job}.")
        if settled.outcome is None:
            raise click.UsageError(f"The jobs table does not say how {job} ended. Give --outcome.")
        outcome = settled.outcome
    settings = tool.settings
    try:
        rehearsal = tool.rehearse()(JobSettled(job, outcome))
    except Unprocessable as fault:
        raise refused(f"Nothing would be sent: {fault}.") from None
    if rehearsal.skip is not None:
        see = command("explain", job, outcome, suffix=tool.place.suffix)
        raise refused(f"Nothing would be sent: nobody is told ({rehearsal.skip.value}).", f"See {see}.")
    letter, requester = rehearsal.letter, rehearsal.requester
    if letter is None:
        known = CODES.get(rehearsal.code or "")
        error = rehearsal.result.error if rehearsal.result else None
        says = f"{known.says} ({error})" if known else str(error)
        raise refused(f"Nothing would be sent: {says}.", known.remedy if known else "")
    to = f"{requester.requester_id if requester else ''} ({masked(letter.recipient)})"
    note = f"What {job} {outcome} would send to {to}. Nothing was sent."
    if not settings.sends_mail:
        note += f" ENVIRONMENT is '{settings.environment}' there, so nothing would be: the notice would be suppressed."
    message = Message(letter.subject, letter.text, letter.html)
    title = f"{job} {outcome}"
    _present(title, note, [Shown(f"To {to}", message)], html or Path(f"preview-{_file_name(job)}.html"), out)


def _present(title: str, note: str, shown: Sequence[Shown], path: Path, out: Output) -> None:
    try:
        path.write_text(page(title, note, shown), encoding="utf-8")
    except OSError as error:
        raise refused(f"{path} cannot be written ({error.strerror}).", "Give another --html.") from None
    for each in shown:
        out.say(each.title, "bold")
        out.field("subject", each.message.subject)
        out.say(each.message.text.rstrip(), indent=12)
        out.say()
    out.say(note, "dim")
    out.command("page", str(path))
    out.json(
        {
            "note": note,
            "page": str(path),
            "messages": [
                {"title": each.title, "subject": each.message.subject, "text": each.message.text} for each in shown
            ],
        }
    )


def _whom(audience: str) -> str:
    return "a colleague" if audience == "staff" else "a customer"


def _file_name(job: str) -> str:
    return "".join(character if character.isalnum() or character in "-_" else "_" for character in job)
