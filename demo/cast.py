"""The demo's cast: jobs, the people who asked for them, and what should become of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KIND = "workspace_provisioning"


@dataclass(frozen=True)
class Expected:
    """What a row must end as. `why` is how its reason or error begins."""

    result: str
    why: str = ""
    attempts: int | None = None
    mails: int = 0
    feedback: str | None = None


@dataclass(frozen=True)
class Row:
    """One job and what it shows."""

    job_id: str
    shows: str
    expected: Expected
    outcome: str = "succeeded"
    requester_id: str | None = "dana"
    kind: str = KIND
    details: Mapping[str, str] = field(default_factory=dict)
    job: Mapping[str, Any] = field(default_factory=dict)  # what else the jobs table says of it
    stored: bool = True  # whether the jobs table has it
    announced: bool = True  # whether the platform sends its event


def delivered(attempts: int = 1, feedback: str | None = None) -> Expected:
    """A notice that SES accepted, in one mail."""
    return Expected("delivered", attempts=attempts, mails=1, feedback=feedback)


REQUESTERS: list[dict[str, str]] = [
    {"requester_id": "dana", "tenant_id": "acme", "email": "dana@example.com", "name": "Dana", "audience": "customer"},
    {"requester_id": "sam", "tenant_id": "platform", "email": "sam@example.com", "name": "Sam", "audience": "staff"},
    {"requester_id": "nora", "tenant_id": "acme", "name": "Nora", "audience": "customer"},
    {"requester_id": "otto", "tenant_id": "umbrella", "email": "otto@example.com", "audience": "customer"},
    {"requester_id": "lena", "tenant_id": "acme", "email": "lena@example.com", "name": "Lena", "audience": "customer"},
    {
        "requester_id": "paul",
        "tenant_id": "acme",
        "email": "paul@example.com",
        "name": "Paul",
        "audience": "customer",
        "locale": "de-AT",
        "time_zone": "Europe/Vienna",
    },
    {"requester_id": "bert", "tenant_id": "acme", "email": "bert@example.com", "name": "Bert", "audience": "customer"},
]

LOST_ANSWER = "lena@example.com"
WHILE_PAUSED = "paul@example.com"

CUSTOMER = Row(
    "job-1001",
    "a customer is told",
    delivered(),
    details={"workspace_id": "ws-1001", "workspace_name": "Research"},
)
STAFF = Row(
    "job-1002",
    "so is a colleague, with a link of theirs",
    delivered(),
    requester_id="sam",
    details={"workspace_id": "ws-1002", "workspace_name": "Sandbox"},
)
AGAIN = Row(
    "job-1003",
    "its event comes twice: one mail",
    delivered(),
    details={"workspace_id": "ws-1003", "workspace_name": "Billing"},
)
FAILED_JOB = Row(
    "job-1004",
    "the job failed: that is told too",
    delivered(),
    outcome="failed",
    details={
        "workspace_id": "ws-1004",
        "workspace_name": "Analytics",
        "failure_reason": "The region has no free capacity at the moment.",
    },
)
UNVERIFIED = Row(
    "job-1005",
    "the sender was not verified yet; then it was",
    delivered(attempts=2),
    details={"workspace_id": "ws-1005", "workspace_name": "Onboarding"},
)
ANSWER_LOST = Row(
    "job-1006",
    "SES's answer was lost; its own event settles it",
    delivered(feedback="send"),
    requester_id="lena",
    details={"workspace_id": "ws-1006", "workspace_name": "Archive"},
)
PAUSED = Row(
    "job-1007",
    "sending was paused; the retry delivers it",
    delivered(attempts=2),
    requester_id="paul",
    details={"workspace_id": "ws-1007", "workspace_name": "Design"},
)
BOUNCED = Row(
    "job-1008",
    "accepted, then it bounced",
    delivered(feedback="permanent_bounce"),
    requester_id="bert",
    details={"workspace_id": "ws-1008", "workspace_name": "Field office"},
)
UNANNOUNCED = Row(
    "job-1016",
    "settled, but its event never came: found",
    Expected("untold", "without a notice"),
    announced=False,
    details={"workspace_id": "ws-1016", "workspace_name": "Lab"},
)
MALFORMED = Row(
    "(unreadable)",
    "an event that was cut off is put aside",
    Expected("parked", "not_json"),
    outcome="",
    stored=False,
    announced=False,
)

ROWS = [
    CUSTOMER,
    STAFF,
    AGAIN,
    FAILED_JOB,
    UNVERIFIED,
    ANSWER_LOST,
    PAUSED,
    BOUNCED,
    Row("job-1009", "nobody is told of exports", Expected("skipped", "undeclared"), kind="no_such_kind"),
    Row("job-1010", "nor of this outcome", Expected("skipped", "undeclared"), outcome="cancelled"),
    Row(
        "job-1011",
        "the job was removed",
        Expected("skipped", "job_removed"),
        job={"removed_at": "2026-03-01T09:00:00Z"},
    ),
    Row("job-1012", "there is no such job", Expected("skipped", "job_removed"), stored=False),
    Row("job-1013", "nobody asked for it", Expected("skipped", "no_requester"), requester_id=None),
    Row(
        "job-1014",
        "its requester has no address",
        Expected("failed", "address_missing", attempts=1),
        requester_id="nora",
    ),
    Row(
        "job-1015",
        "its requester is of another tenant",
        Expected("failed", "tenant_mismatch", attempts=1),
        requester_id="otto",
    ),
    UNANNOUNCED,
    MALFORMED,
]


def suppressed(expected: Expected) -> Expected:
    """What the same row ends as outside production: nobody gets mail."""
    if expected.result != "delivered":
        return expected
    return Expected("suppressed", attempts=1)
