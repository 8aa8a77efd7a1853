"""What has to hold, whatever the schedule. Each has a name and a sentence; the page prints both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

Item = dict[str, Any]

# A notice that failed with one of these is done with: DESIGN 3.4 and 3.5.
FOR_GOOD = frozenset(
    {
        "address_missing",
        "address_invalid",
        "tenant_mismatch",
        "provider_refused",
        "gave_up",
        "job_removed",
        "no_requester",
        "undeclared",
        "kind_mismatch",
    }
)

SUPPRESSED = "suppressed"
ENDINGS = FOR_GOOD | {SUPPRESSED}

UNTIL_ABANDONED = timedelta(minutes=15)  # DESIGN 3.3
GRACE = timedelta(seconds=600)  # UnknownGraceSeconds
LONGEST_WAIT = timedelta(hours=5)  # DESIGN 3.5: four hours and a fifth
LOG_LENGTH = 50  # DESIGN 3.2
MOMENT = timedelta(seconds=1)


class Invariant(Enum):
    """The invariants."""

    NOT_LOST = (
        "no notice is lost",
        "When queue, retry and feedback have done their work, every notice is delivered, suppressed, failed for good "
        "with a reason, or given up. Delivered only if SES accepted a mail, and always if SES said that it did; "
        "suppressed only outside production; failed for good only for a reason that was met; given up only past the "
        "horizon.",
    )
    DELIVERED_IS_FINAL = (
        "delivered is final",
        "A notice that is delivered never has another status again.",
    )
    NO_RESULT_REPLACES_A_LATER_ONE = (
        "no result of one attempt replaces a later one's",
        "That an attempt failed changes nothing but the log once a later attempt has claimed the notice.",
    )
    FIRST_REFERENCE_IS_KEPT = (
        "the first accepted reference is kept",
        "The message id with which a notice became delivered is one that SES gave, and no other ever takes its place.",
    )
    DUPLICATES_AS_DESIGNED = (
        "a duplicate happens only where the design says it can",
        "A second mail is accepted only under a later claim that found the first sender still at work, stopped before "
        "its outcome was written, or without an answer from SES; never under one claim, nor without a claim. No sender "
        "gives its event back once SES has accepted its mail, and the retry's own event claims at the revision that it "
        "names or not at all.",
    )
    ATTEMPTS_COUNTS_CLAIMS = (
        "attempts counts claims",
        "Each claim that is written adds one to `attempts`, and nothing else does.",
    )
    DUE_UNLESS_HANDLED = (
        "a handled notice is never due and an unhandled one always is",
        "A delivered or suppressed notice has no `next_attempt_at`; a pending one has, and so has a failed one unless "
        "it failed for good with a reason. It is due 15 minutes after a claim; after a result within five hours, and "
        "after a send without an answer no sooner than the grace.",
    )
    KNOWN_IS_KEPT = (
        "what is known is kept",
        "No write takes away when the notice was first claimed, what its log says, or SES's news of it (the log keeps "
        "its latest 50 entries).",
    )
    MAILS_ARE_LOGGED = (
        "each mail is logged once",
        "A mail of which a sender's outcome or SES's own event told is in `attempt_log`, and only once.",
    )
    NO_MAIL_OUTSIDE_PRODUCTION = (
        "nobody outside production gets mail",
        "A process that does not run in production never calls SES.",
    )
    SAME_SCHEDULE_SAME_RUN = (
        "two runs over the same schedule are identical",
        "The same schedule, run again from its beginning, makes the same calls and leaves the same notice and mails.",
    )

    def __init__(self, title: str, sentence: str) -> None:
        self.title = title
        self.sentence = sentence


class Violated(AssertionError):
    """An invariant does not hold; `path` is the schedule that shows it."""

    def __init__(self, invariant: Invariant, detail: str, path: Sequence[object] = ()) -> None:
        self.invariant = invariant
        self.detail = detail
        self.path = tuple(str(step) for step in path)
        super().__init__("\n    ".join([f"{invariant.title}: {detail}", *self.path]))


def check_change(
    before: Item | None, after: Item, *, horizon: timedelta = timedelta(0), production: bool = False
) -> None:
    """Check what one write did to a notice; `production` says that nobody runs outside it.

    `horizon` is the shortest that anybody has after which a notice is given up.
    """
    if before is not None:
        _check_final(before, after)
        _check_opinion(before, after)
    _check_due(after)
    _check_wait(before, after)
    _check_end(before, after, horizon=horizon, production=production)
    claimed = before is None or before["claim_id"] != after["claim_id"]
    attempts = _number(before, "attempts") if before is not None else 0
    if _number(after, "attempts") != attempts + claimed:
        raise Violated(
            Invariant.ATTEMPTS_COUNTS_CLAIMS,
            f"{attempts} became {_number(after, 'attempts')} {'with' if claimed else 'without'} a claim",
        )
    if before is not None:
        _check_kept(before, after)


def _check_final(before: Item, after: Item) -> None:
    if _text(before, "status") != "delivered":
        return
    if _text(after, "status") != "delivered":
        raise Violated(Invariant.DELIVERED_IS_FINAL, f"delivered became {_text(after, 'status')}")
    if before.get("provider_reference") != after.get("provider_reference"):
        raise Violated(
            Invariant.FIRST_REFERENCE_IS_KEPT,
            f"{_text(before, 'provider_reference')} became {_text(after, 'provider_reference')}",
        )


def _check_due(notice: Item) -> None:
    status, due = _text(notice, "status"), "next_attempt_at" in notice
    if status in ("delivered", "suppressed") and due:
        raise Violated(Invariant.DUE_UNLESS_HANDLED, f"{status}, and due")
    if status == "pending" and not due:
        raise Violated(Invariant.DUE_UNLESS_HANDLED, "pending, and not due")
    if status == "failed" and due == (code_of(notice) in FOR_GOOD):
        raise Violated(Invariant.DUE_UNLESS_HANDLED, f"failed with {code_of(notice)}, and {'' if due else 'not '}due")


def _check_wait(before: Item | None, after: Item) -> None:
    """A claim and a result say when the notice is due: neither at once nor for ever later."""
    if "next_attempt_at" not in after:
        return
    due = _time(after, "next_attempt_at")
    if before is None or before["claim_id"] != after["claim_id"]:
        least = most = UNTIL_ABANDONED
        since = _time(after, "claimed_at")
    elif "handled_at" in after and before.get("handled_at") != after["handled_at"]:
        least = GRACE if code_of(after) == "provider_unknown" else timedelta(0)
        most, since = LONGEST_WAIT, _time(after, "handled_at")
    else:
        return
    # the two are read from the clock one after the other
    if not since + least - MOMENT <= due <= since + most + MOMENT:
        raise Violated(Invariant.DUE_UNLESS_HANDLED, f"{_text(after, 'status')}, and due after {due - since}")


def _check_end(before: Item | None, after: Item, *, horizon: timedelta, production: bool) -> None:
    if before is not None and all(before.get(name) == after.get(name) for name in ("status", "error")):
        return
    if production and _text(after, "status") == SUPPRESSED:
        raise Violated(Invariant.NOT_LOST, "suppressed in production")
    if code_of(after) == "gave_up":
        age = _time(after, "handled_at") - _time(after, "created_at")
        if age < horizon:
            raise Violated(Invariant.NOT_LOST, f"given up after {age}")


def _check_kept(before: Item, after: Item) -> None:
    if before["created_at"] != after["created_at"]:
        raise Violated(Invariant.KNOWN_IS_KEPT, "another created_at")
    if "feedback" in before and "feedback" not in after:
        raise Violated(Invariant.KNOWN_IS_KEPT, "SES's news are gone")
    old, new = _log(before), _log(after)
    dropped = range(max(0, len(old) + 1 - LOG_LENGTH) + 1)
    if not any(old[first:] == new[: len(old) - first] for first in dropped if not first or len(new) >= LOG_LENGTH):
        raise Violated(Invariant.KNOWN_IS_KEPT, f"a log of {len(old)} entries became another, of {len(new)}")


def _check_opinion(before: Item, after: Item) -> None:
    """A failed result of an attempt that is not the latest any more changes the log alone."""
    logged = _log(after)[len(_log(before)) :]
    for entry in logged:
        if entry["result"] != {"S": "failed"} or entry["claim_id"] == before["claim_id"]:
            continue
        for name in ("status", "claim_id", "error", "handled_at", "next_attempt_at"):
            if before.get(name) != after.get(name):
                raise Violated(
                    Invariant.NO_RESULT_REPLACES_A_LATER_ONE,
                    f"{_text(entry, 'claim_id')} failed and changed the {name} of {_text(before, 'claim_id')}",
                )


def check_rest(
    notice: Item | None, references: Sequence[str], *, told: Sequence[str], endings: Collection[str] = ENDINGS
) -> None:
    """Check a notice when there is nothing left to do.

    `told` are the mails of which SES said that it accepted them, `endings` what may have come of the notice instead of
    a delivery: the codes of what was met on the way, and `suppressed`.
    """
    if notice is None:
        raise Violated(Invariant.NOT_LOST, "there is no notice, and nobody will try again")
    status = _text(notice, "status")
    if status == "pending" or "next_attempt_at" in notice:
        raise Violated(Invariant.NOT_LOST, f"still {status}")
    if status == "failed" and code_of(notice) not in FOR_GOOD:
        raise Violated(Invariant.NOT_LOST, f"failed for good with {code_of(notice) or 'no reason'}")
    if (ending := code_of(notice) if status == "failed" else status) not in {"delivered", *endings}:
        raise Violated(Invariant.NOT_LOST, f"{ending}, for which there was no reason")
    if status == "delivered" and not references:
        raise Violated(Invariant.NOT_LOST, "delivered, but no mail was accepted")
    if status != "delivered" and told:
        raise Violated(Invariant.NOT_LOST, f"SES said that it accepted a mail, and the notice is {status}")
    if status == "delivered" and _text(notice, "provider_reference") not in references:
        raise Violated(Invariant.FIRST_REFERENCE_IS_KEPT, f"{_text(notice, 'provider_reference')} is no mail of SES's")
    delivered = [entry for entry in _log(notice) if entry["result"] == {"S": "delivered"}]
    if status == "delivered" and delivered[0].get("reference") != notice["provider_reference"]:
        raise Violated(Invariant.FIRST_REFERENCE_IS_KEPT, "the log has another first delivery")
    logged = logged_mails(notice)
    if len(set(logged)) != len(logged) or len(entries := [str(entry) for entry in _log(notice)]) != len(set(entries)):
        raise Violated(Invariant.MAILS_ARE_LOGGED, "the log says the same twice")


def logged_mails(notice: Item) -> list[str]:
    """Return the mails of which the log says that they were accepted."""
    return [_text(entry, "reference") for entry in _log(notice) if entry["result"] == {"S": "delivered"}]


def code_of(notice: Item) -> str:
    """Return the stable code that an error begins with."""
    return _text(notice, "error").partition(":")[0]


def _text(item: Item, name: str) -> str:
    return str(item.get(name, {}).get("S", ""))


def _time(item: Item, name: str) -> datetime:
    return datetime.strptime(_text(item, name), "%Y-%m-%dT%H:%M:%S.%f%z")


def _number(item: Item, name: str) -> int:
    return int(item[name]["N"])


def _log(item: Item) -> list[Item]:
    return [entry["M"] for entry in item["attempt_log"]["L"]]
