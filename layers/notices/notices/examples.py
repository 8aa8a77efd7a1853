"""A kind's examples: made-up jobs and requesters to try its texts on (DESIGN 3.8).

They are read by tests and tools, never by a function that sends mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from notices.audience import Audience
from notices.facts import LIST_LIMIT, LONG_TEXT_LIMIT, TEXT_LIMIT, FactType, fits
from notices.jobs import Job, Requester
from notices.kind_files import KindError, line_of, listed, read, read_toml
from notices.kind_toml import AUDIENCES
from notices.kinds import KINDS, Catalogue, Kind, load_catalogue
from notices.message import BaseUrls, Message, MessageError, render
from notices.reader_time import is_zone

EXAMPLE_BASE_URLS = BaseUrls("https://hq.example.com", "https://app.example.com")
LARGEST_PAGE = 102 * 1024
"""Gmail hides what comes after this many bytes."""

_KEYS = {"outcome", "audience", "job_id", "details", "requester"}
_REQUESTER_KEYS = {"name", "time_zone", "locale"}
# In letters of three bytes each, as most of the world's are or less.
_LONGEST: Mapping[FactType, Any] = {
    "text": "字" * TEXT_LIMIT,
    "long_text": "字" * LONG_TEXT_LIMIT,
    "number": 10**20,
    "flag": True,
    "list": ["字" * TEXT_LIMIT] * LIST_LIMIT,
    "time": "2026-03-01T09:59:30Z",
}
# What a reader would take for a mistake: a fact that is not there, template syntax, a gap where a name was.
_MISTAKES = {
    "the word None": r"\bNone\b(?! of\b)",
    "the word undefined": r"\bundefined\b",
    "template syntax": r"\{\{|\}\}|\{%|%\}|\{ *[a-z_.]+ *\}|\bfacts\.[a-z]",
    "an HTML tag": r"</?(?:a|b|br|div|em|h[1-6]|i|img|li|ol|p|span|strong|table|td|tr|u|ul)\b[^<>]*>",
    "Markdown": r"\*\*\w|\w\*\*|\]\(http",
    "a space before a comma": r" ,",
    "empty quotation marks": r"\"\"|“”|\u2018\u2019|«»",
}


@dataclass(frozen=True, slots=True)
class Example:
    """One outcome told to one person."""

    outcome: str
    job: Job
    requester: Requester

    @property
    def audience(self) -> Audience:
        """Whom it is told to."""
        return self.requester.audience

    def having(self, details: Mapping[str, Any]) -> Example:
        """Return the same example of a job with other facts."""
        return replace(self, job=replace(self.job, details=details))

    def message(self, kind: Kind, locale: str | None = None) -> Message:
        """Return its message, in another language than the requester's when `locale` says so.

        Raises:
            MessageError: a text cannot be rendered from it.
        """
        requester = replace(self.requester, locale=locale) if locale else self.requester
        return render(kind, self.outcome, self.job, requester, EXAMPLE_BASE_URLS)

    def told_in(self, kind: Kind, tag: str, who: str = "it") -> Message:
        """Return its message in one of the kind's languages; `who` is what an error calls it.

        Raises:
            KindError: naming the text that cannot be rendered from it.
        """
        try:
            return self.message(kind, tag)
        except MessageError as error:
            problem = f"{who} does not render: {error.problem}. {error.remedy}"
            raise KindError(self.text_path(kind, tag), problem, line=error.line) from None

    def text_path(self, kind: Kind, tag: str) -> Path:
        """Return the file of the text that it is told in."""
        return kind.folder / tag / f"{self.outcome}.j2"


def load_examples(kind: Kind) -> tuple[Example, ...]:
    """Return the examples of a kind, at least one for each outcome and audience.

    Raises:
        KindError: one is missing, or names something that the kind does not declare.
    """
    path = kind.folder / "examples.toml"
    content, source = read_toml(path)
    stray = sorted(set(content) - {"example"})
    if stray or not isinstance(content.get("example", []), list):
        line = line_of(source, stray[0]) if stray else None
        raise KindError(path, "it holds something that is no example. Write each as [[example]].", line=line)
    starts = [at for at, line in enumerate(source.splitlines(), 1) if line.strip() == "[[example]]"]
    entries = content.get("example", [])
    lines = starts if len(starts) == len(entries) else [None] * len(entries)
    examples = tuple(_example(kind, path, entry, line) for entry, line in zip(entries, lines, strict=True))
    for outcome in kind.outcomes:
        for audience in AUDIENCES:
            if not any((one.outcome, one.audience) == (outcome, audience) for one in examples):
                raise KindError(path, f"no example of '{outcome}' for {audience}. Add one.")
    return examples


def check_kind(kind: Kind) -> None:
    """Render every example in every language and look at the result as a reader would.

    Each is looked at whole, then without each of its facts and without any, since a job may lack what it likes, and
    with every fact as long as it is ever printed.

    Raises:
        KindError: a text that cannot be rendered, a link that leads nowhere, or words that look like a mistake.
    """
    for fault in _faults(kind):
        raise fault


def faults(folder: Path = KINDS) -> list[KindError]:
    """Return what is wrong with the kinds in `folder`: what keeps a kind from loading, else each text's first fault.

    Raises:
        KindError: there is no kind at all.
    """
    return _faults_of(load_catalogue(folder))


def check_catalogue(folder: Path = KINDS) -> Catalogue:
    """Return the catalogue when each kind in `folder` is right, examples and all. Raises KindError otherwise."""
    catalogue = load_catalogue(folder)
    for fault in _faults_of(catalogue):
        raise fault
    return catalogue


def _faults_of(catalogue: Catalogue) -> list[KindError]:
    found = [broken.fault for broken in catalogue.broken]
    for kind in catalogue.sound:
        by_file: dict[Path, KindError] = {}
        for fault in _faults(kind):
            by_file.setdefault(fault.path, fault)
        found.extend(by_file.values())
    return found


def _faults(kind: Kind) -> Iterator[KindError]:
    try:
        examples = load_examples(kind)
    except KindError as fault:
        yield fault
        return
    for example in examples:
        for language in kind.languages.values():
            try:
                _check(kind, example, language.tag)
            except KindError as fault:
                yield fault


def _check(kind: Kind, example: Example, tag: str) -> None:
    who = f"the example of '{example.outcome}' for {example.audience}"
    message = _check_message(kind, example, tag, who)
    if example.audience in kind.outcomes[example.outcome].links and (
        f"{EXAMPLE_BASE_URLS.of(example.audience)}/" not in message.text
    ):
        raise KindError(kind.folder / "kind.toml", f"{who} has no link, although a path is declared. Mend one.")
    for name in example.job.details:
        rest = {other: value for other, value in example.job.details.items() if other != name}
        _check_message(kind, example.having(rest), tag, f"{who}, without {name},")
    _check_message(kind, example.having({}), tag, f"{who}, without any fact,")
    longest = {name: _LONGEST[declared] for name, declared in kind.facts.items()}
    _check_message(kind, example.having(longest), tag, f"{who}, with every fact as long as it may be,")


def _check_message(kind: Kind, example: Example, tag: str, who: str) -> Message:
    path = example.text_path(kind, tag)
    message = example.told_in(kind, tag, who)
    for part in (message.subject, message.text):
        for mistake, pattern in _MISTAKES.items():
            if re.search(pattern, part):
                problem = f"{who} shows {mistake}. Mend the text or the example."
                raise KindError(path, problem, line=_line_that_says(path, pattern))
    if len(message.html.encode()) > LARGEST_PAGE:
        raise KindError(path, f"{who} makes a page of more than 102 KB, which Gmail cuts. Say less.")
    return message


def _line_that_says(path: Path, pattern: str) -> int | None:
    """Return the line of a text whose own words hold `pattern`, None when they came from elsewhere."""
    lines = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", read(path)).splitlines()
    return next((at for at, line in enumerate(lines, 1) if re.search(pattern, line)), None)


def _example(kind: Kind, path: Path, entry: Any, line: int | None) -> Example:
    def wrong(problem: str) -> KindError:
        return KindError(path, problem, line=line)

    if not isinstance(entry, dict):
        raise wrong("it holds something that is no example. Write each as [[example]].")
    for name in ("outcome", "audience"):
        if name not in entry:
            raise wrong(f'an example has no {name}. Add a line {name} = "...".')
    for name in ("details", "requester"):
        if not isinstance(entry.get(name, {}), dict):
            raise wrong(f"'{name}' of an example is not a table. Write it as {name} = {{ name = \"...\" }}.")
    outcome, audience = entry["outcome"], entry["audience"]
    details, person = entry.get("details", {}), entry.get("requester", {})
    for names, known, what in (
        (entry, _KEYS, "an example"),
        (details, kind.facts, "kind.toml"),
        (person, _REQUESTER_KEYS, "an example's requester"),
    ):
        for name in names:
            if name not in known:
                raise wrong(f"{what} has no '{name}'. Use {listed(known)}.")
    if not isinstance(outcome, str) or not kind.tells(outcome):
        raise wrong(f"an example of the outcome '{outcome}', which kind.toml does not declare. Correct one of them.")
    if audience not in AUDIENCES:
        raise wrong(f"an example for '{audience}'. Use {listed(AUDIENCES)}.")
    for name, value in details.items():
        if not fits(kind.facts[name], value):
            declared = kind.facts[name]
            how = "Write it as 2026-03-01T09:59:30Z." if declared == "time" else "Correct one of them."
            raise wrong(f"the fact '{name}' is no {declared}, as kind.toml declares it. {how}")
    for name, value in person.items():
        if not isinstance(value, str):
            raise wrong(f"the {name} of the requester is no text. Put it between quotation marks.")
    if "time_zone" in person and not is_zone(person["time_zone"]):
        raise wrong(f"there is no time zone '{person['time_zone']}'. Write it as Europe/Vienna, say.")
    job = Job(str(entry.get("job_id", "job-0001")), kind.name, tenant_id="tenant-example", details=details)
    requester = Requester("requester-example", tenant_id="tenant-example", audience=audience, **person)
    return Example(outcome, job, requester)
