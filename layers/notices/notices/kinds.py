"""The catalogue of kinds: what can be told, in which words, with which link (DESIGN 3.8).

A kind is a folder, `kinds/<name>/`, and needs no Python:

    kind.toml                its title, facts, links, outcomes, and whom to ask
    <locale>/<outcome>.j2    its words: one file per outcome in every language, plain text without HTML
    examples.toml            example jobs and requesters (see `notices.examples`)

`kinds/_layout/` holds what all kinds share: the page, the plain text, and a file of words per language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Template

from notices.facts import FactType
from notices.jobs import Audience
from notices.kind_files import KindError
from notices.kind_texts import kind_text, layout, shared_text
from notices.kind_toml import NAME, KindToml, Outcome
from notices.locales import LOCALE, fallbacks, is_right_to_left
from notices.templates import page_environment, plain_environment, words_environment

__all__ = ["KINDS", "Catalogue", "Kind", "KindError", "Language", "Layout", "Outcome", "load_catalogue"]

KINDS = Path(__file__).parent / "kinds"
"""Where the kinds that ship are."""


@dataclass(frozen=True, slots=True)
class Language:
    """A kind in one language: its own texts, the words all kinds share, and whom to ask."""

    tag: str
    rtl: bool
    texts: Mapping[str, Template]
    shared: Template
    ask: Mapping[Audience, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """What surrounds the words, in plain text and as a page."""

    text: Template
    page: Template


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job whose requester is told: everything it declares, checked and compiled."""

    name: str
    title: str
    folder: Path
    default_locale: str
    facts: Mapping[str, FactType]
    outcomes: Mapping[str, Outcome]
    languages: Mapping[str, Language]
    layout: Layout

    def tells(self, outcome: str) -> bool:
        """Whether the requester is told of this outcome."""
        return outcome in self.outcomes

    def language(self, locale: str | None) -> Language:
        """Return the language for a reader's `locale`: region, then language, then the kind's default."""
        found = next((self.languages[tag] for tag in fallbacks(locale) if tag in self.languages), None)
        return found or self.languages[self.default_locale]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The kinds by name. A name that comes from elsewhere is looked up here, never used as a path."""

    kinds: Mapping[str, Kind]

    def get(self, name: str) -> Kind | None:
        """Return the kind called `name`, or None when nobody is told of such jobs."""
        return self.kinds.get(name)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.kinds.values())

    def __len__(self) -> int:
        return len(self.kinds)


def load_catalogue(folder: Path = KINDS) -> Catalogue:
    """Read, check and compile every kind in `folder`.

    Raises:
        KindError: something that a kind declares is missing, misspelt or cannot work. (That the texts come out
            right is what `notices.examples.check_kind` looks at.)
    """
    if not folder.is_dir():
        raise KindError(folder, "there is no such folder. Put the kinds in it and deploy it with the code.")
    shelf = _Shelf(folder)
    kinds = {path.name: _load_kind(path, shelf) for path in _folders(folder)}
    if not kinds:
        raise KindError(folder, "it holds no kind. Add a folder with a kind.toml.")
    return Catalogue(kinds)


class _Shelf:
    """What the kinds share while they are loaded: the environments, the layout, the shared words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "_layout"
        self.words = {rtl: words_environment(rtl=rtl) for rtl in (False, True)}
        self.layout = Layout(
            text=layout(plain_environment(), self.folder / "text.j2"),
            page=layout(page_environment(), self.folder / "page.j2"),
        )
        paths = sorted((self.folder / "words").glob("*.j2"))
        self.shared = {path.stem.lower(): shared_text(self.words[is_right_to_left(path.stem)], path) for path in paths}

    def shared_words(self, folder: Path) -> Template:
        for tag in fallbacks(folder.name):
            if tag in self.shared:
                return self.shared[tag]
        missing = self.folder / "words" / f"{folder.name}.j2"
        raise KindError(missing, f"the file is missing, and '{folder.parent.name}' has texts in that language. Add it.")


def _load_kind(folder: Path, shelf: _Shelf) -> Kind:
    if not NAME.fullmatch(folder.name):
        raise KindError(folder, "a kind's name is 1 to 64 of a-z, 0-9 and _, a letter first. Rename the folder.")
    declared = KindToml(folder / "kind.toml")
    title, default_locale = declared.text("title"), declared.text("default_locale")
    facts = declared.facts()
    outcomes = declared.outcomes(facts)
    locales = {child.name: child for child in _folders(folder)}
    if default_locale not in locales:
        problem = f"there are no texts in '{default_locale}'. Add the folder {default_locale} with a file per outcome."
        raise declared.wrong("default_locale", problem)
    declared.only("ask", locales, "the languages of its texts")
    languages = {
        name.lower(): _load_language(child, shelf, declared.ask(name), facts, outcomes)
        for name, child in locales.items()
    }
    return Kind(folder.name, title, folder, default_locale.lower(), facts, outcomes, languages, shelf.layout)


def _load_language(
    folder: Path, shelf: _Shelf, ask: Mapping[Audience, str], facts: Iterable[str], outcomes: Iterable[str]
) -> Language:
    if not LOCALE.fullmatch(folder.name):
        raise KindError(folder, "a folder of texts is called by its locale, en or de-AT, say. Rename or remove it.")
    for path in sorted(folder.glob("*.j2")):
        if path.stem not in outcomes:
            raise KindError(path, f"kind.toml declares no outcome '{path.stem}'. Declare it, or rename the file.")
    rtl = is_right_to_left(folder.name)
    texts = {outcome: kind_text(shelf.words[rtl], folder / f"{outcome}.j2", facts) for outcome in outcomes}
    return Language(folder.name, rtl, texts, shelf.shared_words(folder), ask)


def _folders(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
