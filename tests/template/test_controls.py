"""docs/controls.md names mechanisms and tests that are there."""

from __future__ import annotations

import re

import pytest

from scripts.template import ROOT, load

PAGE = (ROOT / "docs" / "controls.md").read_text(encoding="utf-8")
FAMILIES = {
    "AVL": (1, 4, 5),
    "AZ": (1, 2, 3, 4, 6),
    "DAT": (1, 2, 3),
    "IAM": (1, 2, 4, 5, 6),
    "LOG": (4, 5),
    "MON": (1, 2),
    "PI": (1, 2, 3, 4, 5),
    "PRV": (1, 2, 4),
    "TEN": (1, 2, 3),
    "VEN": (1, 2, 3),
}
NAMED = sorted(set(re.findall(r"`([^`]+)`", PAGE)))
PATHS = [name for name in NAMED if "/" in name or re.fullmatch(r"[\w-]+\.(toml|yaml|md)|Makefile", name)]
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "what holds" not in line]


def ids(heading: str) -> set[tuple[str, int]]:
    """Return the ids that a heading names, ranges included."""
    found = set()
    for family, first, last in re.findall(r"TC-([A-Z]+)-(\d{3})(?: to TC-[A-Z]+-(\d{3}))?", heading):
        found |= {(family, number) for number in range(int(first), int(last or first) + 1)}
    return found


def test_every_control_is_mapped_and_no_other():
    headings = [line for line in PAGE.splitlines() if line.startswith("## ")]
    mapped = set().union(*map(ids, headings))
    assert mapped == {(family, number) for family, numbers in FAMILIES.items() for number in numbers}
    assert len(headings) == len(FAMILIES)


@pytest.mark.parametrize("name", PATHS)
def test_a_file_and_a_test_that_are_named_exist(name):
    path, _, test = name.partition("::")
    file = ROOT / path
    assert file.is_file(), path
    if test:
        assert re.search(rf"^def {test}\(", file.read_text(encoding="utf-8"), re.MULTILINE), name


def test_a_resource_that_is_named_exists():
    named = set(re.findall(r"(?<!\*)\*([A-Z]\w+)\*(?!\*)", PAGE))
    assert named
    assert named <= set(load()["Resources"])


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_row_names_a_mechanism_and_a_test(row):
    _, what, mechanism, test, _ = row.split("|")
    assert what.strip().endswith(".")
    assert re.search(r"`[^`]+`|\*\w+\*", mechanism)
    assert re.search(r"`(tests|scripts)/[^`]+`", test)


def test_every_family_says_what_it_leaves_to_others():
    assert PAGE.count("\nLeft to others: ") == len(FAMILIES)


def test_the_page_says_that_only_the_ids_are_known():
    assert "Only the ids of the controls are known here, not their\ntexts." in PAGE


def test_the_audit_covers_what_is_shipped_and_fails_for_what_it_cannot_look_up():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\naudit:")[2].partition("\n\n")[0]
    assert "--requirement layers/dependencies/requirements.txt" in recipe
    assert "--strict" in recipe, "without it, a dependency that could not be looked up counts as one without a fault"
