"""The exceptions to the scanner's rules are few, named, and as their reasons say. `make scan` brings the scanner."""

from __future__ import annotations

import copy
from fnmatch import fnmatchcase

import pytest

from scripts.scan import CHECKOV, Allowed, Finding, exceptions, problems, read_findings, scan
from scripts.template import load

TEMPLATE = load()
RESOURCES = TEMPLATE["Resources"]
EXCEPTIONS = exceptions()


def of_type(kind: str) -> dict[str, dict]:
    return {name: resource["Properties"] for name, resource in RESOURCES.items() if resource["Type"] == kind}


@pytest.mark.skipif(not CHECKOV.is_file(), reason="make scan brings the scanner")
def test_every_finding_of_the_scanner_is_an_exception_and_every_exception_is_needed():
    assert list(problems(scan(), EXCEPTIONS)) == []


@pytest.mark.parametrize("exception", EXCEPTIONS, ids=[each.check for each in EXCEPTIONS])
def test_an_exception_has_a_reason_and_a_resource_that_exists(exception):
    assert len(exception.reason) > 60
    names = [f"{resource['Type']}.{name}" for name, resource in RESOURCES.items()]
    for pattern in exception.resources:
        assert not pattern.startswith("*"), "of one type of resource at most"
        assert any(fnmatchcase(name, pattern) for name in names), pattern


def test_every_rule_has_one_exception_at_most():
    assert len({each.check for each in EXCEPTIONS}) == len(EXCEPTIONS)


def test_every_queue_is_encrypted_and_has_a_dead_letter_queue_or_is_one():
    for name, queue in of_type("AWS::SQS::Queue").items():
        assert queue["SqsManagedSseEnabled"] is True, name
        assert "RedrivePolicy" in queue or name.endswith("DeadLetterQueue")


def test_every_table_is_encrypted_under_kms_and_can_be_restored():
    for name, table in of_type("AWS::DynamoDB::Table").items():
        assert table["SSESpecification"]["SSEEnabled"] is True, name
        assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True, name


def test_every_function_is_of_a_bounded_queue_or_of_a_schedule():
    for name, function in of_type("AWS::Serverless::Function").items():
        for event in function["Events"].values():
            if event["Type"] == "SQS":
                assert event["Properties"]["ScalingConfig"]["MaximumConcurrency"], name
            else:
                assert event["Type"] == "Schedule", name
                assert function["EventInvokeConfig"]["MaximumRetryAttempts"] == 0, name


def test_no_function_is_in_a_vpc_or_has_a_secret_in_its_environment():
    for function in [TEMPLATE["Globals"]["Function"], *of_type("AWS::Serverless::Function").values()]:
        assert "VpcConfig" not in function
        for name in function.get("Environment", {}).get("Variables", {}):
            assert not any(word in name for word in ("SECRET", "PASSWORD", "TOKEN", "PRIVATE", "API_KEY")), name


def test_every_log_group_forgets():
    for name, group in of_type("AWS::Logs::LogGroup").items():
        assert "RetentionInDays" in group, name


# --- The judge -------------------------------------------------------------------------------------

QUEUE = Finding("CKV_AWS_27", "AWS::SQS::Queue.JobSettledQueue", "is encrypted")


def test_a_finding_without_an_exception_is_a_problem():
    (problem,) = problems([QUEUE], [])
    assert problem.startswith("CKV_AWS_27 AWS::SQS::Queue.JobSettledQueue: is encrypted")


def test_a_finding_with_an_exception_is_none():
    assert list(problems([QUEUE], [Allowed("CKV_AWS_27", ("AWS::SQS::Queue.*",), "because")])) == []


def test_an_exception_is_for_its_own_rule_and_resources_alone():
    other = [Allowed("CKV_AWS_28", ("*",), ""), Allowed("CKV_AWS_27", ("AWS::SNS::*",), "")]
    assert len(list(problems([QUEUE], other))) == 3


def test_an_exception_that_nothing_needs_is_a_problem():
    (problem,) = problems([], [Allowed("CKV_AWS_27", ("AWS::SQS::Queue.*",), "because")])
    assert "Take it out" in problem


REPORT = {
    "summary": {"passed": 40, "failed": 1, "parsing_errors": 0},
    "results": {
        "failed_checks": [{"check_id": "CKV_AWS_27", "check_name": "is encrypted", "resource": QUEUE.resource}]
    },
}


def test_findings_are_read_from_the_scanners_report():
    assert read_findings(REPORT) == [QUEUE]


@pytest.mark.parametrize("summary", [{"parsing_errors": 1}, {"passed": 0}])
def test_a_report_on_next_to_nothing_is_refused(summary):
    report = copy.deepcopy(REPORT)
    report["summary"] |= summary
    with pytest.raises(ValueError, match="too little"):
        read_findings(report)
