"""``make fuzz``: at least 100,000 hostile inputs, and whatever of `hostile.properties` does not hold for one of them.

Hypothesis makes inputs (`hostile.inputs`), and most of what is tried are mutants of them (`hostile.mutation`). A part
is guided by coverage: atheris (libFuzzer, where it can be had) keeps the mutants that reach new code in `notices`.

A failing input is made small and saved as JSON under build/fuzz/failures. `make fuzz REPLAY=<file>` runs it again; a
copy of it in tests/data/hostile keeps it for good.

Exit status: 0 when all held, 1 when an input failed or memory ran over, 2 when fewer inputs than asked for were tried
in the time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from hostile.inputs import TARGETS
from hostile.mutation import mutate, shrink
from hostile.properties import check

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "fuzz"
SAVED = ROOT / "tests" / "data" / "hostile"
CHUNK = 2000
MADE_SHARE = 0.04  # of a chunk is made anew; the rest are mutants of those, and of what once failed
GUIDED_SHARE = 0.3
MEMORY = 512  # MiB; what the functions have, and a process here also keeps its inputs

Input = dict[str, Any]


@dataclass(frozen=True)
class Chunk:
    """Some inputs of one target, to be made from one seed."""

    target: str
    seed: int
    inputs: int


@dataclass(frozen=True)
class Done:
    """What came of a chunk."""

    target: str
    inputs: int
    slowest: float  # seconds of processor time for one input
    memory: int  # the process's largest resident size, MiB
    failure: str | None = None


class Watched:
    """`check`, with the failing input kept, and time measured."""

    def __init__(self) -> None:
        self.inputs = 0
        self.slowest = 0.0
        self.failing: Input | None = None

    def __call__(self, hostile: Input) -> None:
        """Check one input."""
        self.inputs += 1
        started = time.process_time()
        try:
            check(hostile)
        except Exception:
            self.failing = hostile  # while Hypothesis shrinks it, the last one is the smallest
            raise
        finally:
            self.slowest = max(self.slowest, time.process_time() - started)

    def save(self) -> Path:
        """Save the failing input; return where."""
        assert self.failing is not None
        text = json.dumps(self.failing, indent=1, sort_keys=True) + "\n"
        folder = FOLDER / "failures"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.failing['target']}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
        path.write_text(text, encoding="utf-8")
        return path


def saved(target: str) -> list[Input]:
    """Return the inputs of a target that once failed."""
    inputs = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(SAVED.glob("*.json")))
    return [hostile for hostile in inputs if hostile["target"] == target]


def made(target: str, first_seed: int, inputs: int, tried: Callable[[Input], None]) -> None:
    """Hand new inputs to `tried`; one that raises is made small, and what it raises goes on."""

    @seed(first_seed)
    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @given(TARGETS[target])
    def holds(hostile: Input) -> None:
        tried(hostile)

    holds()


def try_chunk(chunk: Chunk) -> Done:
    """Try the inputs of a chunk."""
    watched = Watched()
    pool = saved(chunk.target)

    def tried(hostile: Input) -> None:
        watched(hostile)
        pool.append(hostile)

    failure = None
    try:
        made(chunk.target, chunk.seed, max(10, int(chunk.inputs * MADE_SHARE)), tried)
        chance = random.Random(chunk.seed)
        while watched.inputs < chunk.inputs:
            mutant = mutate(chance.choice(pool), chance, chance.choice(pool))
            watched(mutant)
            if chance.random() < 0.2:
                pool[chance.randrange(len(pool))] = mutant  # so that changes add up
    except Exception as error:
        if watched.failing is None:
            raise
        watched.failing = shrink(watched.failing, partial(_raises, type(error)))
        failure = f"{''.join(traceback.format_exception(error))}\nsaved: {watched.save()}"
    return Done(chunk.target, watched.inputs, watched.slowest, memory(), failure)


def _raises(kind: type[Exception], hostile: Input) -> bool:
    try:
        check(hostile)
    except kind:
        return True
    except Exception:  # noqa: BLE001 - another failure is not this one made small
        return False
    return False


def memory() -> int:
    """Return the largest size that this process had so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # where there is one: getrusage counts what the parent had when it forked
        peak = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024)


def _chunks(total: int, first_seed: int) -> Iterator[Chunk]:
    made, number, names = 0, 0, list(TARGETS)
    while made < total:
        inputs = min(CHUNK, total - made)
        yield Chunk(names[number % len(names)], first_seed * 1_000_000 + number, inputs)
        made, number = made + inputs, number + 1


