"""The shipped kinds with one more language, one that is written from right to left."""

from __future__ import annotations

import shutil
from pathlib import Path

from notices.kinds import KINDS

_WORDS = Path(__file__).parents[1] / "data" / "arabic"


def kinds_in_arabic(folder: Path) -> Path:
    """Copy the shipped kinds to `folder`, add Arabic to workspace provisioning, and return the folder."""
    kinds = shutil.copytree(KINDS, folder / "kinds")
    shutil.copy(_WORDS / "words.j2", kinds / "_layout" / "words" / "ar.j2")
    shutil.copytree(_WORDS / "workspace_provisioning", kinds / "workspace_provisioning" / "ar")
    with (kinds / "workspace_provisioning" / "kind.toml").open("a", encoding="utf-8") as declared:
        declared.write('\n[ask.ar]\nstaff = "فريق المنصة"\ncustomer = "فريق الدعم"\n')
    return kinds
