"""docs/kinds.md, word for word: what it says to run is run, what it says to write is written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.kinds import one_kind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8")
STEPS = PAGE.partition("\n## What may stand in a text")[0]
REPLACED = re.compile(r"`(layers/[^`]+)` by this:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy with the one kind that shipped first: the page may have been followed in the project itself."""
    ignored = shutil.ignore_patterns("__pycache__", "kinds")
    shutil.copytree(ROOT / "layers/notices/notices", tmp_path / "layers/notices/notices", ignore=ignored)
    shutil.copytree(ROOT / "cli", tmp_path / "cli", ignore=shutil.ignore_patterns("__pycache__"))
    one_kind(tmp_path / "layers/notices/notices")
    return tmp_path


def run(project: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a `notices kind` command in the copy of the project."""
    tool, group, *arguments = shlex.split(command)
    assert (tool, group) == ("notices", "kind")
    return subprocess.run(
        [sys.executable, "-m", "notices_cli.kinds", *arguments],
        cwd=project,
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(("layers/notices", "cli")), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_the_page_on_kinds_works_word_for_word(project: Path) -> None:
    said, run_commands, written = "", 0, 0
    before = 0
    for block in BLOCK.finditer(STEPS):
        language, content = block.groups()
        words, before = STEPS[before : block.start()], block.end()
        match language:
            case "sh":
                for command in content.strip().splitlines():
                    done = run(project, command)
                    assert not done.stderr
                    said, run_commands = done.stdout, run_commands + 1
            case "text":
                assert said == content
            case "toml" | "jinja":
                (name,) = re.findall(r"`(layers/[^`]+)` by this:\s*$", words)
                path = project / name
                assert path.is_file(), f"the page replaces {name}, which is not there"
                path.write_text(content, encoding="utf-8")
                written += 1
            case _:
                pytest.fail(f"nobody knows what to do with a block of {language}")
    assert (run_commands, written) == (5, 4)
    done = run(project, "notices kind check")
    assert (done.returncode, done.stdout) == (0, "Every kind is right.\n")


def test_the_tests_hold_with_the_kind_of_the_page_beside_the_one_that_ships(project: Path) -> None:
    assert run(project, "notices kind new data_export").returncode == 0
    for name, content in REPLACED.findall(STEPS):
        (project / name).write_text(content, encoding="utf-8")
    here = ("tests/unit/test_message.py", "tests/cli/test_preview.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", "-k", "data_export or preview", *here],
        cwd=ROOT,
        env={"PATH": os.defpath, "PYTHONPATH": str(project / "layers/notices"), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout
    assert "test_text_and_page_say_the_same[data_export-succeeded-staff] PASSED" in done.stdout


def test_the_page_on_kinds_names_every_fact_type_block_and_name() -> None:
    from notices.facts import FACT_TYPES
    from notices.kind_texts import _BLOCKS, _NAMES

    reference = PAGE.partition("\n## What may stand in a text")[2]
    for name in (*FACT_TYPES, *_BLOCKS, *_NAMES - {"facts"}):
        assert f"`{name}`" in reference


def test_the_page_on_kinds_adds_another_language_as_it_says(project: Path) -> None:
    kinds = project / "layers/notices/notices/kinds"
    assert run(project, "notices kind new data_export").returncode == 0
    shutil.copytree(kinds / "data_export/en", kinds / "data_export/pt-BR")
    missing = run(project, "notices kind check")
    assert missing.returncode == 1
    assert "nobody is named to ask in 'pt-BR'. Add [ask.pt-BR]" in missing.stdout
    with (kinds / "data_export/kind.toml").open("a", encoding="utf-8") as declared:
        declared.write('\n[ask.pt-BR]\nstaff = "a equipe"\ncustomer = "o suporte"\n')
    assert "_layout/words/pt-BR.j2: the file is missing" in run(project, "notices kind check").stdout
    shutil.copy(kinds / "_layout/words/en.j2", kinds / "_layout/words/pt.j2")
    assert run(project, "notices kind check").stdout == "Every kind is right.\n"
