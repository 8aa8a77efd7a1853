"""What is deployed where: the stages of samconfig.toml, and what the stack tells of itself."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from scripts.deploy import ASKED, INSTEAD_OF
from scripts.template import ROOT
from template.resolve import Stack

STAGES: dict[str, Any] = tomllib.loads((ROOT / "samconfig.toml").read_text())
STAGES.pop("version")
SENDER = {"NoticeFromAddress": "notices@example.com", "SesIdentity": "example.com"}
KEPT = ("AWS::DynamoDB::Table", "AWS::SQS::Queue")


def overrides(stage: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in STAGES[stage]["deploy"]["parameters"]["parameter_overrides"])


def test_there_are_staging_production_and_a_default_that_sends_nothing() -> None:
    assert list(STAGES) == ["default", "staging", "production"]
    assert {stage: overrides(stage)["Environment"] for stage in STAGES} == {
        "default": "development",
        "staging": "staging",
        "production": "production",
    }


def test_stages_in_one_account_share_neither_stack_nor_metrics() -> None:
    names = [STAGES[stage]["deploy"]["parameters"]["stack_name"] for stage in STAGES]
    assert len(set(names)) == len(names)
    assert [overrides(stage)["ServiceName"] for stage in STAGES] == names
    assert overrides("production")["ServiceName"] == Stack(**SENDER).parameters["ServiceName"]


def test_production_shows_its_changes_before_it_makes_them() -> None:
    assert STAGES["production"]["deploy"]["parameters"]["confirm_changeset"] is True


def test_stages_set_parameters_of_the_template_alone_and_none_that_is_asked() -> None:
    for stage in STAGES:
        assert set(overrides(stage)) <= set(Stack(**SENDER).parameters)
        assert not set(overrides(stage)) & set(ASKED)


def test_what_is_asked_is_every_parameter_without_a_default_and_more() -> None:
    declared = Stack(**SENDER).template["Parameters"]
    assert {name for name, parameter in declared.items() if "Default" not in parameter} <= set(ASKED)
    assert {*ASKED, *INSTEAD_OF.values()} <= set(declared)


@pytest.mark.parametrize("architecture", ["arm64", "x86_64"])
def test_functions_run_on_the_architecture_of_the_parameter_and_layers_serve_it(architecture: str) -> None:
    stack = Stack(**SENDER, Architecture=architecture)
    assert stack.template["Parameters"]["Architecture"]["Default"] == "arm64"
    assert stack.template["Globals"]["Function"]["Architectures"] == [{"Ref": "Architecture"}]
    for layer in stack.of_type("AWS::Serverless::LayerVersion").values():
        assert architecture in layer["CompatibleArchitectures"]


def test_tables_and_queues_are_left_alone_by_updates_rollbacks_and_deletion_whatever_the_parameters() -> None:
    """A bookmark is worth nothing once the scan is off: it is not kept."""
    resources = Stack(**SENDER).template["Resources"]
    kept = {name: each for name, each in resources.items() if each["Type"] in KEPT and name != "UntoldBookmarkTable"}
    assert len(kept) == 7
    for name, resource in kept.items():
        assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain"), name
        # A name of its own would keep a retained one in the way of the next deploy.
        assert not {"TableName", "QueueName"} & set(resource["Properties"]), name


def test_the_outputs_name_all_that_an_operator_works_with() -> None:
    outputs = Stack(**SENDER, AlarmEmail="oncall@example.com").outputs()
    assert outputs == {
        "AlarmTopicArn": "{AlarmTopic}",
        "DashboardName": "{Dashboard}",
        "Environment": "development",
        "FeedbackDeadLetterQueueUrl": "{FeedbackDeadLetterQueue}",
        "FeedbackQueueUrl": "{FeedbackQueue}",
        "FindUntoldFunctionName": "{FindUntoldFunction}",
        "JobSettledDeadLetterQueueUrl": "{JobSettledDeadLetterQueue}",
        "JobSettledQueueArn": "{JobSettledQueue.Arn}",
        "JobSettledQueueUrl": "{JobSettledQueue}",
        "JobsTableName": "{JobsTable}",
        "MailConfigurationSetName": "{MailConfigurationSet}",
        "NoticesTableName": "{NoticesTable}",
        "RecordFeedbackEventSourceId": "{RecordFeedbackFunctionMailEvent}",
        "RecordFeedbackFunctionName": "{RecordFeedbackFunction}",
        "RequestersTableName": "{RequestersTable}",
        "RetryDueNoticesFunctionName": "{RetryDueNoticesFunction}",
        "RetryScheduleRuleName": "{RetryDueNoticesFunctionEveryMinute}",
        "RunbookUrl": "docs/runbook.md",
        "SesIdentity": "example.com",
        "ServiceName": "requester-notices",
        "TellRequesterEventSourceId": "{TellRequesterFunctionJobSettled}",
        "TellRequesterFunctionName": "{TellRequesterFunction}",
        "UntoldScheduleRuleName": "{FindUntoldFunctionEveryHour}",
    }


def test_the_change_log_has_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    log = (ROOT / "CHANGELOG.md").read_text()
    assert "\n## [Unreleased]\n" in log
    assert f"\n## [{version}]" in log
