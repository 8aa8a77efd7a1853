"""Alarms: on what the code emits, with the remedy in hand."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scripts.template import ROOT
from template.emitted import CAPABILITY, counted, designed, emitted
from template.resolve import Stack

SENDER = {"NoticeFromAddress": "notices@example.com", "SesIdentity": "example.com"}
TOPIC = "arn:aws:sns:eu-west-1:123456789012:alarms"
FUNCTIONS = ["FindUntoldFunction", "RecordFeedbackFunction", "RetryDueNoticesFunction", "TellRequesterFunction"]
QUARTER_OF_AN_HOUR = 15 * 60

# What AWS publishes of its own, as its documentation names it.
OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "Throttles"},
    "AWS/SES": {"Reputation.BounceRate", "Reputation.ComplaintRate"},
}

ALARMS = Stack(**SENDER, UntoldCheck="scan", AlarmTopicArn=TOPIC).of_type("AWS::CloudWatch::Alarm")
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()


def on(namespace: str, metric: str) -> list[dict[str, Any]]:
    return [alarm for alarm in ALARMS.values() if (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric)]


def watched(namespace: str, metric: str, dimension: str) -> set[str]:
    return {
        each["Value"] for alarm in on(namespace, metric) for each in alarm["Dimensions"] if each["Name"] == dimension
    }


def test_the_code_emits_the_metrics_of_the_design_and_no_other() -> None:
    assert emitted() == designed()


@pytest.mark.parametrize(
    "source",
    [
        "self.telemetry.count(metric)",
        "self.telemetry.count(name='X')",
        "count = self.telemetry.count",
        "each(telemetry.count)",
        "EphemeralMetrics(namespace='RequesterNotices').flush_metrics()",
        "cloudwatch.put_metric_data(Namespace='RequesterNotices')",
    ],
)
def test_a_metric_cannot_be_emitted_past_the_one_who_reads_the_code(source: str) -> None:
    with pytest.raises(AssertionError):
        counted(source, "tell.py")


def test_metrics_are_read_however_their_telemetry_is_reached() -> None:
    source = "NAMES = {1: 'A', 2: 'B'}\nself._telemetry.count('C' if x else NAMES[x])\n'a'.count('D')"
    assert counted(source, "tell.py") == {"A", "B", "C"}


def test_no_alarm_watches_a_metric_that_nobody_emits() -> None:
    for name, alarm in ALARMS.items():
        known = emitted() if alarm["Namespace"] == "RequesterNotices" else OF_AWS[alarm["Namespace"]]
        assert alarm["MetricName"] in known, name


def test_every_metric_that_somebody_has_to_act_on_has_an_alarm() -> None:
    assert {alarm["MetricName"] for alarm in ALARMS.values() if alarm["Namespace"] == "RequesterNotices"} == {
        "MailMisconfigured",
        "NoticeFailedForGood",
        "NoticeGivenUp",
        "OldestUnsettledSeconds",
        "OutcomeNotRecorded",
        "SettledUntold",
        "TenantMismatch",
    }
    assert watched("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName") == {
        "{JobSettledDeadLetterQueue.QueueName}",
        "{FeedbackDeadLetterQueue.QueueName}",
    }
    assert watched("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName") == {
        "{JobSettledQueue.QueueName}",
        "{FeedbackQueue.QueueName}",
    }
    for metric in ("Errors", "Throttles"):
        assert watched("AWS/Lambda", metric, "FunctionName") == {f"{{{name}}}" for name in FUNCTIONS}


@pytest.mark.parametrize("name", ALARMS)
def test_metrics_of_ours_are_watched_by_service_alone(name: str) -> None:
    if ALARMS[name]["Namespace"] == "RequesterNotices":
        assert ALARMS[name]["Dimensions"] == [{"Name": "service", "Value": "requester-notices"}]


def test_a_second_stack_of_the_account_is_watched_and_reports_under_its_own_service() -> None:
    stack = Stack(**SENDER, ServiceName="requester-notices-staging")
    assert stack.environment("TellRequesterFunction")["POWERTOOLS_SERVICE_NAME"] == "requester-notices-staging"
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        if alarm["Namespace"] == "RequesterNotices":
            assert alarm["Dimensions"] == [{"Name": "service", "Value": "requester-notices-staging"}]


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_says_what_it_means_what_to_do_first_and_where_the_runbook_goes_on(name: str) -> None:
    description = ALARMS[name]["AlarmDescription"]
    meaning, first, rest = description.partition(" First: ")
    assert len(meaning) > 60, description
    assert first
    assert rest.endswith(f" Runbook: docs/runbook.md#{name.lower()}")
    assert len(description) <= 1024 - 255  # CloudWatch takes 1024, and a RunbookUrl may have 255


@pytest.mark.parametrize("name", ALARMS)
def test_the_runbook_has_an_entry_for_the_alarm(name: str) -> None:
    [entry] = re.findall(rf"^### {name}\n(.*?)(?=^##|\Z)", RUNBOOK, re.MULTILINE | re.DOTALL)
    for part in ("**Means**", "**First**", "**Then**", "**Ends**"):
        assert part in entry


def test_the_runbook_has_entries_for_alarms_that_there_are_alone() -> None:
    assert set(re.findall(r"^### (\w+Alarm)$", RUNBOOK, re.MULTILINE)) == set(ALARMS)


def test_a_runbook_kept_elsewhere_is_linked_there() -> None:
    stack = Stack(**SENDER, RunbookUrl="https://wiki.example.com/notices")
    description = stack.properties("TenantMismatchAlarm")["AlarmDescription"]
    assert description.endswith("https://wiki.example.com/notices#tenantmismatchalarm")


# ---- whom they notify ----------------------------------------------------------------------------------------


def test_alarms_notify_the_topic_that_is_given() -> None:
    for alarm in ALARMS.values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [TOPIC]
    stack = Stack(**SENDER, AlarmTopicArn=TOPIC)
    assert "AlarmTopic" not in stack.resources
    assert stack.outputs()["AlarmTopicArn"] == TOPIC


def test_an_address_makes_a_topic_that_alarms_notify() -> None:
    stack = Stack(**SENDER, AlarmEmail="oncall@example.com")
    assert stack.properties("AlarmTopic")["Subscription"] == [{"Protocol": "email", "Endpoint": "oncall@example.com"}]
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == ["{AlarmTopic}"]
    assert stack.outputs()["AlarmTopicArn"] == "{AlarmTopic}"


def test_without_either_alarms_notify_nobody() -> None:
    stack = Stack(**SENDER)
    assert "AlarmTopic" not in stack.resources
    assert "AlarmTopicArn" not in stack.outputs()
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == []


# ---- levels --------------------------------------------------------------------------------------------------


def test_silence_of_the_retry_is_an_alarm_of_its_own() -> None:
    stopped = ALARMS["RetryStoppedAlarm"]
    assert (stopped["Statistic"], stopped["ComparisonOperator"]) == ("SampleCount", "LessThanThreshold")
    assert stopped["Period"] * stopped["EvaluationPeriods"] <= QUARTER_OF_AN_HOUR
    for alarm in on("RequesterNotices", "OldestUnsettledSeconds"):
        assert alarm["TreatMissingData"] == "breaching"


def test_a_notice_that_is_due_ever_more_rarely_keeps_its_alarm() -> None:
    """It is seen once an attempt; the longest wait between two is the backoff's cap and a fifth (DESIGN 3.5)."""
    alarm = ALARMS["OldestUnsettledAlarm"]
    assert (alarm["Statistic"], alarm["EvaluationPeriods"]) == ("Maximum", 1)
    assert 4 * 60 * 60 * 1.2 < alarm["Period"] <= 24 * 60 * 60
    assert alarm["Threshold"] == 3600


