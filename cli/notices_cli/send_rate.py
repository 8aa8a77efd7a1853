"""Whether the stack's send rate fits SES's: the arithmetic of DESIGN 3.5 (Pace), and what to set where it does not.

Each worker sends `SesSendRate` / `MaximumConcurrency` a second, as its own settings say; how many workers there are is
the event source's affair. A hand at one of them alone makes the sum another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

BY_ONE_WORKER = 40  # mails a second, about (docs/capacity.md)
LEAST_SHARE = 0.5  # a worker with less finds no turn for a batch of ten within its patience (docs/capacity.md)
LEAST_WORKERS = 2  # Lambda's own limit for MaximumConcurrency


def misfits(ses: float, rate: int, reckoned: int, workers: int | None) -> Iterator[tuple[str, str]]:
    """Yield what does not fit, each with what to set.

    `ses` is SES's MaxSendRate (negative: none), `rate` SES_SEND_RATE, `reckoned` MAXIMUM_CONCURRENCY as the function
    has them, `workers` the event source's MaximumConcurrency (None: it has none).
    """
    if workers != reckoned:
        has = f"up to {workers} batches" if workers is not None else "as many batches as Lambda likes"
        sum_ = f" Together they may send {rate * workers / reckoned:,.0f} a second." if workers is not None else ""
        yield (
            f"the event source runs {has} at once, and each takes 1/{reckoned} of SesSendRate ({rate}).{sum_}",
            f"Deploy with MaximumConcurrency={workers or reckoned}: the deploy sets both.",
        )
    if ses >= 1 and rate > ses:
        most = math.floor(ses)
        yield (
            f"SesSendRate is {rate}, and SES takes {ses:,.0f} a second: what is above it is throttled and retried",
            f"Deploy with SesSendRate={most}, or have SES's send rate raised.",
        )
        rate = most
    if rate / reckoned < LEAST_SHARE and reckoned > LEAST_WORKERS:
        yield (
            f"each of {reckoned} workers may send one mail in {reckoned / rate:,.0f} seconds of SesSendRate={rate}: a "
            "batch's last letters find no turn and are retried",
            f"Deploy with MaximumConcurrency={max(LEAST_WORKERS, math.floor(rate / LEAST_SHARE))}.",
        )
    if rate > reckoned * BY_ONE_WORKER:
        yield (
            f"{reckoned} workers send some {reckoned * BY_ONE_WORKER:,} a second at most, and SesSendRate is {rate:,}",
            f"Deploy with MaximumConcurrency={math.ceil(rate / BY_ONE_WORKER)}, if many jobs settle at once.",
        )
