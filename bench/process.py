"""A built function in a process of its own, as Lambda would start it."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.builds import Function

HOST = Path(__file__).parent / "host.py"


@dataclass(frozen=True, slots=True)
class Where:
    """How a function reaches the stub: the interpreter, the endpoint, and for TLS whom to trust."""

    python: str
    endpoint: str
    trust: Path | None = None


class Process:
    """One execution environment. `started` is when it was asked for, `imported` what its import took."""

    def __init__(self, function: Function, where: Where) -> None:
        environment = function.environment | {"AWS_ENDPOINT_URL": where.endpoint, "BENCH_BEFORE": function.before}
        if where.trust is not None:
            environment["AWS_CA_BUNDLE"] = str(where.trust)
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            # -S and -I: nothing but the built folders is found; -B: nothing is written that a later start would find
            [where.python, "-S", "-I", "-B", str(HOST), *map(str, function.folders)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.imported = self._answer()

    def run(self, job: str, *, batch: int, times: int = 1) -> dict[str, Any]:
        """Hand over batches of `batch` records, `times` times; return what they took."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"job": job, "batch": batch, "times": times}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the function's process ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
