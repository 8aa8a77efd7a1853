"""Lines and metrics as they are written (DESIGN 3.7)."""

from __future__ import annotations

import itertools
import json
import logging

import pytest

from notices.database import DatabaseError
from notices.telemetry import JsonTelemetry, describe, fault

_services = itertools.count()


@pytest.fixture
def written(capsys):
    """Return what was written since: EMF objects, or log lines."""

    def read() -> list[dict]:
        return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.strip()]

    return read


def a_telemetry() -> JsonTelemetry:
    return JsonTelemetry(f"service-{next(_services)}")


def dimensions(emf: dict) -> list[set[str]]:
    (directive,) = emf["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "RequesterNotices"
    return [set(names) for names in directive["Dimensions"]]


def unit(emf: dict, name: str) -> str:
    (directive,) = emf["_aws"]["CloudWatchMetrics"]
    return next(metric["Unit"] for metric in directive["Metrics"] if metric["Name"] == name)


def test_a_metric_is_written_by_service_and_by_service_and_kind(written):
    telemetry = a_telemetry()
    telemetry.count("NoticeDelivered", "workspace_provisioning")
    telemetry.flush()

    total, by_kind = sorted(written(), key=lambda emf: "kind" in emf)

    assert dimensions(total) == [{"service"}]
    assert dimensions(by_kind) == [{"service", "kind"}]
    assert total["service"] == by_kind["service"]
    assert by_kind["kind"] == "workspace_provisioning"
    assert total["NoticeDelivered"] == by_kind["NoticeDelivered"] == [1]
    assert unit(total, "NoticeDelivered") == "Count"


def test_a_metric_without_a_kind_is_written_by_service_alone(written):
    telemetry = a_telemetry()
    telemetry.count("EventParked")
    telemetry.flush()
    (emf,) = written()
    assert dimensions(emf) == [{"service"}]
    assert emf["EventParked"] == [1]


def test_there_is_one_object_for_each_kind_and_one_for_all(written):
    telemetry = a_telemetry()
    telemetry.count("NoticeDelivered", "export")
    telemetry.count("NoticeDelivered", "migration")
    telemetry.count("NoticeFailed", "export")
    telemetry.count("NoticeDelivered", "export")
    telemetry.flush()

    found = {emf.get("kind"): emf for emf in written()}

    assert set(found) == {None, "export", "migration"}
    assert (found[None]["NoticeDelivered"], found[None]["NoticeFailed"]) == ([3], [1])
    assert (found["export"]["NoticeDelivered"], found["export"]["NoticeFailed"]) == ([2], [1])
    assert found["migration"]["NoticeDelivered"] == [1]
    assert "NoticeFailed" not in found["migration"]


def test_nothing_is_carried_over_from_one_invocation_to_the_next(written):
    telemetry = a_telemetry()
    telemetry.count("NoticeDelivered", "export")
    telemetry.flush()
    written()
    telemetry.flush()
    assert written() == []
    telemetry.count("NoticeFailed", "migration")
    telemetry.flush()
    for emf in written():
        assert "NoticeDelivered" not in emf
        assert emf.get("kind") in (None, "migration")


def test_seconds_are_written_value_by_value(written):
    telemetry = a_telemetry()
    telemetry.count("SecondsToTell", "export", 1.5)
    telemetry.count("SecondsToTell", "export", 30)
    telemetry.flush()
    for emf in written():
        assert emf["SecondsToTell"] == [1.5, 30]
        assert unit(emf, "SecondsToTell") == "Seconds"


def test_more_than_a_hundred_values_go_into_several_objects(written):
    telemetry = a_telemetry()
    for value in range(250):
        telemetry.count("SecondsToTell", None, value)
    telemetry.count("NoticeDelivered", None, 250)
    telemetry.flush()
    objects = written()
    assert len(objects) == 3
    assert all(len(emf["SecondsToTell"]) <= 100 for emf in objects)
    assert [value for emf in objects for value in emf["SecondsToTell"]] == list(range(250))
    assert sum(emf.get("NoticeDelivered", [0])[0] for emf in objects) == 250


def test_an_age_of_nought_is_written_too(written):
    telemetry = a_telemetry()
    telemetry.count("OldestUnsettledSeconds", value=0.0)
    telemetry.flush()
    (emf,) = written()
    assert emf["OldestUnsettledSeconds"] == [0.0]
    assert unit(emf, "OldestUnsettledSeconds") == "Seconds"


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_a_line_is_one_json_object_of_named_fields(written, level):
    telemetry = a_telemetry()
    telemetry.begin("request-7")
    getattr(telemetry, level)("record handled", job_id="job-1", attempt=1, error=None)

    (line,) = written()

    assert (line["message"], line["level"]) == ("record handled", level.upper())
    assert (line["job_id"], line["attempt"]) == ("job-1", 1)
    assert line["service"].startswith("service-")
    assert line["request_id"] == "request-7"
    assert "error" not in line


def test_a_field_of_one_line_is_not_in_the_next(written):
    telemetry = a_telemetry()
    telemetry.info("one", job_id="job-1")
    telemetry.info("two")
    assert "job_id" not in written()[1]


def test_a_new_invocation_has_its_own_request_id(written):
    telemetry = a_telemetry()
    telemetry.begin("request-1")
    telemetry.begin("request-2")
    telemetry.info("x")
    assert written()[0]["request_id"] == "request-2"


def test_a_fault_says_where_and_never_what():
    def breaks() -> None:
        raise ValueError("dana@example.com")

    with pytest.raises(ValueError, match="dana") as raised:
        breaks()
    said = fault(raised.value)
    assert said.startswith("ValueError in breaks (test_telemetry.py:")
    assert "dana" not in said


def test_a_fault_that_was_never_raised_says_its_type():
    assert fault(ValueError("dana")) == "ValueError"


def test_only_this_systems_own_errors_are_described_in_their_own_words():
    assert describe(DatabaseError("PutItem", "Notices", "X")) == "DatabaseError: PutItem on Notices: X"
    assert describe(ValueError("dana")) == "ValueError"


@pytest.mark.parametrize("name", ["botocore.endpoint", "urllib3.connectionpool", "pynamodb.connection.base"])
def test_libraries_that_write_whole_requests_stay_silent_even_where_lambda_asks_for_debug(name):
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        JsonTelemetry("requester-notices")
        assert not logging.getLogger(name).isEnabledFor(logging.INFO)
    finally:
        root.setLevel(level)
