"""The dashboard: all that the code emits, top-down, in a body that CloudWatch can read."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from template.emitted import emitted
from template.resolve import Stack

SENDER = {"NoticeFromAddress": "notices@example.com", "SesIdentity": "example.com"}
COLUMNS = 24


def widgets(stack: Stack) -> list[dict[str, Any]]:
    body = json.loads(stack.properties("Dashboard")["DashboardBody"])
    found: list[dict[str, Any]] = body["widgets"]
    return found


WIDGETS = widgets(Stack(**SENDER, UntoldCheck="scan"))
GRAPHS = [widget for widget in WIDGETS if widget["type"] == "metric"]
LINES = [line for graph in GRAPHS for line in graph["properties"]["metrics"]]
METRICS = [line for line in LINES if isinstance(line[0], str)]


def named(line: list[Any]) -> tuple[str, str, dict[str, str]]:
    """Namespace, metric and dimensions of a line, without what it is called and how it is drawn."""
    words = [word for word in line if isinstance(word, str)]
    namespace, metric, *dimensions = words
    assert len(dimensions) % 2 == 0, line
    return namespace, metric, dict(zip(dimensions[::2], dimensions[1::2], strict=True))


def test_every_metric_that_the_code_emits_is_shown_and_no_other() -> None:
    shown = {metric for namespace, metric, _ in map(named, METRICS) if namespace == "RequesterNotices"}
    assert shown == emitted()


def test_metrics_of_ours_are_shown_by_service_alone_but_for_the_search_by_kind() -> None:
    for namespace, _, dimensions in map(named, METRICS):
        if namespace == "RequesterNotices":
            assert dimensions == {"service": "requester-notices"}
    [[search]] = [line for line in LINES if not isinstance(line[0], str)]
    assert search["expression"] == (
        'SEARCH(\'{RequesterNotices,kind,service} MetricName="NoticeDelivered" service="requester-notices"\','
        " 'Sum', 300)"
    )


def test_it_tells_the_story_from_the_top_down() -> None:
    texts = sorted((widget["y"], widget["properties"]["markdown"]) for widget in WIDGETS if widget["type"] == "text")
    assert [text.splitlines()[0].lstrip("# ") for _, text in texts] == [
        "Requester notices: development",
        "Settled, told, not told",
        "Time to tell",
        "Retries: what is due, and how old it is",
        "What SES answers",
        "What SES reports afterwards",
        "Parked",
        "Functions",
        "What drives the cost",
    ]


@pytest.mark.parametrize("check", ["off", "scan"])
def test_it_shows_every_alarm_of_the_stack(check: str) -> None:
    stack = Stack(**SENDER, UntoldCheck=check)
    [shown] = [widget["properties"]["alarms"] for widget in widgets(stack) if widget["type"] == "alarm"]
    assert sorted(shown) == sorted(f"{{{name}.Arn}}" for name in stack.of_type("AWS::CloudWatch::Alarm"))


def test_it_shows_every_metric_that_an_alarm_watches() -> None:
    shown = [named(line) for line in METRICS]
    for name, alarm in Stack(**SENDER, UntoldCheck="scan").of_type("AWS::CloudWatch::Alarm").items():
        dimensions = {each["Name"]: each["Value"] for each in alarm.get("Dimensions", [])}
        assert (alarm["Namespace"], alarm["MetricName"], dimensions) in shown, name


def test_lines_across_graphs_stand_where_the_alarms_do() -> None:
    """The one of feedback's age follows a parameter and so has none."""
    alarms = Stack(**SENDER).of_type("AWS::CloudWatch::Alarm")
    drawn = {
        named(graph["properties"]["metrics"][0])[1]: graph["properties"]["annotations"]["horizontal"][0]["value"]
        for graph in GRAPHS
        if "annotations" in graph["properties"]
    }
    assert drawn == {
        alarms[name]["MetricName"]: float(alarms[name]["Threshold"])
        for name in (
            "BounceRateAlarm",
            "ComplaintRateAlarm",
            "DeadLetterAlarm",
            "JobSettledAgeAlarm",
            "OldestUnsettledAlarm",
        )
    }


def test_widgets_fit_the_width_and_do_not_overlap() -> None:
    cells = [
        set(itertools.product(range(w["x"], w["x"] + w["width"]), range(w["y"], w["y"] + w["height"]))) for w in WIDGETS
    ]
    assert all(w["x"] + w["width"] <= COLUMNS for w in WIDGETS)
    assert sum(map(len, cells)) == len(set().union(*cells))


def test_every_widget_has_what_its_sort_needs() -> None:
    for widget in WIDGETS:
        properties = widget["properties"]
        match widget["type"]:
            case "metric":
                assert properties["title"]
                assert properties["region"] == "eu-west-1"
                assert properties["view"] in ("timeSeries", "singleValue")
                assert properties["period"] % 60 == 0
            case "log":
                assert properties["query"].startswith("SOURCE '{TellRequesterLogGroup}' | ")
                assert properties["region"] == "eu-west-1"
            case sort:
                assert sort in ("text", "alarm")


def test_dashboards_of_two_regions_or_stacks_do_not_take_each_others_name() -> None:
    assert Stack(**SENDER).properties("Dashboard")["DashboardName"] == "requester-notices-eu-west-1"
