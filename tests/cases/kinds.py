"""The shipped kinds with a text broken on purpose."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from notices.kinds import KINDS, load_catalogue


def break_a_text(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the text of a success ask for a fact that only a failure has."""
    kinds = shutil.copytree(KINDS, folder / "kinds")
    text = kinds / "workspace_provisioning" / "en" / "succeeded.j2"
    words = text.read_text(encoding="utf-8").replace(
        "{% block body %}", "{% block body %}{{ facts.failure_reason }}", 1
    )
    text.write_text(words, encoding="utf-8")
    monkeypatch.setattr("notices.kinds.load_catalogue", lambda: load_catalogue(kinds))
