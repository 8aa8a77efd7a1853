"""The figures. Whatever is compared is measured in turn, one after the other, so that a busy moment meets all alike."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.builds import Function
from bench.process import Process, Where
from bench.stub import Control

LATENCY = 0.010
Medians = dict[str, dict[str, float]]
"""Figures by name, and in each the median by function."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What every measurement needs."""

    python: str
    stub: Control
    trust: Path

    @property
    def plain(self) -> Where:
        """HTTP."""
        return Where(self.python, self.stub.http)

    @property
    def secure(self) -> Where:
        """TLS, with a trust store as large as the SDK's own."""
        return Where(self.python, self.stub.https, self.trust)


def cold(bench: Bench, functions: Sequence[Function], rounds: int) -> Medians:
    """From asking for the process to the first answered batch, of one record, over TLS as when deployed."""
    bench.stub.set(latency=LATENCY, handled=False)
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds + 1):
        for function in functions:
            with Process(function, bench.secure) as process:
                answer = process.run(f"cold{number}", batch=1)
                wall = time.perf_counter() - process.started
            if number == 0:
                continue  # it only fills the machine's file cache
            seen["cold start: wall, ms"][function.name].append(wall * 1000)
            seen["cold start: CPU, ms"][function.name].append(answer["total_cpu"] * 1000)
            seen["cold start: peak memory, MB"][function.name].append(answer["peak"] / 1e6)
    return _medians(seen)


def first_over_tls(bench: Bench, functions: Sequence[Function], rounds: int) -> Medians:
    """The first batch of ten in a fresh process, over TLS."""
    bench.stub.set(latency=LATENCY, handled=False)
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for function in functions:
            with Process(function, bench.secure) as process:
                answer = process.run(f"tls{number}", batch=10)
            seen["first batch of 10 over TLS: wall, ms"][function.name].append(answer["wall"][0] * 1000)
            seen["first batch of 10 over TLS: CPU, ms"][function.name].append(answer["cpu"] * 1000)
    return _medians(seen)


def warm(bench: Bench, functions: Sequence[Function], rounds: int) -> Medians:
    """Batches in a process that has handled some before."""
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        running = [(f.name, stack.enter_context(Process(f, bench.plain))) for f in functions]
        for handled in (False, True):
            bench.stub.set(latency=LATENCY, handled=handled)
            what = "batch of {} handled before" if handled else "warm batch of {}"
            for _, process in running:
                process.run("first", batch=10, times=3)
            for number in range(rounds):
                for size in (1,) if handled else (1, 10):
                    for name, process in running:
                        process.run(f"awake{number}", batch=size)  # the other ran meanwhile, and its turn was longer
                        answer = process.run(f"warm{number}", batch=size, times=2)
                        label = what.format(size)
                        seen[f"{label}: wall, ms"][name] += [wall * 1000 for wall in answer["wall"]]
                        if size == 10:
                            seen["CPU per notice in a batch of 10, ms"][name].append(answer["cpu"] * 1000 / 20)
                        elif not handled:
                            seen["CPU per notice alone, ms"][name].append(answer["cpu"] * 1000 / 2)
    return _medians(seen)


def calls(bench: Bench, functions: Sequence[Function]) -> dict[str, dict[str, dict[str, float]]]:
    """The calls of one notice, by operation: alone, in a batch of ten, and handled before."""
    counted: dict[str, dict[str, dict[str, float]]] = {}
    for function in functions:
        with Process(function, bench.plain) as process:
            for what, size, handled in (("alone", 1, False), ("in a batch of 10", 10, False), ("handled", 1, True)):
                bench.stub.set(latency=0, handled=handled)
                process.run(what.replace(" ", "-"), batch=size)
                made = bench.stub.set()
                counted.setdefault(what, {})[function.name] = {name: made[name] / size for name in sorted(made)}
    bench.stub.set(handled=False)
    return counted


def memory(bench: Bench, functions: Sequence[Function], notices: int) -> dict[str, dict[str, float]]:
    """Memory after half of the notices and after all of them. No clock here, so both run at once."""
    bench.stub.set(latency=0, handled=False)

    def one(function: Function) -> dict[str, float]:
        with Process(function, bench.plain) as process:
            half = process.run("first-half", batch=10, times=notices // 20)
            whole = process.run("second-half", batch=10, times=notices // 20)
        return {"half": half["rss"] / 1e6, "whole": whole["rss"] / 1e6}

    with ThreadPoolExecutor(len(functions)) as pool:
        return dict(zip((f.name for f in functions), pool.map(one, functions), strict=True))


def _medians(seen: Mapping[str, Mapping[str, Sequence[float]]]) -> Medians:
    return {label: {name: median(values) for name, values in by_name.items()} for label, by_name in seen.items()}
