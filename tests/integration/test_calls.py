import pytest

from integration.calls import INDEX, Use, observed

EXPECTED = {
    "tell_requester": {
        Use("dynamodb:BatchGetItem", "JobsTable"),
        Use("dynamodb:BatchGetItem", "RequestersTable"),
        Use("dynamodb:BatchGetItem", "NoticesTable"),
        Use("dynamodb:GetItem", "JobsTable"),
        Use("dynamodb:GetItem", "RequestersTable"),
        Use("dynamodb:GetItem", "NoticesTable"),
        Use("dynamodb:PutItem", "NoticesTable"),
        Use("dynamodb:UpdateItem", "NoticesTable"),
        Use("ses:SendEmail", "SesIdentity"),
        Use("ses:SendEmail", "MailConfigurationSet"),
        Use("sqs:SendMessage", "JobSettledDeadLetterQueue"),
    },
    "retry_due_notices": {
        Use("dynamodb:Query", "NoticesTable/index/due"),
        Use("dynamodb:GetItem", "NoticesTable"),
        Use("dynamodb:UpdateItem", "NoticesTable"),
        Use("sqs:SendMessage", "JobSettledQueue"),
    },
    "record_feedback": {
        Use("dynamodb:GetItem", "NoticesTable"),
        Use("dynamodb:UpdateItem", "NoticesTable"),
    },
    "find_untold": {
        Use("dynamodb:Query", f"JobsTable/index/{INDEX}"),
        Use("dynamodb:Scan", "JobsTable"),
        Use("dynamodb:BatchGetItem", "NoticesTable"),
        Use("dynamodb:GetItem", "UntoldBookmarkTable"),
        Use("dynamodb:PutItem", "UntoldBookmarkTable"),
    },
}


@pytest.mark.parametrize("function", EXPECTED)
def test_a_function_asks_of_aws_what_it_is_known_to_ask(function: str) -> None:
    assert observed()[function] == EXPECTED[function]


def test_only_tell_requester_sends_mail() -> None:
    senders = {name for name, uses in observed().items() if any(use.action == "ses:SendEmail" for use in uses)}
    assert senders == {"tell_requester"}


def test_the_platforms_tables_are_only_read() -> None:
    written = {
        use
        for uses in observed().values()
        for use in uses
        if use.resource.startswith(("JobsTable", "RequestersTable"))
        and use.action.partition(":")[2] not in ("GetItem", "BatchGetItem", "Query", "Scan")
    }
    assert written == set()