def test_the_reputation_alarms_stand_at_the_levels_at_which_ses_puts_an_account_under_review() -> None:
    levels = {name: ALARMS[name]["Threshold"] for name in ("BounceRateAlarm", "ComplaintRateAlarm")}
    assert levels == {"BounceRateAlarm": 0.05, "ComplaintRateAlarm": 0.001}
    for name in levels:
        assert "Dimensions" not in ALARMS[name]  # SES acts on the account
        assert ALARMS[name]["TreatMissingData"] == "ignore"  # it publishes a rate when mail is sent


def test_feedback_is_late_once_an_unknown_send_would_go_out_again() -> None:
    stack = Stack(**SENDER, UnknownGraceSeconds="900")
    assert stack.properties("FeedbackAgeAlarm")["Threshold"] == "900"
    assert ALARMS["FeedbackAgeAlarm"]["Threshold"] == "600"


def test_the_settled_jobs_queue_is_late_after_more_than_two_visibility_time_outs() -> None:
    visibility = Stack(**SENDER).properties("JobSettledQueue")["VisibilityTimeout"]
    assert ALARMS["JobSettledAgeAlarm"]["Threshold"] > 2 * visibility


def test_every_count_of_ours_raises_its_alarm_at_the_first() -> None:
    for alarm in ALARMS.values():
        if alarm["Namespace"] == "RequesterNotices" and alarm["MetricName"] != "OldestUnsettledSeconds":
            assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (1, 1, "notBreaching")


