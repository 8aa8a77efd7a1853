"""What the layer's build runs: `python -m notices.compile_kinds FOLDER` writes the templates' Python into FOLDER.

Every kind is read and checked on the way, so one that cannot be loaded fails the build, with its file and line.
"""

from __future__ import annotations

import sys
from pathlib import Path

from notices.kinds import load_catalogue

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text('"""Made by the build: the templates, compiled."""\n', encoding="utf-8")
    sys.exit("\n".join(str(kind.fault) for kind in load_catalogue(compile_into=folder).broken) or 0)
