"""The message about one job: a kind's words in the reader's language, as text and as a page (DESIGN 3.8).

The words are rendered once, as plain text, and then laid out twice. So both parts say the same, and the page
escapes everything that is printed into it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from traceback import walk_tb
from typing import Any

from jinja2 import Template

from notices.audience import Audience
from notices.codes import Code
from notices.facts import present_facts, text, whole_text
from notices.jobs import Job, Requester
from notices.kinds import AnyKind, BrokenKind, Kind, Language
from notices.links import link
from notices.passages import as_details, as_line, as_passages
from notices.plain_text import isolate, one_line, shorten
from notices.reader_time import reader_time
from notices.templates import AbsentError, render_block

SUBJECT_LIMIT = 150
"""The most characters of a subject; mail clients show far fewer."""

NAME_LIMIT = 80
"""The most characters of a person's name in the greeting."""


class MessageError(Exception):
    """A message that cannot be written. Its text names the fact or template at fault, never a value.

    `code` is the stable code that begins a notice's `error` (DESIGN 3.4).
    """

    code = Code.TEMPLATE_ERROR

    def __init__(self, problem: str, where: str | None = None, line: int | None = None) -> None:
        place = f"{where}:{line}" if line else where
        super().__init__(f"{problem} ({place})" if place else problem)
        self.problem, self.line = problem, line

    @property
    def remedy(self) -> str:
        """What its author may do about it."""
        if fact := re.fullmatch(r"'(\w+)' is absent", self.problem):
            return f"Put that part between {{% if facts.{fact[1]} %}} and {{% endif %}}."
        return next((remedy for part, remedy in _REMEDIES.items() if part in self.problem), "Mend the text.")


_REMEDIES = {
    "it prints a list": "Print each of it: {% for one in facts.NAME %}, {{ one }}, {% endfor %}.",
    "it prints a bool": "A flag cannot be printed: ask for it with {% if facts.NAME %}.",
}


@dataclass(frozen=True, slots=True)
class BaseUrls:
    """Where the links of each audience begin: `HQ_BASE_URL` for staff, `CUSTOMER_BASE_URL` for customers."""

    staff: str | None = None
    customer: str | None = None

    def of(self, audience: Audience) -> str | None:
        """Return the base URL for one audience; None when it has none."""
        return self.staff if audience == "staff" else self.customer


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: a subject of one line, and the same message as plain text and as a page."""

    subject: str
    text: str
    html: str


def render(kind: AnyKind, outcome: str, job: Job, requester: Requester, base_urls: BaseUrls) -> Message:
    """Return the message that tells `requester` how `job` ended.

    Facts that are missing, null or empty are absent: the texts do without them. With no base URL or path for the
    requester's audience, or no value for a fact in the path, the message has no link and says whom to ask.

    Raises:
        MessageError: the kind is broken, a text needs something absent, or a template fails in any other way.
    """
    if isinstance(kind, BrokenKind):
        raise MessageError(f"the kind '{kind.name}' is broken", kind.fault.place)
    if not kind.tells(outcome):
        raise MessageError(f"the kind '{kind.name}' has no such outcome")
    audience: Audience = "staff" if requester.audience == "staff" else "customer"
    language = kind.language(requester.locale)
    details = job.details if isinstance(job.details, Mapping) else {}
    url = link(
        base_urls.of(audience),
        kind.outcomes[outcome].links.get(audience),
        _link_values(kind, job.job_id, details),
    )
    values = {
        "facts": _facts(kind, details, language, requester.time_zone),
        "audience": audience,
        "job_id": text(job.job_id),
        "requester_name": text(requester.name, NAME_LIMIT),
        "has_link": url is not None,
        "ask": language.ask[audience],
    }
    values = {name: value for name, value in values.items() if value is not None}
    parts = _parts(language, outcome, values)
    if url and not parts["link"]:
        raise MessageError("the block 'link' is empty", language.texts[outcome].name)
    parts |= {
        "lang": language.tag,
        "direction": "rtl" if language.rtl else "ltr",
        "tone": kind.outcomes[outcome].tone,
        "url": url,
    }
    layout = kind.layout
    return Message(
        subject=parts["subject"],
        text=_guarded(layout.text, lambda: layout.text.render(parts)).strip() + "\n",
        html=_guarded(layout.page, lambda: layout.page.render(parts)),
    )


def _parts(language: Language, outcome: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return all that the layouts print, in words."""
    own, shared = language.texts[outcome], language.shared
    heading = as_line(_block(own, "subject", values))
    passages = as_passages(_block(own, "body", values))
    subject = shorten(one_line(heading), SUBJECT_LIMIT)
    if not subject or not passages:
        raise MessageError(f"the block '{'body' if subject else 'subject'}' is empty", own.name)
    job_id = isolate(values.get("job_id", ""), rtl=language.rtl)
    reference = [(as_line(_block(shared, "reference_label", values)), job_id)] if job_id else []
    return {
        "subject": subject,
        "heading": heading,
        "passages": passages,
        "link": as_line(_block(own, "link", values)),
        "details": [*as_details(_block(own, "details", values)), *reference],
    } | {name: as_line(_block(shared, name, values)) for name in ("greeting", "copy_link", "no_link", "why", "ask")}


def _link_values(kind: Kind, job_id: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return what a link may hold: the job's id and the declared texts and numbers, whole."""
    whole = {name: whole_text(details.get(name)) for name in kind.facts} | {"job_id": job_id}
    return {name: value for name, value in whole.items() if value}


def _facts(kind: Kind, details: Mapping[str, Any], language: Language, zone_name: str | None) -> dict[str, Any]:
    """Return the facts that the job has, its times in the reader's language and zone."""
    facts = present_facts(kind.facts, details)
    return {
        name: _when(language, value, zone_name) if isinstance(value, datetime) else value
        for name, value in facts.items()
    }


def _when(language: Language, moment: datetime, zone_name: str | None) -> str:
    return as_line(_block(language.shared, "when", {"at": reader_time(moment, zone_name)}))


def _block(template: Template, name: str, values: dict[str, Any]) -> str:
    if name not in template.blocks:
        return ""
    return _guarded(template, lambda: render_block(template, name, values))


def _guarded(template: Template, rendered: Callable[[], str]) -> str:
    """Call `rendered`; whatever it raises becomes a MessageError that holds neither a value nor the exception."""
    try:
        return rendered()
    except AbsentError as error:
        problem, line = str(error), _line(template, error)
    except Exception as error:  # noqa: BLE001 - a template may raise anything, and no more than its name is told
        problem, line = type(error).__name__, _line(template, error)
    raise MessageError(problem, template.name, line)


def _line(template: Template, error: Exception) -> int | None:
    """Return the line of the template that raised `error`, None when it was raised elsewhere."""
    at = [line for frame, line in walk_tb(error.__traceback__) if frame.f_globals.get("blocks") is template.blocks]
    return template.get_corresponding_lineno(at[-1]) if at else None
