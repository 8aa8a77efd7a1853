"""The catalogue of kinds: what ships is right, and what is wrong is said plainly (DESIGN 3.8, RE-05)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.kinds import KIND, one_kind
from notices.examples import check_catalogue, check_kind, load_examples
from notices.kind_files import KindError
from notices.kinds import load_catalogue

Mend = Callable[[str, str, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return one_kind(tmp_path)


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
    for kind in load_catalogue().sound:
        told = {(example.outcome, example.audience) for example in load_examples(kind)}
        assert told == {(outcome, audience) for outcome in kind.outcomes for audience in ("staff", "customer")}


def test_a_reader_gets_their_region_then_their_language_then_the_default(folder: Path, change: Mend) -> None:
    shutil.copytree(folder / KIND / "de", folder / KIND / "de-AT")
    change("kind.toml", "[ask.de]", '[ask.de-AT]\nstaff = "x"\ncustomer = "y"\n[ask.de]')
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
        ("kind.toml", "workspace_id =", "workspace_id:", "kind.toml:10:", 'Write a line as name = "text".'),
        ("kind.toml", '"text"', "text", "kind.toml:10:", 'Put text between straight quotation marks: name = "text".'),
        ("kind.toml", 'title = "Workspace provisioning"', "", "kind.toml:", "'title' is missing"),
        ("kind.toml", "title = ", "titel = ", "kind.toml:3:", "'titel' means nothing here"),
        ("kind.toml", '"en"', '"fr"', "kind.toml:4:", "no texts in 'fr'"),
        ("kind.toml", '= "long_text"', '= "essay"', "kind.toml:12:", "needs a type"),
        ("kind.toml", "workspace_name =", '"Workspace Name" =', "kind.toml:", "cannot be a fact's name"),
        ("kind.toml", "/{workspace_id}", "/{workspce_id}", "kind.toml:18:", "{workspce_id}. Use one of "),
        ("kind.toml", "/{workspace_id}", "/{workspace_id", "kind.toml:18:", "stray brace"),
        ("kind.toml", "/workspaces/", "/workspaces/../", "kind.toml:18:", "dots"),
        ("kind.toml", "/workspaces/{workspace_id}", "/workspaces/..#{workspace_id}", "kind.toml:18:", "dots"),
        ("kind.toml", "/workspaces/", "https://hq.example.com/", "kind.toml:18:", "not a path"),
        ("kind.toml", "customer = ", "client = ", "kind.toml:19:", "[links] has 'client'"),
        ("kind.toml", "[outcomes.failed]", "[outcomes.Failed]", "kind.toml:", "cannot be an outcome"),
        ("kind.toml", "[outcomes.failed]", "[outcomes.stopped]", "de/failed.j2:", "no outcome 'failed'"),
        ("kind.toml", '"problem"', '"awful"', "kind.toml:26:", "tone of 'failed'"),
        ("kind.toml", "tone", "color", "kind.toml:23:", "an outcome has no 'color'"),
        ("kind.toml", "[ask.en]", "[ask.fr]", "kind.toml:", "[ask] names 'fr'"),
        ("kind.toml", 'staff = "the platform team"', "", "kind.toml:29:", "names nobody for staff"),
        ("en/failed.j2", "facts.failure_reason", "facts.reason", "en/failed.j2:12:", "declares no fact 'reason'"),
        ("en/failed.j2", "{{ ask }}", "{{ asc }}", "en/failed.j2:18:", "nothing is called 'asc'"),
        ("en/failed.j2", "{{ ask }}", "{{ facts }}", "en/failed.j2:18:", "facts are used by name"),
        ("en/failed.j2", "{{ ask }}", "{{ ask }", "en/failed.j2:18:", "what stands between {{ and }} cannot be read"),
        ("en/failed.j2", "{{ ask }}", "{{ ask | shout }}", "en/failed.j2:18:", "shout"),
        ("en/failed.j2", "{% block body %}", "Hello\n{% block body %}", "en/failed.j2:", "outside a block"),
        ("en/failed.j2", "{% block body %}", "{% block boddy %}", "en/failed.j2:5:", "no block is called 'boddy'"),
        ("en/failed.j2", "{% block details %}", "{% block link %}", "en/failed.j2:", "Mend that line"),
        ("en/failed.j2", "{{ ask }}", "{% include 'x' %}", "en/failed.j2:18:", "stands alone"),
        ("examples.toml", '"failed"', '"stopped"', "examples.toml:17:", "the outcome 'stopped'"),
        ("examples.toml", '"staff"', '"customer"', "examples.toml:", "no example of 'succeeded' for staff"),
        ("examples.toml", '"staff"', '"boss"', "examples.toml:3:", "an example for 'boss'"),
        ("examples.toml", "workspace_name", "workspace", "examples.toml:3:", "kind.toml has no 'workspace'"),
        ("examples.toml", '"ws-7f3a"', "[]", "examples.toml:3:", "'workspace_id' is no text"),
        ("examples.toml", "job_id", "job", "examples.toml:3:", "an example has no 'job'"),
        ("examples.toml", "2026-03-01T09:59:30Z", '"noon"', "examples.toml:3:", "'finished_at' is no time"),
        (
            "en/failed.j2",
            "{% if facts.failure_reason %}",
            "{% if true %}",
            "en/failed.j2:",
            "'failure_reason' is absent",
        ),
        ("en/failed.j2", "{{ ask }}", "{{ ask }} ,", "en/failed.j2:", "a space before a comma"),
        ("en/failed.j2", "{{ ask }}", "None", "en/failed.j2:18:", "the word None"),
        ("en/failed.j2", "{{ ask }}", "{ ask }", "en/failed.j2:18:", "template syntax"),
        ("en/failed.j2", "{{ ask }}", "${facts.workspace_name}", "en/failed.j2:18:", "template syntax"),
        ("en/failed.j2", "{{ ask }}", "<b>you</b>", "en/failed.j2:18:", "an HTML tag"),
        ("en/failed.j2", "{{ ask }}", "**you**", "en/failed.j2:18:", "Markdown"),
        (
            "en/failed.j2",
            "{{ facts.failure_reason }}",
            "{{ failure_reason }}",
            "en/failed.j2:15:",
            "Write facts.failure_reason.",
        ),
        ("en/failed.j2", "{% endblock %}", "", "en/failed.j2:43:", "the file ends before {% endblock %}"),
        ("en/failed.j2", "{% if facts.failure_reason %}", "{% if x == %}", "en/failed.j2:12:", "between {% and %}"),
        ("en/failed.j2", "{% endif %}", "", "en/failed.j2:3:", "{% endblock %} comes before {% endif %}"),
        (
            "en/failed.j2",
            "{% if facts.workspace_id %}",
            "",
            "en/failed.j2:39:",
            "{% endif %} has no {% if ... %} above",
        ),
        ("en/failed.j2", "{% block subject %}", "", "en/failed.j2:3:", "{% endblock %} has no {% block ... %} above"),
        ("en/failed.j2", "{% else %}", "{% elseif %}", "en/failed.j2:8:", "there is no {% elseif %}. Use if, elif,"),
        ("en/succeeded.j2", "Open the workspace", "", "en/succeeded.j2:", "the block 'link' is empty"),
        ("en/failed.j2", "Workspace: {{", "Workspace {{", "en/failed.j2:35:", "'Label: value', and this one is not"),
        ("en/failed.j2", "When: {{", "When:{{", "en/failed.j2:41:", "'Label: value', and this one is not"),
        ("en/failed.j2", "When: {{", "Please\nkeep: {{", "en/failed.j2:41:", "'Label: value', and this one is not"),
        ("examples.toml", 'outcome = "succeeded"', "", "examples.toml:3:", "an example has no outcome"),
        ("examples.toml", "requester = {", "requester = 3 #", "examples.toml:3:", "'requester' of an example is not a"),
        ("examples.toml", '"Dana Example"', "3", "examples.toml:3:", "the name of the requester is no text"),
        ("examples.toml", "Europe/Vienna", "Europe/Wien", "examples.toml:3:", "there is no time zone 'Europe/Wien'"),
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


def test_a_page_that_long_facts_would_make_too_large_is_refused(folder: Path, change: Mend) -> None:
    again = "> {% for _ in range(40) %}{{ facts.failure_reason }} {% endfor %}"
    change("en/failed.j2", "> {{ facts.failure_reason }}", again)
    assert "with every fact as long as it may be, makes a page of more than 102 KB" in error_of(folder)


def test_a_text_may_say_none_of(folder: Path, change: Mend) -> None:
    change("en/failed.j2", "We are sorry:", "None of your data is lost. We are sorry:")
    check_catalogue(folder)


def test_an_error_of_an_outcomes_own_link_has_the_line_of_that_outcome(folder: Path, change: Mend) -> None:
    change("kind.toml", "[outcomes.failed]", '[outcomes.failed.links]\nstaff = "/{nope}"\n\n[outcomes.failed]')
    line = (folder / KIND / "kind.toml").read_text(encoding="utf-8").splitlines().index('staff = "/{nope}"') + 1
    assert f"kind.toml:{line}: the staff link has {{nope}}." in error_of(folder)


def test_a_file_from_windows_is_read_like_any_other(folder: Path) -> None:
    for name in ("kind.toml", "examples.toml", "en/failed.j2"):
        path = folder / KIND / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    check_catalogue(folder)


@pytest.mark.parametrize("name", ["kind.toml", "en/failed.j2"])
def test_a_folder_in_the_place_of_a_file_is_named(folder: Path, name: str) -> None:
    (folder / KIND / name).unlink()
    (folder / KIND / name).mkdir()
    assert f"{KIND}/{name}: it cannot be read" in error_of(folder)


def test_a_folder_that_is_no_language_is_named_as_such(folder: Path) -> None:
    (folder / KIND / "images").mkdir()
    assert f"{KIND}/images: a folder of texts is called by its locale" in error_of(folder)


def test_examples_that_are_no_tables_are_said_to_be_none(folder: Path) -> None:
    (folder / KIND / "examples.toml").write_text("example = [1, 2]\n", encoding="utf-8")
    assert "Write each as [[example]]." in error_of(folder)


@pytest.mark.parametrize(
    "line",
    [
        "Tables: {% for name in ['a', 'b'] %}{{ name }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "{% if facts.workspace_id %}ID: {{ facts.workspace_id }}{% else %}ID: none{% endif %}",
        "{{ 'ID: ' ~ job_id }}",
        "ID{{ ': ' }}{{ job_id }}",
        "{# remark #}",
        "ID: {{ facts.workspace_id or '' }}",
    ],
)
def test_a_line_of_details_may_be_put_together_in_many_ways(folder: Path, change: Mend, line: str) -> None:
    change("en/failed.j2", "{% block details %}\n", f"{{% block details %}}\n{line}\n")
    check_catalogue(folder)


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


# A broken kind that reaches a function all the same


@pytest.fixture
def two_kinds(folder: Path) -> Path:
    """The kind that ships, and a copy of it, `export`, to break."""
    shutil.copytree(folder / KIND, folder / "export")
    return folder


@pytest.mark.parametrize("name", ["kind.toml", "en/failed.j2", "de/succeeded.j2"])
@pytest.mark.parametrize("content", [b"{% block", b"\xff", b"", None])
def test_a_broken_kind_leaves_the_other_kinds_alone(two_kinds: Path, name: str, content: bytes | None) -> None:
    path = two_kinds / "export" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    catalogue = load_catalogue(two_kinds)
    assert [kind.name for kind in catalogue.sound] == [KIND]
    assert [kind.name for kind in catalogue.broken] == ["export"]
    check_kind(catalogue.sound[0])


def test_a_broken_kind_is_told_to_nobody_as_undeclared(two_kinds: Path) -> None:
    (two_kinds / "export/kind.toml").unlink()
    kind = load_catalogue(two_kinds).get("export")
    assert kind is not None
    assert kind.tells("succeeded")


def test_a_check_refuses_a_catalogue_with_a_broken_kind(two_kinds: Path) -> None:
    (two_kinds / "export/kind.toml").unlink()
    assert "export/kind.toml: the file is missing" in error_of(two_kinds)


def test_words_that_are_shared_break_only_the_kinds_that_use_them(two_kinds: Path) -> None:
    (two_kinds / "_layout/words/de.j2").write_text("{% block", encoding="utf-8")
    shutil.rmtree(two_kinds / "export/de")
    path = two_kinds / "export/kind.toml"
    path.write_text(path.read_text(encoding="utf-8").partition("[ask.de]")[0], encoding="utf-8")
    catalogue = load_catalogue(two_kinds)
    assert [kind.name for kind in catalogue.sound] == ["export"]
    assert [kind.name for kind in catalogue.broken] == [KIND]


def test_a_kind_nested_too_deep_to_read_is_broken_alone(two_kinds: Path) -> None:
    (two_kinds / "export/kind.toml").write_text("title = " + "[" * 5000 + "]" * 5000, encoding="utf-8")
    (broken,) = load_catalogue(two_kinds).broken
    assert broken.name == "export"
