"""The catalogue of kinds: what ships is right, and what is wrong is said plainly (DESIGN 3.8, RE-05)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from notices.examples import check_catalogue, check_kind, load_examples
from notices.kind_files import KindError
from notices.kinds import KINDS, load_catalogue

KIND = "workspace_provisioning"
Mend = Callable[[str, str, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("_layout", KIND):
        shutil.copytree(KINDS / name, tmp_path / "kinds" / name)
    return tmp_path / "kinds"


@pytest.fixture
def change(folder: Path) -> Mend:
    def change(name: str, old: str, new: str) -> None:
        path = folder / KIND / name
        source = path.read_text(encoding="utf-8")
        assert old in source
        path.write_text(source.replace(old, new, 1), encoding="utf-8")

    return change


def error_of(folder: Path) -> str:
    with pytest.raises(KindError) as caught:
        check_catalogue(folder)
    return str(caught.value)


def test_every_kind_that_ships_is_right() -> None:
    catalogue = check_catalogue()
    assert KIND in {kind.name for kind in catalogue}


def test_workspace_provisioning_tells_how_it_ended_and_nothing_else() -> None:
    kind = load_catalogue().get(KIND)
    assert kind is not None
    assert [outcome for outcome in ("succeeded", "failed", "cancelled", "") if kind.tells(outcome)] == [
        "succeeded",
        "failed",
    ]


@pytest.mark.parametrize("name", ["nope", "../../etc/passwd", "WORKSPACE_PROVISIONING", "", "_layout", "."])
def test_a_name_that_is_no_kind_is_only_looked_up(name: str) -> None:
    assert load_catalogue().get(name) is None


def test_every_outcome_and_audience_has_an_example() -> None:
    for kind in load_catalogue():
        told = {(example.outcome, example.audience) for example in load_examples(kind)}
        assert told == {(outcome, audience) for outcome in kind.outcomes for audience in ("staff", "customer")}


def test_a_reader_gets_their_region_then_their_language_then_the_default(folder: Path, change: Mend) -> None:
    shutil.copytree(folder / KIND / "en", folder / KIND / "de")
    shutil.copytree(folder / KIND / "en", folder / KIND / "de-AT")
    shutil.copy(folder / "_layout/words/en.j2", folder / "_layout/words/de.j2")
    people = 'staff = "x"\ncustomer = "y"\n'
    change("kind.toml", "[ask.en]", f"[ask.de]\n{people}[ask.de-AT]\n{people}[ask.en]")
    kind = check_catalogue(folder).get(KIND)
    assert kind is not None
    tags = {locale: kind.language(locale).tag for locale in ("de-AT", "de_at", "de-CH", "de", "fr", "", None)}
    assert tags == {"de-AT": "de-AT", "de_at": "de-AT", "de-CH": "de", "de": "de", "fr": "en", "": "en", None: "en"}


def test_a_catalogue_that_was_not_deployed_is_an_error(tmp_path: Path) -> None:
    assert "no such folder" in error_of(tmp_path / "kinds")


def test_a_catalogue_without_kinds_is_an_error(folder: Path) -> None:
    shutil.rmtree(folder / KIND)
    assert "it holds no kind" in error_of(folder)


def test_a_kind_is_named_in_lower_case(folder: Path) -> None:
    (folder / KIND).rename(folder / "Workspace-1")
    assert "Rename the folder" in error_of(folder)


@pytest.mark.parametrize("name", ["kind.toml", "examples.toml", "en/failed.j2"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / KIND / name).unlink()
    error = error_of(folder)
    assert f"{KIND}/{name}: the file is missing. Add it." in error


@pytest.mark.parametrize("name", ["text.j2", "page.j2", "words/en.j2"])
def test_a_missing_part_of_the_layout_is_named(folder: Path, name: str) -> None:
    (folder / "_layout" / name).unlink()
    assert f"_layout/{name}: the file is missing" in error_of(folder)


@pytest.mark.parametrize(
    ("name", "old", "new", "place", "says"),
    [
        ("kind.toml", 'title = "', "title = ", "kind.toml:3:", "not TOML"),
        ("kind.toml", 'title = "Workspace provisioning"', "", "kind.toml:", "'title' is missing"),
        ("kind.toml", "title = ", "titel = ", "kind.toml:3:", "'titel' means nothing here"),
        ("kind.toml", '"en"', '"fr"', "kind.toml:4:", "no texts in 'fr'"),
        ("kind.toml", '= "long_text"', '= "essay"', "kind.toml:11:", "needs a type"),
        ("kind.toml", "workspace_name =", '"Workspace Name" =', "kind.toml:", "cannot be a fact's name"),
        ("kind.toml", "/{workspace_id}", "/{workspce_id}", "kind.toml:16:", "{workspce_id}. Use one of "),
        ("kind.toml", "/{workspace_id}", "/{workspace_id", "kind.toml:16:", "stray brace"),
        ("kind.toml", "/workspaces/", "/workspaces/../", "kind.toml:16:", "dots"),
        ("kind.toml", "/workspaces/", "https://hq.example.com/", "kind.toml:16:", "not a path"),
        ("kind.toml", "customer = ", "client = ", "kind.toml:17:", "[links] has 'client'"),
        ("kind.toml", "[outcomes.failed]", "[outcomes.Failed]", "kind.toml:", "cannot be an outcome"),
        ("kind.toml", "[outcomes.failed]", "[outcomes.stopped]", "en/failed.j2:", "no outcome 'failed'"),
        ("kind.toml", '"problem"', '"awful"', "kind.toml:", "tone of 'failed'"),
        ("kind.toml", "tone", "color", "kind.toml:21:", "an outcome has no 'color'"),
        ("kind.toml", "[ask.en]", "[ask.fr]", "kind.toml:", "[ask] names 'fr'"),
        ("kind.toml", 'staff = "the platform team"', "", "kind.toml:27:", "names nobody for staff"),
        ("en/failed.j2", "facts.failure_reason", "facts.reason", "en/failed.j2:13:", "declares no fact 'reason'"),
        ("en/failed.j2", "{{ ask }}", "{{ asc }}", "en/failed.j2:19:", "nothing is called 'asc'"),
        ("en/failed.j2", "{{ ask }}", "{{ facts }}", "en/failed.j2:19:", "facts are used by name"),
        ("en/failed.j2", "{{ ask }}", "{{ ask }", "en/failed.j2:19:", "Mend that line"),
        ("en/failed.j2", "{{ ask }}", "{{ ask | shout }}", "en/failed.j2:19:", "shout"),
        ("en/failed.j2", "{% block body %}", "Hello\n{% block body %}", "en/failed.j2:", "outside a block"),
        ("en/failed.j2", "{% block body %}", "{% block boddy %}", "en/failed.j2:6:", "no block is called 'boddy'"),
        ("en/failed.j2", "{% block details %}", "{% block link %}", "en/failed.j2:", "Mend that line"),
        ("en/failed.j2", "{{ ask }}", "{% include 'x' %}", "en/failed.j2:19:", "stands alone"),
        ("examples.toml", '"failed"', '"stopped"', "examples.toml:19:", "the outcome 'stopped'"),
        ("examples.toml", '"staff"', '"customer"', "examples.toml:", "no example of 'succeeded' for staff"),
        ("examples.toml", '"staff"', '"boss"', "examples.toml:3:", "an example for 'boss'"),
        ("examples.toml", "workspace_name", "workspace", "examples.toml:3:", "kind.toml has no 'workspace'"),
        ("examples.toml", '"ws-7f3a"', "[]", "examples.toml:3:", "'workspace_id' is no text"),
        ("examples.toml", "job_id", "job", "examples.toml:3:", "an example has no 'job'"),
        ("examples.toml", "2026-03-01T09:59:30Z", '"noon"', "examples.toml:3:", "not a time"),
        (
            "en/failed.j2",
            "{% if facts.failure_reason %}",
            "{% if true %}",
            "en/failed.j2:",
            "'failure_reason' is absent",
        ),
        ("en/failed.j2", "{{ ask }}", "{{ ask }} ,", "en/failed.j2:", "a space before a comma"),
        ("en/failed.j2", "{{ ask }}", "None", "en/failed.j2:", "the word None"),
    ],
)
def test_a_broken_kind_says_where_and_what(
    folder: Path, change: Mend, name: str, old: str, new: str, place: str, says: str
) -> None:
    change(name, old, new)
    error = error_of(folder)
    assert f"{KIND}/{place}" in error
    assert says in error
    assert "\n" not in error


def test_a_language_without_shared_words_is_an_error(folder: Path, change: Mend) -> None:
    shutil.copytree(folder / KIND / "en", folder / KIND / "fr")
    change("kind.toml", "[ask.en]", '[ask.fr]\nstaff = "x"\ncustomer = "y"\n[ask.en]')
    assert "_layout/words/fr.j2: the file is missing" in error_of(folder)


def test_an_outcome_may_have_links_of_its_own(folder: Path, change: Mend) -> None:
    change("kind.toml", "[outcomes.failed]", '[outcomes.failed.links]\nstaff = "/jobs/{job_id}"\n\n[outcomes.failed]')
    kind = load_catalogue(folder).get(KIND)
    assert kind is not None
    assert kind.outcomes["failed"].links == {"staff": "/jobs/{job_id}"}
    assert kind.outcomes["succeeded"].links["staff"] == "/workspaces/{workspace_id}"
    check_kind(kind)
