"""What each step brought: the function as built against the same with one step taken back. `python -m bench.steps`.

A step that lies in the build is taken back in a copy of it; one that lies in the code by a few lines run before the
function is imported. So the code itself needs no switches.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench import builds, figures, stub
from bench.__main__ import certificate, trust
from bench.builds import OUT, Function

_QUIET = "import gc; gc.disable()\n"  # as app.py does, since these lines import before it

LINES = {
    "no collection held off": "import gc; gc.disable = gc.freeze = lambda: None",
    "every function's imports": _QUIET
    + "import notices.feedback, notices.receive_feedback, notices.retry, notices.untold",
    "trust store for each connection": _QUIET + "import notices.trust as t; t.TrustStore.share_with = lambda *_: None",
    "records one after the other": _QUIET
    + "import notices.batch as b; made = b.Batch.__init__\n"
    + "def alone(self, *a, pool=None, **k): made(self, *a, **k)\n"
    + "b.Batch.__init__ = alone",
    "no joint reads": _QUIET
    + "import notices.lookups as l; joint = l.ReadTogether.__call__\n"
    + "l.ReadTogether.__call__ = lambda self, keys, pool: joint(self, (), pool)",
    "threads on any processor": _QUIET + "import notices.processor as p; p.stay_on_one = lambda _: None",
    "no client for the dead letters": _QUIET
    + "import notices.wiring as w; made = w._client\n"
    + "w._client = lambda c, service, config: None if service == 'sqs' else made(c, service, config)",
}
"""Steps in the code, and how they are taken back. (The last one is no step, but one that was tried.)"""


def variants(python: str) -> list[Function]:
    """Return the function as built, and with one step taken back each."""
    ours, peer = builds.ours(python), builds.peer(python)
    _, dependencies, notices = ours.folders
    sdk = peer.folders[1]

    def no_bytecode(copy: Path) -> None:
        for cache in list(copy.rglob("__pycache__")):
            shutil.rmtree(cache)

    def whole_data(copy: Path) -> None:
        shutil.rmtree(copy / "botocore" / "data")
        shutil.copytree(sdk / "botocore" / "data", copy / "botocore" / "data")

    def no_templates(copy: Path) -> None:
        shutil.rmtree(copy / "notices" / "compiled")

    def rebuilt(name: str, folder: Path, change: Callable[[Path], None]) -> Function:
        copy = OUT / "steps" / name.replace(" ", "-")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        change(copy)
        return replace(ours, name=name, folders=tuple(copy if each == folder else each for each in ours.folders))

    return [
        ours,
        rebuilt("no bytecode for the SDK", dependencies, no_bytecode),
        rebuilt("the whole SDK data", dependencies, whole_data),
        rebuilt("templates compiled at start", notices, no_templates),
        *(replace(ours, name=name, before=lines) for name, lines in LINES.items()),
    ]


def main() -> int:
    """Measure, and print each variant's medians and their ratio to the function as built."""
    parser = argparse.ArgumentParser(description="What each step brought.")
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    python = builds.interpreter()
    functions = variants(python)
    made, key = certificate(OUT)
    with stub.running(made, key) as control:
        bench = figures.Bench(python, control, trust(OUT, functions[0].folders[1], made))
        measured = figures.cold(bench, functions, rounds)
        measured |= figures.first_over_tls(bench, functions, rounds)
        measured |= figures.warm(bench, functions, rounds)
    for label, by_name in measured.items():
        print(label)
        for name, value in by_name.items():
            print(f"    {name:34} {value:9.1f}  {value / by_name['ours']:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
