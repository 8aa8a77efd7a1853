"""The tools to write a kind with: new, check, preview, gallery (DESIGN 3.8)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from fakes.kinds import KIND, kinds_in_arabic, one_kind
from notices.examples import load_examples
from notices.kinds import KINDS, load_catalogue
from notices_cli.gallery import gallery, in_scheme, shown
from notices_cli.kinds import check_kinds, main, new_kind
from scripts.build import BuildError, build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return one_kind(tmp_path)


@pytest.mark.parametrize("name", ["export", "data_export", "x", "a" * 64])
def test_a_new_kind_already_passes(folder: Path, name: str) -> None:
    written = new_kind(folder, name)
    assert {path.name for path in written} == {"kind.toml", "examples.toml", "succeeded.j2", "failed.j2"}
    assert check_kinds(folder) == []
    assert load_catalogue(folder).get(name) is not None


def test_a_new_kind_is_shown_with_what_comes_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    assert main(["--folder", str(folder), "new", "export"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "kinds/export/en/failed.j2"
    assert last.endswith("notices kind check, notices kind preview export")


@pytest.mark.parametrize("name", ["Export", "data-export", "", "../export", "_layout", "1st", "a" * 65, "ex port"])
def test_a_name_that_no_kind_can_have_writes_nothing(folder: Path, name: str, capsys) -> None:
    before = sorted(folder.parent.rglob("*"))
    assert main(["--folder", str(folder), "new", name]) == 1
    assert "Take another" in capsys.readouterr().err
    assert sorted(folder.parent.rglob("*")) == before


def test_a_kind_that_is_there_is_not_written_over(folder: Path, capsys) -> None:
    assert main(["--folder", str(folder), "new", KIND]) == 1
    assert "there is a kind of that name" in capsys.readouterr().err
    assert check_kinds(folder) == []


def test_a_check_names_every_file_at_fault_with_its_line(folder: Path, capsys) -> None:
    for text in ("en/failed.j2", "de/succeeded.j2"):
        path = folder / KIND / text
        words = path.read_text(encoding="utf-8")
        path.write_text(words.replace("{% block body %}", "{% block body %}\n{{ facts.failure_reason }}"), "utf-8")
    new_kind(folder, "export")
    (folder / "export" / "kind.toml").write_text("title = 1\n", encoding="utf-8")
    assert main(["--folder", str(folder), "check"]) == 1
    export, german, english = sorted(capsys.readouterr().out.splitlines())
    assert "export/kind.toml:1: 'title' is missing or not a text." in export
    assert f"{KIND}/de/succeeded.j2:6: the example of 'succeeded' for staff does not render" in german
    assert f"{KIND}/en/failed.j2:6: the example of 'failed' for staff, without failure_reason," in english
    assert "Put that part between {% if facts.failure_reason %} and {% endif %}." in english


def test_a_check_of_a_folder_without_kinds_says_so(tmp_path: Path) -> None:
    (problem,) = check_kinds(tmp_path)
    assert "it holds no kind" in problem


def test_a_text_that_cannot_do_without_a_fact_is_refused(folder: Path) -> None:
    path = folder / KIND / "en" / "succeeded.j2"
    words = path.read_text(encoding="utf-8")
    path.write_text(words.replace("Open the workspace", "Open {{ facts.workspace_name }}"), encoding="utf-8")
    line = words.splitlines().index("Open the workspace") + 1
    (problem,) = check_kinds(folder)
    assert f"{KIND}/en/succeeded.j2:{line}: the example of 'succeeded' for staff, without workspace_name," in problem


def test_a_broken_kind_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise load_catalogue(tmp_path / "kinds").broken[0].fault

    kinds = one_kind(tmp_path)
    (kinds / KIND / "kind.toml").unlink()
    monkeypatch.setattr("scripts.build.check_catalogue", refuse)
    with pytest.raises(BuildError, match=r"a kind is not right: .*kind\.toml: the file is missing"):
        build(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_kind_that_cannot_be_loaded_fails_the_layers_own_build_in_a_line(tmp_path: Path) -> None:
    package = tmp_path / "notices"
    shutil.copytree(KINDS.parent, package, ignore=shutil.ignore_patterns("__pycache__", "kinds", "compiled"))
    (one_kind(package) / KIND / "en/failed.j2").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "notices.compile_kinds", str(tmp_path / "compiled")],
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == f"notices/kinds/{KIND}/en/failed.j2: the file is missing. Add it.\n"


def test_a_preview_shows_what_was_chosen(folder: Path, capsys) -> None:
    arguments = ["preview", KIND, "--outcome", "succeeded", "--audience", "customer", "--locale", "de"]
    assert main(["--folder", str(folder), *arguments]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Workspace provisioning: succeeded, to customer, in de (job-2026-0413)\n")
    assert "Subject: Ihr Arbeitsbereich ist bereit: Harvest Planning\n" in said
    assert "\nGuten Tag Kim Sample,\n" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["nope"], "there is no such kind. Use workspace_provisioning."), ([KIND, "--locale", "xx"], "nothing is shown")],
)
def test_a_preview_of_what_is_not_there_says_what_is(folder: Path, capsys, arguments: list[str], says: str) -> None:
    assert main(["--folder", str(folder), "preview", *arguments]) == 1
    assert says in capsys.readouterr().err


def test_the_gallery_has_every_kind_outcome_audience_and_language_in_both_widths_and_schemes(tmp_path: Path) -> None:
    kinds = kinds_in_arabic(tmp_path)
    page = gallery(kinds)
    for kind in load_catalogue(kinds).sound:
        for example in load_examples(kind):
            for tag in kind.languages:
                title = f"{kind.title}: {example.outcome}, to {example.audience}, in {tag} ({example.job.job_id})"
                frames = re.findall(rf'title="{re.escape(title)}, (\d+) pixels, (\w+)"', page)
                assert frames == [("320", "light"), ("320", "dark"), ("680", "light"), ("680", "dark")]
                assert example.message(kind, tag).text in unescape(page)


def test_the_gallery_is_written_by_one_command(folder: Path, tmp_path: Path, capsys) -> None:
    assert main(["--folder", str(folder), "gallery", "--out", str(tmp_path / "new" / "page.html")]) == 0
    assert capsys.readouterr().out.strip() == (tmp_path / "new" / "page.html").as_uri()
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_is_shown_in_the_scheme_that_was_asked_for(folder: Path) -> None:
    page = shown(folder)[0].message.html
    assert "@media all {" in in_scheme(page, "dark")
    assert "@media not all {" in in_scheme(page, "light")
    assert "prefers-color-scheme" not in in_scheme(page, "light")
