"""Folders of kinds for tests to change, break and add to."""

from __future__ import annotations

import shutil
from pathlib import Path

from notices.kinds import KINDS

KIND = "workspace_provisioning"
_ARABIC = Path(__file__).parents[1] / "data" / "arabic"


def one_kind(folder: Path) -> Path:
    """Copy workspace provisioning alone, whatever else ships, with the layout, and return the folder of kinds."""
    for name in ("_layout", KIND):
        shutil.copytree(KINDS / name, folder / "kinds" / name)
    return folder / "kinds"


def kinds_in_arabic(folder: Path) -> Path:
    """Copy all kinds that ship, give workspace provisioning a language that is written from right to left as well."""
    kinds = Path(shutil.copytree(KINDS, folder / "kinds"))
    shutil.copy(_ARABIC / "words.j2", kinds / "_layout" / "words" / "ar.j2")
    shutil.copytree(_ARABIC / KIND, kinds / KIND / "ar")
    with (kinds / KIND / "kind.toml").open("a", encoding="utf-8") as declared:
        declared.write('\n[ask.ar]\nstaff = "فريق المنصة"\ncustomer = "فريق الدعم"\n')
    return kinds
