"""What may happen at a call: it is answered, or one of these (DESIGN 2: nothing of it may lose a notice)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from explorer.process import TIMED_OUT, Call, Reply
from fakes.mail import REFUSED, SEND_EMAIL, THROTTLED, UNKNOWN

READS = frozenset({"GetItem", "BatchGetItem", "Query"})
WRITES = frozenset({"PutItem", "UpdateItem"})
BATCH = "SendMessageBatch"


class Then(Enum):
    """What the process does after it."""

    DIES = "dies"
    CALLS_AGAIN = "makes the call again"  # the SDK does, without a word to the code
    GOES_ON = "goes on with this answer"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: whether the call took effect, what the process does, and the answer it gets."""

    name: str
    effect: bool
    then: Then
    reply: Reply | None = None
    later: bool = False  # the effect comes, but only after the process has gone on


_DIES = (
    Fault("dies before it", False, Then.DIES),
    Fault("dies after it took effect", True, Then.DIES),
)
_AGAIN = Fault("its reply is lost and the SDK makes it again", True, Then.CALLS_AGAIN)
_REFUSED = (
    Fault("it is throttled", False, Then.GOES_ON, Reply(error="ThrottlingException")),
    Fault("it is refused", False, Then.GOES_ON, Reply(error="AccessDeniedException")),
)
_NO_ANSWER = Reply(error=TIMED_OUT)
REFUSES = Reply(REFUSED)  # of the provider, for good

# A read that fails has no effect, and no reader asks why it failed (test_races.py has each code): one stands for all.
_READ = (*_DIES, _AGAIN, Fault("it is throttled, refused or times out", False, Then.GOES_ON, _NO_ANSWER))
_WRITE = (
    *_DIES,
    _AGAIN,
    *_REFUSED,
    Fault("it times out and had no effect", False, Then.GOES_ON, _NO_ANSWER),
    Fault("it times out and had taken effect", True, Then.GOES_ON, _NO_ANSWER),
    Fault("it times out and takes effect later", False, Then.GOES_ON, _NO_ANSWER, later=True),
)
_SEND = (
    *_DIES,
    Fault("it times out and was not accepted", False, Then.GOES_ON, Reply(UNKNOWN)),
    Fault("it times out and was accepted", True, Then.GOES_ON, Reply(UNKNOWN)),
    Fault("it is throttled", False, Then.GOES_ON, Reply(THROTTLED)),
    Fault("it is refused for good", False, Then.GOES_ON, REFUSES),
)
_QUEUE = (
    *_DIES,
    _AGAIN,
    *_REFUSED,
    Fault("it times out and had no effect", False, Then.GOES_ON, _NO_ANSWER),
    Fault("it times out and had taken effect", True, Then.GOES_ON, _NO_ANSWER),
)


def faults(call: Call) -> tuple[Fault, ...]:
    """Return what can go wrong at a call; receiving a message is the platform's own affair."""
    if call.operation in READS:
        return _READ
    if call.operation in WRITES:
        return _WRITE
    if call.operation == SEND_EMAIL:
        return _SEND
    if call.operation == BATCH:
        return _QUEUE
    return ()
