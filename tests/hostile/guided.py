"""One target under libFuzzer: the mutants that reach new code in `notices` are kept, and changed again.

python -m hostile.guided TARGET SEED INPUTS SECONDS
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from dataclasses import asdict

import atheris  # type: ignore[import-not-found, unused-ignore]

with atheris.instrument_imports(include=["notices"]):
    from hostile.fuzz import FOLDER, Done, Input, Watched, made, memory, saved, say
    from hostile.mutation import mutate

LONGEST = 100_000
SEEDS = 60


def main() -> None:
    """Fuzz until enough inputs were tried, the time is up or one fails; never returns."""
    target, seed, inputs, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    deadline = time.monotonic() + seconds
    watched = Watched()
    donors = saved(target)
    made(target, seed, SEEDS, donors.append)
    corpus = FOLDER / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    for number, hostile in enumerate(donors):
        (corpus / f"seed-{number:03}").write_bytes(_as_bytes(hostile))

    report = Report(target, watched)

    def test_one_input(data: bytes) -> None:
        hostile = _as_input(data, target)
        if hostile is None:
            return
        try:
            watched(hostile)
        except Exception:
            say(f"saved: {watched.save()}")
            report.write()
            raise
        report.write_if_due()
        if watched.inputs >= inputs or time.monotonic() > deadline:
            report.write()
            os._exit(0)  # libFuzzer cannot be told that it is enough

    def mutated(data: bytes, max_size: int, mutation_seed: int) -> bytes:
        chance = random.Random(mutation_seed)
        hostile = _as_input(data, target) or chance.choice(donors)
        changed = _as_bytes(mutate(hostile, chance, chance.choice(donors)))
        return changed if len(changed) <= max_size else data

    options = {"seed": seed, "timeout": 30, "rss_limit_mb": 1500, "max_len": LONGEST, "artifact_prefix": f"{FOLDER}/"}
    arguments = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup(["fuzz", *arguments, str(corpus)], test_one_input, custom_mutator=mutated)
    atheris.Fuzz()


class Report:
    """What was tried since the last time it was written, in a file that `hostile.fuzz` takes away."""

    def __init__(self, target: str, watched: Watched) -> None:
        self._path = FOLDER / f"guided-{target}.json"
        self._target = target
        self._watched = watched
        self._reported = 0

    def write_if_due(self) -> None:
        """Write it where the last one was taken."""
        if self._watched.inputs >= self._reported + 500 and not self._path.exists():
            self.write()

    def write(self) -> None:
        """Write it, together with the last one where that is still there."""
        before = json.loads(self._path.read_text(encoding="utf-8"))["inputs"] if self._path.exists() else 0
        inputs = self._watched.inputs - self._reported + before
        self._reported = self._watched.inputs
        done = Done(self._target, inputs, self._watched.slowest, memory())
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(asdict(done)), encoding="utf-8")
        part.replace(self._path)


def _as_bytes(hostile: Input) -> bytes:
    return json.dumps(hostile).encode()


def _as_input(data: bytes, target: str) -> Input | None:
    """Return the input in libFuzzer's bytes; None for those that are none of this target's."""
    try:
        hostile = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return hostile if isinstance(hostile, dict) and hostile.get("target") == target else None


if __name__ == "__main__":
    main()
