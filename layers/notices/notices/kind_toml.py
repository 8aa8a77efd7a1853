"""What a kind.toml declares, read key by key; whatever is not right raises with its line (DESIGN 3.8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from notices.audience import Audience
from notices.facts import FACT_TYPES, FactType
from notices.kind_files import KindError, line_of, listed, read_toml
from notices.links import PLACEHOLDER, placeholders

AUDIENCES: tuple[Audience, ...] = get_args(Audience)
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""The name of a kind or a fact."""

_OUTCOME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_TONES = ("good", "problem", "neutral")
_KIND_KEYS = {"title", "default_locale", "facts", "links", "outcomes", "ask"}
_OUTCOME_KEYS = {"links", "tone"}
_JOB_ID = "job_id"
_LINKABLE = {"text", "number"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way a job of a kind can end. `links` holds the path for each audience that gets a link."""

    name: str
    links: Mapping[Audience, str]
    tone: str


class KindToml:
    """A kind.toml, read key by key; everything that is not right raises with its line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content, self.source = read_toml(path)
        for key in self.content:
            if key not in _KIND_KEYS:
                raise self.wrong(key, f"'{key}' means nothing here. Use {listed(_KIND_KEYS)}.")

    def wrong(self, key: str, problem: str, table: str = "") -> KindError:
        """Return the error about `key`, in `table` if it is in one, with its line where that is plain."""
        return KindError(self.path, problem, line=line_of(self.source, key, table))

    def text(self, key: str) -> str:
        """Return a text that has to be there."""
        value = self.content.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"'{key}' is missing or not a text. Add a line {key} = \"...\".")
        return value.strip()

    def table(self, key: str) -> dict[str, Any]:
        """Return a table, empty when it is not there."""
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"'{key}' is not a table. Write it as [{key}].")
        return value

    def only(self, key: str, known: Iterable[str], what: str) -> None:
        """Check that a table names nothing but what is `known`; `what` says in words what that is."""
        for name in self.table(key):
            if name not in known:
                raise self.wrong(name, f"[{key}] names '{name}', which is not one of {what}: {listed(known)}.")

    def facts(self) -> dict[str, FactType]:
        """Return the declared facts by name."""
        facts = self.table("facts")
        for name, declared in facts.items():
            if not NAME.fullmatch(name) or name == _JOB_ID:
                problem = f"'{name}' cannot be a fact's name. Use a-z, 0-9 and _, a letter first; not {_JOB_ID}."
                raise self.wrong(name, problem, "facts")
            if declared not in FACT_TYPES:
                problem = f"the fact '{name}' needs a type. Use one of {listed(FACT_TYPES)}."
                raise self.wrong(name, problem, "facts")
        return facts

    def outcomes(self, facts: Mapping[str, FactType]) -> dict[str, Outcome]:
        """Return the outcomes by name, each with its own links or the kind's."""
        links = self._links("links", self.table("links"), facts)
        outcomes = self.table("outcomes")
        if not outcomes:
            raise self.wrong("outcomes", "no outcome is declared. Add a table such as [outcomes.succeeded].")
        return {name: self._outcome(name, declared, links, facts) for name, declared in outcomes.items()}

    def ask(self, locale: str) -> dict[Audience, str]:
        """Return whom each audience may ask, in the words of one language."""
        people = self.table("ask").get(locale)
        if not isinstance(people, dict):
            raise self.wrong(
                "ask", f"nobody is named to ask in '{locale}'. Add [ask.{locale}] with staff and customer."
            )
        for audience in AUDIENCES:
            if not isinstance(people.get(audience), str) or not people[audience].strip():
                raise self.wrong(locale, f'[ask.{locale}] names nobody for {audience}. Add {audience} = "...".')
        self._audiences(f"ask.{locale}", people)
        return {audience: people[audience].strip() for audience in AUDIENCES}

    def _outcome(
        self, name: str, declared: Any, links: Mapping[Audience, str], facts: Mapping[str, FactType]
    ) -> Outcome:
        if not _OUTCOME.fullmatch(name):
            raise self.wrong(name, f"'{name}' cannot be an outcome. Use at most 32 of a-z, 0-9 and _, a letter first.")
        if not isinstance(declared, dict):
            raise self.wrong(name, f"the outcome '{name}' is not a table. Write it as [outcomes.{name}].")
        for key in declared:
            if key not in _OUTCOME_KEYS:
                problem = f"an outcome has no '{key}'. Use {listed(_OUTCOME_KEYS)}."
                raise self.wrong(key, problem, f"outcomes.{name}")
        tone = declared.get("tone", "neutral")
        if tone not in _TONES:
            problem = f"the tone of '{name}' is not known. Use one of {listed(_TONES)}."
            raise self.wrong("tone", problem, f"outcomes.{name}")
        own = declared.get("links")
        if own is None:
            return Outcome(name, links, tone)
        if not isinstance(own, dict):
            raise self.wrong("links", f"the links of '{name}' are not a table. Write [outcomes.{name}.links].")
        return Outcome(name, self._links(f"outcomes.{name}.links", own, facts), tone)

    def _links(self, table: str, links: Mapping[str, Any], facts: Mapping[str, FactType]) -> dict[Audience, str]:
        self._audiences(table, links)
        for audience, path in links.items():
            if not isinstance(path, str) or not path.startswith("/") or not re.fullmatch(r"[!-~]+", path):
                problem = (
                    f"the {audience} link is not a path. Begin it with /, leave the base URL to the settings, and use"
                    " no spaces or letters beyond a-z: a fact stands there as {name}."
                )
                raise self.wrong(audience, problem, table)
            for name in placeholders(path):
                if name != _JOB_ID and facts.get(name) not in _LINKABLE:
                    known = {_JOB_ID} | {fact for fact, declared in facts.items() if declared in _LINKABLE}
                    problem = f"the {audience} link has {{{name}}}. Use one of {listed(known)}."
                    raise self.wrong(audience, problem, table)
            rest = PLACEHOLDER.sub("", path)
            if re.search(r"[{}\\]", rest) or {".", ".."} & set(re.split(r"[?#]", rest)[0].split("/")):
                problem = f"the {audience} link has a stray brace, backslash or dots. Take it out."
                raise self.wrong(audience, problem, table)
        return cast("dict[Audience, str]", links)

    def _audiences(self, table: str, content: Iterable[str]) -> None:
        for audience in content:
            if audience not in AUDIENCES:
                raise self.wrong(audience, f"[{table}] has '{audience}'. Use {listed(AUDIENCES)}.", table)
