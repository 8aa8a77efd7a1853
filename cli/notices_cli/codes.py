"""The error codes of a notice (DESIGN 3.4), in plain words and with their remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """`says` completes "because ..."; `remedy` is what to do first, if anything is; `group` what happens of itself."""

    says: str
    remedy: str
    group: str  # retried; for_good; closed; gave_up


CODES: Mapping[str, Code] = {
    "address_missing": Code(
        "the requester has no address", "Have the platform add the requester's address.", "for_good"
    ),
    "address_invalid": Code(
        "no mail can go to the requester's address", "Have the platform correct the requester's address.", "for_good"
    ),
    "tenant_mismatch": Code(
        "the requester is not of the job's tenant",
        "Find out which of the platform's two tables is wrong before anything else.",
        "for_good",
    ),
    "provider_refused": Code(
        "SES refused this message or its address",
        "See the log line of TellRequesterFunction for this job; correct the address if it is that.",
        "for_good",
    ),
    "requester_missing": Code(
        "the requester is not in the requesters table", "Have the platform put the requester there.", "retried"
    ),
    "template_error": Code("the kind's text cannot be rendered", "Mend the kind and deploy it.", "retried"),
    "throttled": Code("SES was busy: above the sending rate", "", "retried"),
    "quota_exceeded": Code(
        "the account's daily quota is used up", "Have the SES quota raised; the retry goes on by itself.", "retried"
    ),
    "provider_unreachable": Code("no connection to SES could be made", "", "retried"),
    "provider_misconfigured": Code(
        "SES would not send for a setting of ours",
        "Mend the setting that notices check names; then the notices go out by themselves.",
        "retried",
    ),
    "sender_unset": Code(
        "neither NOTICE_FROM_ADDRESS nor MAIL_FROM_ADDRESS is set",
        "Deploy with NoticeFromAddress; then the notices go out by themselves.",
        "retried",
    ),
    "internal_error": Code(
        "something went wrong on our side", "See the log of TellRequesterFunction for this job.", "retried"
    ),
    "provider_unknown": Code(
        "the message went out and no answer came back, so SES may have it",
        "Leave it: SES's own events settle it, else it is sent again. A retry by hand may send it twice.",
        "retried",
    ),
    "reopened": Code("an operator re-opened it", "", "retried"),
    "gave_up": Code("it still failed when the retry horizon was reached", "Mend the cause.", "gave_up"),
    "job_removed": Code("the job was removed or is not there", "Nothing: nobody is told of such a job.", "closed"),
    "no_requester": Code("nobody asked for the job", "Nothing: there is nobody to tell.", "closed"),
    "undeclared": Code("nobody is told of this kind or outcome", "Nothing: the kind does not notify.", "closed"),
    "kind_mismatch": Code(
        "the event contradicted the job's kind", "Find out whether the event or the job is wrong.", "closed"
    ),
}

RETRIED = frozenset(code for code, about in CODES.items() if about.group == "retried")
"""A notice that failed with one of these has a next attempt, and so is in the `due` index."""


def code_of(error: str | None) -> str:
    """Return the stable code that an error begins with."""
    return (error or "").partition(":")[0].strip()


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