@pytest.mark.parametrize(
    ("topic", "email", "accepted"),
    [(TOPIC, "", True), ("", "oncall@example.com", True), ("", "", True), (TOPIC, "oncall@example.com", False)],
)
def test_a_topic_and_an_address_together_are_refused(topic: str, email: str, accepted: bool) -> None:
    assert Stack(**SENDER, AlarmTopicArn=topic, AlarmEmail=email).accepted_by("AlarmsGoOneWay") is accepted


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_goes_off_upwards_on_the_sum_of_what_is_counted_and_on_the_worst_of_what_is_measured(
    name: str,
) -> None:
    alarm = ALARMS[name]
    if name == "RetryStoppedAlarm":
        return  # its silence is few samples: see its own test
    if alarm["Namespace"] == "AWS/SES":
        statistic = "Average"  # a rate
    elif alarm["Namespace"] == "AWS/SQS" or alarm["MetricName"] in ("OldestUnsettledSeconds", "SettledUntold"):
        statistic = "Maximum"  # an age, a depth, or what one run found
    else:
        statistic = "Sum"
    assert (alarm["Statistic"], alarm["ComparisonOperator"]) == (statistic, "GreaterThanOrEqualToThreshold")
    assert float(alarm["Threshold"]) > 0


@pytest.mark.parametrize("name", [name for name, alarm in ALARMS.items() if alarm["Namespace"] == "AWS/Lambda"])
def test_a_function_is_forgiven_one_failure_but_where_it_runs_once_an_hour(name: str) -> None:
    alarm = ALARMS[name]
    datapoints = alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])
    assert datapoints == (1 if name.startswith("FindUntold") else 2)
    assert datapoints <= alarm["EvaluationPeriods"]
    assert alarm["Period"] * alarm["EvaluationPeriods"] == (3600 if datapoints == 1 else QUARTER_OF_AN_HOUR)


@pytest.mark.parametrize("name", ALARMS)
def test_what_a_description_names_is_there(name: str) -> None:
    description = ALARMS[name]["AlarmDescription"]
    resources = set(Stack(**SENDER, UntoldCheck="scan").resources)
    assert set(re.findall(r"\b[A-Z]\w+(?:Function|Queue|Alarm|Table)\b", description)) <= resources
    sources = [path.read_text() for path in CAPABILITY.rglob("*.py")]
    for line in re.findall(r'"([a-z][a-z ]+)"', description):
        assert any(f'"{line}"' in source for source in sources), line
