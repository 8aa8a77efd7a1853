"""The error codes of a notice (DESIGN 3.4), in plain words and with their remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from notices.codes import FOR_GOOD, NOBODY_TO_TELL, Code
from notices.codes import code_of as known_code


@dataclass(frozen=True, slots=True)
class About:
    """What a code means. `says` completes "because ..."; `remedy` is what to do first, if anything is."""

    says: str
    remedy: str


CODES: Mapping[str, About] = {
    Code.ADDRESS_MISSING: About("the requester has no address", "Have the platform add the requester's address."),
    Code.ADDRESS_INVALID: About(
        "no mail can go to the requester's address", "Have the platform correct the requester's address."
    ),
    Code.TENANT_MISMATCH: About(
        "the requester is not of the job's tenant",
        "Find out which of the platform's two tables is wrong before anything else.",
    ),
    Code.PROVIDER_REFUSED: About(
        "SES refused this message or its address",
        "See the log line of TellRequesterFunction for this job; correct the address if it is that.",
    ),
    Code.REQUESTER_MISSING: About(
        "the requester is not in the requesters table", "Have the platform put the requester there."
    ),
    Code.TEMPLATE_ERROR: About("the kind's text cannot be rendered", "Mend the kind and deploy it."),
    Code.THROTTLED: About("SES was busy: above the sending rate", ""),
    Code.QUOTA_EXCEEDED: About(
        "the account's daily quota is used up", "Have the SES quota raised; the retry goes on by itself."
    ),
    Code.PROVIDER_UNREACHABLE: About("no connection to SES could be made", ""),
    Code.PROVIDER_MISCONFIGURED: About(
        "SES would not send for a setting of ours",
        "Mend the setting that notices check names; then the notices go out by themselves.",
    ),
    Code.SENDER_UNSET: About(
        "neither NOTICE_FROM_ADDRESS nor MAIL_FROM_ADDRESS is set",
        "Deploy with NoticeFromAddress; then the notices go out by themselves.",
    ),
    Code.INTERNAL_ERROR: About(
        "something went wrong on our side",
        "See the log of TellRequesterFunction for this job, and whether notices check names a fault.",
    ),
    Code.PROVIDER_UNKNOWN: About(
        "the message went out and no answer came back, so SES may have it",
        "Leave it: SES's own events settle it, else it is sent again. A retry by hand may send it twice.",
    ),
    Code.REOPENED: About("an operator re-opened it", ""),
    Code.GAVE_UP: About("it still failed when the retry horizon was reached", "Mend the cause."),
    Code.JOB_REMOVED: About("the job was removed or is not there", "Nothing: nobody is told of such a job."),
    Code.NO_REQUESTER: About("nobody asked for the job", "Nothing: there is nobody to tell."),
    Code.UNDECLARED: About("nobody is told of this kind or outcome", "Nothing: the kind does not notify."),
    Code.KIND_MISMATCH: About(
        "the event contradicted the job's kind", "Find out whether the event or the job is wrong."
    ),
}

RETRIED = frozenset(Code) - FOR_GOOD - NOBODY_TO_TELL - {Code.GAVE_UP}
"""A notice that failed with one of these has a next attempt, and so is in the `due` index."""


def code_of(error: str | None) -> str:
    """Return the code that an error begins with, also one that nobody knows; empty without an error."""
    return known_code(error) or (error or "").partition(":")[0].strip()


def detail_of(error: str | None) -> str:
    """Return what follows the code."""
    return (error or "").partition(":")[2].strip()


def says(error: str | None) -> str:
    """Return an error in plain words, with its code and detail."""
    code, detail = code_of(error), detail_of(error)
    about = CODES.get(code)
    if about is None:
        return error or "no reason is recorded"
    return f"{about.says} ({code}{f': {detail}' if detail else ''})"
