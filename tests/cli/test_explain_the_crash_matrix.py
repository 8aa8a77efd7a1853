"""`notices explain` on the crash matrix of docs/guarantees.md: each process stopped or disturbed at each of its calls.

The notice is what the explorer's run of the real code left; the answer has to be what a person may conclude from it.
"""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest

from cli.operator import Operator
from explorer.matrix import MATRICES, Matrix
from explorer.schedules import standing
from fakes.clock import START
from fakes.world import NOTICES

RETRY = "notices retry job-1 succeeded"
SOON_AFTER = {
    "The sender": timedelta(seconds=30),
    "The retry": timedelta(minutes=17),
    "Feedback": timedelta(seconds=30),
}
ANSWERS = {
    "absent": ("no", "not_arrived", RETRY),
    "pending": ("not yet", "pending", None),
    "delivered": ("yes", "delivered", None),
    "failed, due throttled": ("not yet", "retrying", None),
    "failed, due provider_unknown": ("doubtful", "retrying", None),
    "failed for good provider_refused": ("no", "failed_for_good", RETRY),
}


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: matrix.title)
def test_the_answer_is_right_wherever_the_process_stops(matrix: Matrix) -> None:
    records = list(matrix.records())
    assert len(records) >= 10
    for call, fault, item in records:
        said = explained(matrix, item)
        if matrix.title == "The retry" and not moved(item):
            # it runs a quarter of an hour after the notice was due, and has not brought it back: that is late
            assert (said["told"], said["state"], said["step"]) == ("not yet", "overdue", "notices check"), call
            continue
        code = "" if item is None else item.get("error", {}).get("S", "").partition(":")[0]
        expected = ANSWERS[f"{standing(item)} {code}".rstrip()]
        assert (said["told"], said["state"], said["step"]) == expected, f"{call}: {fault}"


def test_the_matrix_has_every_answer() -> None:
    retried = [moved(item) for _, _, item in MATRICES[1].records()]
    assert True in retried
    assert False in retried
    found = {standing(item) for matrix in MATRICES for _, _, item in matrix.records()}
    assert found == {"absent", "pending", "delivered", "failed, due", "failed for good"}


def moved(item: Any) -> bool:
    """Whether the retry moved the notice on, to a quarter of an hour after its own run."""
    return item["next_attempt_at"]["S"] > "2026-11-29T10:16"


def explained(matrix: Matrix, item: Any) -> dict[str, Any]:
    operator = Operator()
    operator.world.clock.at = START + SOON_AFTER[matrix.title]
    if item is not None:
        operator.world.store.place(NOTICES, copy.deepcopy(item))
    return operator.explains()
