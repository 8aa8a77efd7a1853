"""The gate between one worker and the world: every external call passes it before and after it took effect.

A test stands at the gate. It can refuse a call, drop its reply, kill the worker, or let somebody else act first:

    gate.on_call = lambda operation, kwargs: ...      # raise: the call is not made
    gate.after_call = lambda operation, kwargs: ...   # raise: it was made, but its reply is not this
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Hook = Callable[[str, Mapping[str, Any]], None]

_T = TypeVar("_T")


class Killed(BaseException):
    """The worker's process is gone: nothing that it has yet to do happens."""


class ReplyLost(Exception):
    """Raised in `after_call`: the call took effect, no reply came, and the SDK makes the call again."""


def nothing(_operation: str, _kwargs: Mapping[str, Any]) -> None:
    """Let the call pass."""


@dataclass(slots=True)
class Gate:
    """One worker's gate. Its calls are numbered from 1 and listed by operation."""

    on_call: Hook = nothing
    after_call: Hook = nothing
    calls: list[str] = field(default_factory=list)
    dead: bool = False

    def pass_through(self, operation: str, kwargs: Mapping[str, Any], call: Callable[[], _T]) -> _T:
        """Make one call, and make it again for each lost reply."""
        while True:
            try:
                return self.pass_once(operation, kwargs, call)
            except ReplyLost:
                continue

    def pass_once(self, operation: str, kwargs: Mapping[str, Any], call: Callable[[], _T]) -> _T:
        """Make one call in one attempt: a lost reply is the caller's to deal with."""
        if self.dead:
            raise Killed  # what `finally` still tries to do, a dead process does not
        self.calls.append(operation)
        try:
            self.on_call(operation, kwargs)
            if self.dead:
                raise Killed
            try:
                return call()
            finally:
                self.after_call(operation, kwargs)
                if self.dead:
                    raise Killed
        except Killed:
            self.dead = True
            raise


class Lever:
    """A hook that pulls once, at the nth call of an operation (any operation: None)."""

    def __init__(self, effect: Callable[[], object], *, operation: str | None = None, nth: int = 1) -> None:
        self.pulled = False
        self._effect = effect
        self._operation = operation
        self._left = nth

    def __call__(self, operation: str, _kwargs: Mapping[str, Any]) -> None:
        if self._operation not in (None, operation):
            return
        self._left -= 1
        if self._left == 0:
            self.pulled = True
            self._effect()


def raising(error: BaseException) -> Callable[[], None]:
    """Return an effect that raises."""

    def effect() -> None:
        raise error

    return effect
