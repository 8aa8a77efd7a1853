"""The threads of a function stay on one processor: one interpreter computes on one at a time anyway.

The threads of a batch hand the interpreter's lock to each other at every call. Where the next one sleeps on another
processor, that one has to be woken up first, and what it needs brought over. With that, and with turns taken while one
computes, a batch of ten takes 18 per cent longer (docs/performance.md).
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Mapping
from contextlib import suppress

TURN_SECONDS = 0.05
"""How long a thread may compute while others wait; Python's own 0.005 makes turns of what takes a few milliseconds."""


def stay_on_one(environ: Mapping[str, str]) -> None:
    """Keep this thread, and those that it will start, on one processor; do nothing outside Lambda.

    Only there is the process a function's alone. Where the system will not have it, all stays as it is.
    """
    if "AWS_LAMBDA_INITIALIZATION_TYPE" not in environ:
        return
    sys.setswitchinterval(TURN_SECONDS)
    if sys.platform == "linux":
        with suppress(OSError):
            processors = sorted(os.sched_getaffinity(0))
            # any of them: functions side by side on one machine, as with sam local, do not all take the same
            os.sched_setaffinity(0, {random.choice(processors)})  # noqa: S311 - nothing secret about it
