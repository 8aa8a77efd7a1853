import importlib

from cases import book
from cases.run import covered

FILES = ("event_input", "batch", "claim_and_outcome", "send", "rendering", "feedback")


def test_every_run_of_every_case_is_played() -> None:
    for name in FILES:
        importlib.import_module(f"cases.test_{name}")
    wanted = {(case_id, letter) for case_id, letters in book.playable().items() for letter in letters or "a"}
    assert wanted - covered == set()
