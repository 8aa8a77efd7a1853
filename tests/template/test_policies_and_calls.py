"""Each function may do what it was seen to do, and no more."""

from __future__ import annotations

import pytest

from integration.calls import INDEX, observed
from template.resolve import Stack

FUNCTIONS = {
    "tell_requester": "TellRequesterFunction",
    "retry_due_notices": "RetryDueNoticesFunction",
    "record_feedback": "RecordFeedbackFunction",
    "find_untold": "FindUntoldFunction",
}
IDENTITY = "arn:aws:ses:eu-west-1:123456789012:identity/example.com"
POLLER = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}  # Lambda's own, under the same role
CONFIGURATION_SET = "arn:aws:ses:eu-west-1:123456789012:configuration-set/{MailConfigurationSet}"


def stack(check: str) -> Stack:
    return Stack(
        NoticeFromAddress="notices@example.com",
        SesIdentity="example.com",
        UntoldCheck=check,
        SettledJobsIndexName=INDEX,
    )


def arn(resource: str) -> str:
    name, _, index = resource.partition("/")
    named = {"SesIdentity": IDENTITY, "MailConfigurationSet": CONFIGURATION_SET}
    return named.get(name, f"{{{name}.Arn}}") + (f"/{index}" if index else "")


@pytest.mark.parametrize("folder", FUNCTIONS)
def test_the_policies_of_a_function_are_what_it_was_seen_to_ask_of_aws(folder: str) -> None:
    granted = {
        (action, resource)
        for check in ("index", "scan")
        for action, resource in stack(check).allowed(FUNCTIONS[folder])
        if not action.startswith("logs:") and action not in POLLER
    }
    asked = {(use.action, arn(use.resource)) for use in observed()[folder]}
    assert granted == asked
