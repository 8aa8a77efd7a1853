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
from functools import cached_property
from pathlib import Path

from jinja2 import Template

from notices.audience import Audience
from notices.facts import FactType
from notices.kind_files import KindError
from notices.kind_texts import kind_text, layout, shared_text
from notices.kind_toml import NAME, KindToml, Outcome
from notices.locales import LOCALE, fallbacks, is_right_to_left
from notices.templates import page_environment, plain_environment, words_environment

__all__ = [
    "KINDS",
    "AnyKind",
    "BrokenKind",
    "Catalogue",
    "Kind",
    "KindError",
    "Language",
    "Layout",
    "Outcome",
    "load_catalogue",
]

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
class BrokenKind:
    """A kind that could not be loaded, of which its name is all that is known.

    It tells every outcome: each notice is claimed, fails with `template_error` and is tried again, so that nothing
    is lost until the kind is mended. An outcome that the mended kind does not declare is closed then.
    """

    name: str
    fault: KindError

    def tells(self, _outcome: str) -> bool:
        """Whether the requester is told of this outcome: nobody knows, so yes."""
        return True


AnyKind = Kind | BrokenKind


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The kinds by name. A name that comes from elsewhere is looked up here, never used as a path."""

    kinds: Mapping[str, AnyKind]

    def get(self, name: str) -> AnyKind | None:
        """Return the kind called `name`, or None when nobody is told of such jobs."""
        return self.kinds.get(name)

    @property
    def sound(self) -> tuple[Kind, ...]:
        """The kinds that could be loaded."""
        return tuple(kind for kind in self if isinstance(kind, Kind))

    @property
    def broken(self) -> tuple[BrokenKind, ...]:
        """The kinds that could not."""
        return tuple(kind for kind in self if isinstance(kind, BrokenKind))

    def __iter__(self) -> Iterator[AnyKind]:
        return iter(self.kinds.values())

    def __len__(self) -> int:
        return len(self.kinds)


def load_catalogue(folder: Path = KINDS, *, compile_into: Path | None = None) -> Catalogue:
    """Read, check and compile every kind in `folder`; with `compile_into`, for later starts too (`notices.templates`).

    A kind in which something is missing, misspelt or cannot work is in the catalogue as a BrokenKind, and takes no
    other down with it. Tests and tools refuse it (`notices.examples.check_catalogue`, which also looks at how the
    texts come out); a function tells of the others.

    Raises:
        KindError: there is no kind at all. An empty catalogue would skip every job without a word.
    """
    if not folder.is_dir():
        raise KindError(folder, "there is no such folder. Put the kinds in it and deploy it with the code.")
    shelf = _Shelf(folder, compile_into)
    kinds = {path.name: _kind_or_fault(path, shelf) for path in _folders(folder)}
    if not kinds:
        raise KindError(folder, "it holds no kind. Add a folder with a kind.toml.")
    return Catalogue(kinds)


class _Shelf:
    """What the kinds share while they are loaded: the environments, the layout, the shared words.

    Each part is read when the first kind needs it, so what is wrong with it is the fault of those that do.
    """

    def __init__(self, folder: Path, compile_into: Path | None) -> None:
        self.folder = folder / "_layout"
        self._compile_into = compile_into
        self.words = {rtl: words_environment(rtl=rtl, compile_into=compile_into) for rtl in (False, True)}
        self._paths = {path.stem.lower(): path for path in (self.folder / "words").glob("*.j2")}
        self._shared: dict[str, Template] = {}

    @cached_property
    def layout(self) -> Layout:
        return Layout(
            text=layout(plain_environment(self._compile_into), self.folder / "text.j2"),
            page=layout(page_environment(self._compile_into), self.folder / "page.j2"),
        )

    def shared_words(self, folder: Path) -> Template:
        for tag in fallbacks(folder.name):
            if tag in self._paths:
                if tag not in self._shared:
                    environment = self.words[is_right_to_left(self._paths[tag].stem)]
                    self._shared[tag] = shared_text(environment, self._paths[tag])
                return self._shared[tag]
        missing = self.folder / "words" / f"{folder.name}.j2"
        raise KindError(missing, f"the file is missing, and '{folder.parent.name}' has texts in that language. Add it.")


def _kind_or_fault(folder: Path, shelf: _Shelf) -> AnyKind:
    try:
        return _load_kind(folder, shelf)
    except KindError as fault:
        return BrokenKind(folder.name, fault)
    except Exception as error:  # noqa: BLE001 - unreadable, nested too deep: whatever it is, it is this kind's alone
        return BrokenKind(folder.name, KindError(folder, f"it cannot be loaded: {type(error).__name__}. Mend it."))


def _load_kind(folder: Path, shelf: _Shelf) -> Kind:
    if not NAME.fullmatch(folder.name):
        raise KindError(folder, "a kind's name is 1 to 64 of a-z, 0-9 and _, a letter first. Rename the folder.")
    declared = KindToml(folder / "kind.toml")
    title, default_locale = declared.text("title"), declared.text("default_locale")
    facts = declared.facts()
    outcomes = declared.outcomes(facts)
    locales = {child.name: child for child in _folders(folder)}
    for child in locales.values():
        if not LOCALE.fullmatch(child.name):
            raise KindError(child, "a folder of texts is called by its locale, en or de-AT, say. Rename or remove it.")
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
    for path in sorted(folder.glob("*.j2")):
        if path.stem not in outcomes:
            raise KindError(path, f"kind.toml declares no outcome '{path.stem}'. Declare it, or rename the file.")
    rtl = is_right_to_left(folder.name)
    texts = {outcome: kind_text(shelf.words[rtl], folder / f"{outcome}.j2", facts) for outcome in outcomes}
    return Language(folder.name, rtl, texts, shelf.shared_words(folder), ask)


def _folders(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