@dataclass
class Tally:
    """What has been tried so far, and its progress line."""

    started: float
    inputs: Counter[str]
    slowest: float = 0.0
    memory: int = 0
    shown: float = 0.0

    def add(self, done: Done) -> None:
        """Count a chunk."""
        self.inputs[done.target] += done.inputs
        self.slowest, self.memory = max(self.slowest, done.slowest), max(self.memory, done.memory)

    def show(self, *, always: bool = False) -> None:
        """Print a line, now and then."""
        now = time.monotonic()
        if always or now - self.shown > 10:
            self.shown = now
            each = ", ".join(f"{target} {count}" for target, count in sorted(self.inputs.items()))
            say(
                f"{now - self.started:5.0f} s  {sum(self.inputs.values())} inputs ({each}); "
                f"slowest {self.slowest:.2f} s, memory {self.memory} MiB"
            )


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def fuzz(total: int, first_seed: int, deadline: float, jobs: int, tally: Tally) -> list[str]:
    """Try inputs until there are enough, the time is up or one fails; return the failures."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=40) as pool:
        for done in pool.imap_unordered(try_chunk, _chunks(total, first_seed)):
            tally.add(done)
            tally.show()
            if done.failure:
                pool.terminate()
                return [done.failure]
            if time.monotonic() > deadline:
                pool.terminate()
                break
    return []


def fuzz_guided(total: int, first_seed: int, deadline: float, jobs: int, tally: Tally) -> list[str]:
    """The same, guided by coverage: one libFuzzer process a target, as many at once as there are jobs."""
    waiting, running, failures = list(TARGETS), {}, []
    while waiting or running:
        while waiting and len(running) < jobs:
            target = waiting.pop()
            running[target] = _start_guided(target, first_seed, -(-total // len(TARGETS)), deadline)
        time.sleep(0.5)
        for target, process in list(running.items()):
            ended = process.poll() is not None
            found = FOLDER / f"guided-{target}.json"
            if found.exists():
                tally.add(Done(**json.loads(found.read_text(encoding="utf-8"))))
                found.unlink()
            if not ended:
                continue
            del running[target]
            if process.returncode:
                log = (FOLDER / f"guided-{target}.log").read_text(encoding="utf-8", errors="replace")
                failures.append(f"{log[-6000:]}\nthe coverage-guided run of {target} ended with {process.returncode}")
        tally.show()
    return failures


def _start_guided(target: str, first_seed: int, inputs: int, deadline: float) -> subprocess.Popen[bytes]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"guided-{target}.json").unlink(missing_ok=True)
    seconds = max(1, int(deadline - time.monotonic()))
    command = [sys.executable, "-m", "hostile.guided", target, str(first_seed % 2**31), str(inputs), str(seconds)]
    with (FOLDER / f"guided-{target}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and return the exit status."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=20.0, help="the most it may take")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", type=Path, help="run one saved input and nothing else")
    options = parser.parse_args(arguments)
    if options.replay:
        check(json.loads(options.replay.read_text(encoding="utf-8")))
        say(f"{options.replay}: all that must hold holds")
        return 0
    started = time.monotonic()
    deadline = started + options.minutes * 60
    tally = Tally(started, Counter())
    guided = find_spec("atheris") is not None
    say(f"seed {options.seed}: {options.inputs} inputs, at most {options.minutes:g} minutes, {options.jobs} at once")
    if not guided:
        say("atheris is not installed (it is made for Linux): all inputs are Hypothesis's, none guided by coverage")
    share = int(options.inputs * GUIDED_SHARE) if guided else 0
    failures = fuzz_guided(share, options.seed, started + options.minutes * 24, options.jobs, tally) if share else []
    rest = options.inputs - sum(tally.inputs.values())
    failures = failures or fuzz(rest, options.seed, deadline, options.jobs, tally)
    tally.show(always=True)
    if tally.memory > MEMORY:
        failures.append(f"a process took {tally.memory} MiB, which is more than a function has")
    for failure in failures:
        say(failure)
    tried = sum(tally.inputs.values())
    if failures:
        say(f"FAILED with seed {options.seed}; make fuzz REPLAY=<the saved file> runs the input again")
        return 1
    say(f"all that must hold held for {tried} inputs" + ("" if tried >= options.inputs else ": the time was up"))
    return 0 if tried >= options.inputs else 2


if __name__ == "__main__":
    sys.exit(main())
