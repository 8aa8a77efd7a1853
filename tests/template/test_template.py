"""What the template promises, read as CloudFormation would read it. Cases DL-01, DL-02, DL-03, RE-06."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest

from notices import database, mail, queues
from scripts.template import ROOT
from template.resolve import Stack, as_list, matches

EVENTS = ROOT / "tests" / "data" / "events"
SENDER = {"NoticeFromAddress": "notices@example.com", "SesIdentity": "example.com"}
FUNCTIONS = ["FindUntoldFunction", "RecordFeedbackFunction", "RetryDueNoticesFunction", "TellRequesterFunction"]
QUEUES = ["FeedbackDeadLetterQueue", "FeedbackQueue", "JobSettledDeadLetterQueue", "JobSettledQueue"]
DAY = 24 * 60 * 60
ABANDONED_SECONDS = 15 * 60  # after which the retry takes up a claim (DESIGN 3.3)

# DESIGN 3.7, in order, and the SDK's own: declared, since `sam local` overrides declared variables alone.
VARIABLES = [
    "AWS_ENDPOINT_URL",
    "CLAIM_LEASE_SECONDS",
    "CUSTOMER_BASE_URL",
    "ENVIRONMENT",
    "HQ_BASE_URL",
    "JOBS_TABLE",
    "JOB_SETTLED_DEAD_LETTER_QUEUE_URL",
    "JOB_SETTLED_QUEUE_URL",
    "MAIL_CONFIGURATION_SET",
    "MAIL_FROM_ADDRESS",
    "NOTICES_TABLE",
    "NOTICE_FROM_ADDRESS",
    "NOTICE_RETENTION_DAYS",
    "POWERTOOLS_SERVICE_NAME",
    "REQUESTERS_TABLE",
    "RETRY_HORIZON_HOURS",
    "UNKNOWN_GRACE_SECONDS",
]
PACE_VARIABLES = ["MAXIMUM_CONCURRENCY", "SES_SEND_RATE"]
UNTOLD_VARIABLES = ["SETTLED_JOBS_INDEX", "UNTOLD_BOOKMARK_TABLE", "UNTOLD_CHECK"]


@pytest.fixture
def stack() -> Stack:
    return Stack(**SENDER)


def test_logical_ids_are_those_of_the_design(stack: Stack) -> None:
    assert sorted(stack.of_type("AWS::SQS::Queue")) == QUEUES
    assert sorted(stack.of_type("AWS::Serverless::Function")) == FUNCTIONS
    assert sorted(stack.of_type("AWS::DynamoDB::Table")) == ["JobsTable", "NoticesTable", "RequestersTable"]
    assert list(stack.of_type("AWS::SES::ConfigurationSet")) == ["MailConfigurationSet"]


# ---- environment ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
def test_environment_variables_are_those_of_the_design_in_order(stack: Stack, function: str) -> None:
    shared = stack.template["Globals"]["Function"]["Environment"]["Variables"]
    assert list(shared) == VARIABLES
    assert shared["AWS_ENDPOINT_URL"] == ""  # as if it were not there
    own = [name for name in stack.environment(function) if name not in VARIABLES]
    assert own == {"FindUntoldFunction": UNTOLD_VARIABLES, "TellRequesterFunction": PACE_VARIABLES}.get(function, [])


def test_every_variable_that_the_code_reads_is_declared_and_the_other_way_round() -> None:
    """SCREAMING_CASE words in the code that reads the environment, less Lambda's own."""
    read = set()
    for path in (ROOT / "layers/notices/notices/settings.py", ROOT / "layers/notices/notices/wiring.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                read |= {node.value} if re.fullmatch(r"[A-Z]+(_[A-Z]+)*", node.value) else set()
    assert read - {"AWS_REGION", "AWS_DEFAULT_REGION"} == {*VARIABLES, *UNTOLD_VARIABLES, *PACE_VARIABLES} - {
        "AWS_ENDPOINT_URL"
    }


def test_tables_of_the_platform_are_named_or_made() -> None:
    made = Stack(**SENDER)
    assert made.environment("TellRequesterFunction")["JOBS_TABLE"] == "{JobsTable}"
    named = Stack(**SENDER, JobsTableName="jobs", RequestersTableName="requesters")
    assert "JobsTable" not in named.resources
    assert "RequestersTable" not in named.resources
    environment = named.environment("TellRequesterFunction")
    assert (environment["JOBS_TABLE"], environment["REQUESTERS_TABLE"]) == ("jobs", "requesters")
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/"
    allowed = named.allowed("TellRequesterFunction")
    assert {resource for action, resource in allowed if action == "dynamodb:GetItem"} == {
        f"{arn}jobs",
        f"{arn}requesters",
        "{NoticesTable.Arn}",
    }


# ---- DL-01: what each function may do ------------------------------------------------------------------------


def test_mail_may_be_sent_from_the_identity_through_the_configuration_set(stack: Stack) -> None:
    [send] = [s for s in stack.statements("TellRequesterFunction") if "ses:SendEmail" in s["Action"]]
    assert send["Action"] == ["ses:SendEmail"]
    assert send["Resource"] == [
        "arn:aws:ses:eu-west-1:123456789012:identity/example.com",
        "arn:aws:ses:eu-west-1:123456789012:configuration-set/{MailConfigurationSet}",
    ]
    assert stack.environment("TellRequesterFunction")["MAIL_CONFIGURATION_SET"] == "{MailConfigurationSet}"


@pytest.mark.parametrize(
    ("notice_from", "mail_from", "addresses"),
    [
        ("notices@example.com", "", ["notices@example.com"]),
        ("Example Platform <notices@example.com>", "", ["notices@example.com"]),
        ('"Example, Inc." <notices@example.com>', "mail@example.com", ["notices@example.com", "mail@example.com"]),
        ("<notices@example.com>", "", ["notices@example.com"]),
        ("", "Example > Mail <mail@example.com>", None),
        ("", "Example <mail@example.com>", ["mail@example.com"]),
    ],
)
def test_mail_may_be_sent_from_the_bare_addresses(
    notice_from: str, mail_from: str, addresses: list[str] | None
) -> None:
    stack = Stack(NoticeFromAddress=notice_from, MailFromAddress=mail_from, SesIdentity="example.com")
    if addresses is None:
        assert not accepts(stack, "MailFromAddress", mail_from)
        return
    assert accepts(stack, "NoticeFromAddress", notice_from)
    assert accepts(stack, "MailFromAddress", mail_from)
    [send] = [s for s in stack.statements("TellRequesterFunction") if "ses:SendEmail" in s["Action"]]
    assert send["Condition"] == {"StringEquals": {"ses:FromAddress": addresses}}


def test_without_a_from_address_nothing_may_be_sent() -> None:
    stack = Stack(SesIdentity="example.com")
    assert not {action for action, _ in stack.allowed("TellRequesterFunction") if action.startswith("ses:")}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_the_teller_may_send_mail_and_nobody_may_write_to_the_platform(function: str) -> None:
    for check in ("off", "index", "scan"):
        stack = Stack(**SENDER, UntoldCheck=check, SettledJobsIndexName="settled")
        for action, resource in stack.allowed(function):
            assert action.startswith("ses:") <= (function == "TellRequesterFunction")
            if "JobsTable" in resource or "RequestersTable" in resource:
                assert action in {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_allowed_by_a_wildcard(function: str) -> None:
    stack = Stack(**SENDER, UntoldCheck="scan", PlatformKeyArn="arn:aws:kms:eu-west-1:123456789012:key/k")
    for statement in stack.statements(function):
        assert statement["Effect"] == "Allow"
        for word in [*statement["Action"], *statement["Resource"]]:
            assert "*" not in word


def test_the_untold_check_may_read_jobs_only_where_it_is_on() -> None:
    """What each function may do beyond this is held against what it asks in test_policies_and_calls.py."""
    assert own(Stack(**SENDER), "FindUntoldFunction") == {("dynamodb:BatchGetItem", "{NoticesTable.Arn}")}


def test_a_key_of_the_platform_may_be_used_through_dynamodb_alone() -> None:
    key = "arn:aws:kms:eu-west-1:123456789012:key/k"
    stack = Stack(**SENDER, PlatformKeyArn=key)
    for function in FUNCTIONS:
        decrypt = [s for s in stack.statements(function) if "kms:Decrypt" in s["Action"]]
        assert len(decrypt) == (function in ("TellRequesterFunction", "FindUntoldFunction"))
        for statement in decrypt:
            assert statement["Resource"] == [key]
            assert statement["Condition"] == {"StringEquals": {"kms:ViaService": "dynamodb.eu-west-1.amazonaws.com"}}


# ---- DL-02, DL-03: queues and time-outs ----------------------------------------------------------------------


def test_every_sqs_event_reports_partial_failures(stack: Stack) -> None:
    events = sqs_events(stack)
    assert {queue for queue, _, _ in events} == {"JobSettledQueue", "FeedbackQueue"}
    for _, _, event in events:
        assert event["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert event["BatchSize"] == 10
        assert int(event["ScalingConfig"]["MaximumConcurrency"]) >= 2


def test_visibility_outlasts_six_invocations_and_the_batching_window(stack: Stack) -> None:
    for queue, function, event in sqs_events(stack):
        window = event.get("MaximumBatchingWindowInSeconds", 0)
        assert stack.properties(queue)["VisibilityTimeout"] >= 6 * stack.properties(function)["Timeout"] + window


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_client_outlasts_its_function(stack: Stack, function: str) -> None:
    timeout = stack.properties(function)["Timeout"]
    assert timeout > database.CALL_SECONDS + queues.CALL_SECONDS
    assert timeout > mail.CONNECT_SECONDS + mail.READ_SECONDS
    assert timeout <= ABANDONED_SECONDS / 2


def test_a_lease_is_off_or_outlasts_the_teller(stack: Stack) -> None:
    timeout = stack.properties("TellRequesterFunction")["Timeout"]
    taken = {seconds for seconds in range(1200) if accepts(stack, "ClaimLeaseSeconds", str(seconds))}
    assert taken == {0, *range(timeout + 1, 901)}


def test_notices_outlast_their_messages(stack: Stack) -> None:
    retention = sum(
        stack.properties(queue)["MessageRetentionPeriod"] for queue in ("JobSettledQueue", "JobSettledDeadLetterQueue")
    )
    declared = stack.template["Parameters"]["NoticeRetentionDays"]
    accepted = [days for days in range(4000) if re.search(declared["AllowedPattern"], str(days))]
    assert accepted == list(range(29, 3651))
    assert min(accepted) * DAY > retention
    assert declared["Default"] == "90"


@pytest.mark.parametrize(
    ("queue", "dead_letters"),
    [("JobSettledQueue", "JobSettledDeadLetterQueue"), ("FeedbackQueue", "FeedbackDeadLetterQueue")],
)
def test_queues_redrive_after_ten_receives_and_their_dead_letters_keep_longer(
    stack: Stack, queue: str, dead_letters: str
) -> None:
    assert stack.properties(queue)["RedrivePolicy"] == {
        "deadLetterTargetArn": f"{{{dead_letters}.Arn}}",
        "maxReceiveCount": 10,
    }
    # SQS counts from the first send, so the same time on both would leave a late dead letter none
    assert stack.properties(queue)["MessageRetentionPeriod"] == 10 * DAY
    assert stack.properties(dead_letters)["MessageRetentionPeriod"] == 14 * DAY
    assert "RedrivePolicy" not in stack.properties(dead_letters)


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_are_encrypted_so_that_eventbridge_may_write(stack: Stack, queue: str) -> None:
    assert stack.properties(queue)["SqsManagedSseEnabled"] is True
    assert "KmsMasterKeyId" not in stack.properties(queue)


# ---- tables --------------------------------------------------------------------------------------------------


def test_tables_are_on_demand_encrypted_and_recoverable() -> None:
    for table in Stack(**SENDER, UntoldCheck="scan").of_type("AWS::DynamoDB::Table").values():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["SSESpecification"] == {"SSEEnabled": True}
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_tables_and_queues_survive_the_stack(stack: Stack) -> None:
    for resource in stack.resources.values():
        if resource["Type"] in ("AWS::DynamoDB::Table", "AWS::SQS::Queue"):
            assert resource["DeletionPolicy"] == "Retain"
            assert resource["UpdateReplacePolicy"] == "Retain"


def test_notices_expire_and_are_found_when_due(stack: Stack) -> None:
    table = stack.properties("NoticesTable")
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert keys(table) == {"HASH": "job_id", "RANGE": "outcome"}
    [index] = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "due"
    assert keys(index) == {"HASH": "status", "RANGE": "next_attempt_at"}
    assert index["Projection"] == {
        "ProjectionType": "INCLUDE",
        "NonKeyAttributes": ["created_at", "revision"],
    }


# ---- mail and its events -------------------------------------------------------------------------------------


def test_the_configuration_set_publishes_what_happens_to_mail_and_never_tracks(stack: Stack) -> None:
    """RE-06: tracking would rewrite links and put them in event logs."""
    [destination] = stack.of_type("AWS::SES::ConfigurationSetEventDestination").values()
    assert destination["ConfigurationSetName"] == "{MailConfigurationSet}"
    assert destination["EventDestination"]["Enabled"] is True
    assert set(destination["EventDestination"]["MatchingEventTypes"]) == {
        "SEND",
        "DELIVERY",
        "DELIVERY_DELAY",
        "BOUNCE",
        "COMPLAINT",
        "REJECT",
        "RENDERING_FAILURE",
    }
    assert destination["EventDestination"]["EventBridgeDestination"] == {
        "EventBusArn": "arn:aws:events:eu-west-1:123456789012:event-bus/default"
    }
    assert "TrackingOptions" not in stack.properties("MailConfigurationSet")


def test_the_rule_passes_every_ses_event_of_this_stack_and_none_of_another(stack: Stack) -> None:
    rule = stack.properties("MailEventsRule")
    assert [target["Arn"] for target in rule["Targets"]] == ["{FeedbackQueue.Arn}"]
    assert rule.get("EventBusName", "default") == "default"
    samples = sorted((EVENTS / "ses-eventbridge").glob("*.json"))
    assert len(samples) >= 11
    for sample in samples:
        for record in json.loads(sample.read_text())["Records"]:
            event = json.loads(record["body"])
            name = event["detail"]["mail"].get("tags", {}).get("ses:configuration-set")
            assert matches(rule["EventPattern"], with_set(event, "{MailConfigurationSet}")), sample.name
            assert not matches(rule["EventPattern"], with_set(event, "another")), sample.name
            assert name in (None, ["requester-notices"])
            other_source = {**with_set(event, "{MailConfigurationSet}"), "source": "example"}
            assert not matches(rule["EventPattern"], other_source), sample.name


def test_the_feedback_queue_takes_messages_from_that_rule_alone(stack: Stack) -> None:
    [statement] = policy_of(stack, "FeedbackQueue")
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert statement["Action"] == "sqs:SendMessage"
    assert statement["Resource"] == "{FeedbackQueue.Arn}"
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": "{MailEventsRule.Arn}"}}


def test_job_events_come_from_a_bus_where_one_is_named(stack: Stack) -> None:
    assert policy_of(stack, "JobSettledQueue") == []
    assert "JobSettledRule" not in stack.resources
    with_bus = Stack(**SENDER, JobEventBusName="platform")
    rule = with_bus.properties("JobSettledRule")
    assert rule["EventBusName"] == "platform"
    assert [target["Arn"] for target in rule["Targets"]] == ["{JobSettledQueue.Arn}"]
    [statement] = policy_of(with_bus, "JobSettledQueue")
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": "{JobSettledRule.Arn}"}}
    for record in json.loads((EVENTS / "job-settled" / "sqs-eventbridge.json").read_text())["Records"]:
        assert matches(rule["EventPattern"], json.loads(record["body"]))


# ---- schedules, logs, parameters ------ ---------------------------------------------------------------------


def test_the_retry_runs_every_minute_and_ends_within_it(stack: Stack) -> None:
    [event] = stack.properties("RetryDueNoticesFunction")["Events"].values()
    assert (event["Type"], event["Properties"]["Schedule"]) == ("Schedule", "rate(1 minute)")
    assert "State" not in event["Properties"]
    assert stack.properties("RetryDueNoticesFunction")["Timeout"] < 60


@pytest.mark.parametrize(
    ("check", "index", "state"),
    [("off", "", "DISABLED"), ("index", "", "DISABLED"), ("index", "settled", "ENABLED"), ("scan", "", "ENABLED")],
)
def test_the_untold_check_runs_only_where_it_is_configured(check: str, index: str, state: str) -> None:
    stack = Stack(**SENDER, UntoldCheck=check, SettledJobsIndexName=index)
    [event] = stack.properties("FindUntoldFunction")["Events"].values()
    assert event["Properties"]["State"] == state
    assert ("SettledUntoldAlarm" in stack.resources) == (state == "ENABLED")
    environment = stack.environment("FindUntoldFunction")
    assert environment["UNTOLD_BOOKMARK_TABLE"] == ("{UntoldBookmarkTable}" if check == "scan" else "")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_logs_to_a_group_that_forgets(stack: Stack, function: str) -> None:
    group = stack.properties(function)["LoggingConfig"]["LogGroup"].strip("{}")
    assert stack.properties(group)["RetentionInDays"] == "30"
    assert ("logs:PutLogEvents", f"{{{group}.Arn}}") in stack.allowed(function)


def test_parameters_are_described_checked_and_all_but_one_have_a_default(stack: Stack) -> None:
    declared = stack.template["Parameters"]
    for name, parameter in declared.items():
        assert parameter["Description"].endswith((".", "seconds.")), name
        assert {"AllowedPattern", "AllowedValues", "MinValue"} & set(parameter), name
        if "Default" in parameter:
            assert accepts(stack, name, str(parameter["Default"])), name
    assert [name for name, parameter in declared.items() if "Default" not in parameter] == ["SesIdentity"]
    assert declared["Environment"]["AllowedValues"] == ["development", "staging", "production"]
    assert declared["Environment"]["Default"] == "development"
    grouped = stack.template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert sorted(name for group in grouped for name in group["Parameters"]) == sorted(declared)


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        ("SesIdentity", ["example.com", "notices@example.com"], ["", "example", "a b.com", "x <a@example.com>"]),
        ("HqBaseUrl", ["", "https://hq.example.com", "https://x.example.com/a"], ["hq.example.com", "https://x?y"]),
        ("JobEventBusName", ["", "default", "platform/jobs"], ["a b"]),
        ("NoticeFromAddress", [""], ["nobody", "a@b@c", "a@b, c@d", "A <a@b> <c@d>", "A\r\nBcc: x <a@b>"]),
    ],
)
def test_parameters_take_what_is_right(parameter: str, good: list[str], bad: list[str]) -> None:
    stack = Stack(**SENDER)
    assert [value for value in good if not accepts(stack, parameter, value)] == []
    assert [value for value in bad if accepts(stack, parameter, value)] == []


# ---- helpers -------------------------------------------------------------------------------------------------


def accepts(stack: Stack, parameter: str, value: str) -> bool:
    declared = stack.template["Parameters"][parameter]
    if "AllowedValues" in declared and value not in map(str, declared["AllowedValues"]):
        return False
    if declared["Type"] == "Number":
        return bool(declared.get("MinValue", 0) <= float(value) <= declared.get("MaxValue", float(value)))
    if not declared.get("MinLength", 0) <= len(value) <= declared.get("MaxLength", 4096):
        return False
    return re.fullmatch(declared.get("AllowedPattern", ".*"), value) is not None


def own(stack: Stack, function: str) -> set[tuple[str, str]]:
    """What the function may do apart from what Lambda does in its name: log, and receive."""
    group = stack.properties(function)["LoggingConfig"]["LogGroup"].strip("{}")
    lambdas = {(f"logs:{action}", f"{{{group}.Arn}}") for action in ("CreateLogStream", "PutLogEvents")}
    for queue, receiver, _ in sqs_events(stack):
        if receiver == function:
            actions = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
            lambdas |= {(f"sqs:{action}", f"{{{queue}.Arn}}") for action in actions}
    allowed = stack.allowed(function)
    assert lambdas <= allowed
    return allowed - lambdas


def sqs_events(stack: Stack) -> list[tuple[str, str, dict[str, Any]]]:
    """Queue, function and properties of every event source that is a queue."""
    return [
        (event["Properties"]["Queue"].strip("{}").removesuffix(".Arn"), name, event["Properties"])
        for name, function in stack.of_type("AWS::Serverless::Function").items()
        for event in function["Events"].values()
        if event["Type"] == "SQS"
    ]


def policy_of(stack: Stack, queue: str) -> list[dict[str, Any]]:
    return [
        statement
        for policy in stack.of_type("AWS::SQS::QueuePolicy").values()
        if f"{{{queue}}}" in policy["Queues"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def keys(table: dict[str, Any]) -> dict[str, str]:
    return {key["KeyType"]: key["AttributeName"] for key in table["KeySchema"]}


def with_set(event: dict[str, Any], name: str) -> dict[str, Any]:
    """The event as SES publishes it for the configuration set ``name``."""
    message = event["detail"]["mail"]
    tags = {**message.get("tags", {}), "ses:configuration-set": as_list(name)}
    return {**event, "detail": {**event["detail"], "mail": {**message, "tags": tags}}}
