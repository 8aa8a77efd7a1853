"""docs/guarantees.md says what the code does now."""

from __future__ import annotations

from explorer.page import PAGE, page, rows_of
from explorer.scenarios import SCENARIOS

# the figures of each search are checked where it runs: tests/protocol/test_every_schedule.py


def test_the_page_is_what_make_guarantees_would_write() -> None:
    text = PAGE.read_text()
    rows = rows_of(text)

    assert list(rows) == [scenario.title for scenario in SCENARIOS], "run make guarantees"
    assert text == page(rows), "run make guarantees"
