"""The benchmark runs and reports; nothing here is timed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from bench import builds, figures, flood, report, stub
from bench.__main__ import certificate, trust
from scripts.build import build

COMMON = ("ours", "peer")


def results(ours: float = 1.0, peer: float = 2.0) -> dict[str, Any]:
    labels = [label for _, label, _ in report.BARS]
    labels += ["cold start: CPU, ms", "batch of 1 handled before: wall, ms"]
    return {
        "python": "3.13.0",
        "cores": 2,
        "load": [1.0, 2.0],
        "seconds": 3.0,
        "notices": 5000,
        "functions": COMMON,
        "figures": {label: {"ours": ours, "peer": peer} for label in labels},
        "calls": {
            what: {"ours": {"PutItem": 1.0}, "peer": {"PutItem": 2.0}}
            for what in ("alone", "in a batch of 10", "handled")
        },
        "memory": {name: {"half": 40.0, "whole": 40.0} for name in COMMON},
    }


def test_a_target_that_is_missed_is_named() -> None:
    found = results(ours=1.9)
    missed = {target.label for target in report.unmet(found)}
    assert "cold start to the first answered batch, wall" in missed
    assert "AWS calls of a fresh notice alone" not in missed
    assert "NOT MET" in report.table(found)


def test_what_is_better_than_every_target_misses_none() -> None:
    assert report.unmet(results(ours=1.0, peer=100.0)) == []


def test_the_picture_is_whole_and_shows_both() -> None:
    drawn = report.picture(results())
    ElementTree.fromstring(drawn)
    assert "= 0.50" in drawn


def test_a_small_flood_is_told_whole_and_once() -> None:
    scenario = flood.Scenario("small", 14, 14, 2)
    found = flood.report(flood.Flood(scenario, 400).run())
    assert (found["not told"], found["mailed twice"], found["given up"]) == (0, 0, 0)
    assert found["sends"] - found["throttled by SES"] == 400


def test_a_small_flood_without_pacing_is_refused_more_and_told_all_the_same() -> None:
    paced, unpaced = (
        flood.report(flood.Flood(flood.Scenario("small", 14, 14, 2, paced=paced), 400).run()) for paced in (True, False)
    )
    assert unpaced["throttled by SES"] > 10 * paced["throttled by SES"]
    assert unpaced["not told"] == unpaced["mailed twice"] == 0


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("bench")
    python = builds._base(str(builds.sys.executable))
    built = build(folder / "ours", python)
    folders = tuple(built[name] if name == "TellRequesterFunction" else built[name] / "python" for name in LAYERS)
    ours = builds.Function("ours", folders, builds._environment("Notices"))
    made, key = certificate(folder)
    with stub.running(made, key) as control:
        yield figures.Bench(python, control, trust(folder, folders[1], made)), ours


LAYERS = ("TellRequesterFunction", "DependenciesLayer", "NoticesLayer")


def test_the_built_function_tells_a_batch_over_http_and_tls(bench: Any) -> None:
    machine, ours = bench
    counted = figures.calls(machine, [ours])
    assert sum(counted["alone"]["ours"].values()) == 5
    assert sum(counted["in a batch of 10"]["ours"].values()) == pytest.approx(3.2)
    assert counted["handled"]["ours"] == {"BatchGetItem": 1.0}
    found = figures.cold(machine, [ours], 1)
    assert found["cold start: wall, ms"]["ours"] > 0


def test_the_figures_that_are_shown_are_those_that_were_published() -> None:
    published = json.loads((Path(__file__).parents[2] / "docs" / "performance.json").read_text())
    assert (Path(__file__).parents[2] / "docs" / "performance.svg").read_text() == report.picture(published)
