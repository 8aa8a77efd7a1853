"""Every interleaving and every crash: the real code through every schedule within each scenario's bound."""

from __future__ import annotations

import pytest

from explorer.invariants import Invariant, Violated
from explorer.mutations import MUTATIONS, Mutation
from explorer.page import PAGE, row, rows_of
from explorer.replay import check_same
from explorer.scenarios import SCENARIOS, Bound, Scenario, by_title
from explorer.schedules import Why

SAMPLES = 12
named = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@named
def test_in_every_schedule_every_invariant_holds(scenario: Scenario) -> None:
    report = scenario.explore()

    assert report.schedules > 100
    assert report.ends > 1
    assert rows_of(PAGE.read_text()).get(scenario.title) == row(scenario, report), "run make guarantees"


@named
def test_a_schedule_drawn_by_lot_and_run_from_its_beginning_goes_as_the_search_says(scenario: Scenario) -> None:
    for seed in range(SAMPLES):
        check_same(scenario, scenario.deep, seed)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.title.replace(" ", "-"))
def test_a_deliberate_fault_is_caught_by_the_invariant_that_it_breaks(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation.apply(monkeypatch)

    with pytest.raises(Violated) as caught:
        _search_and_replay(mutation.scenario)

    assert caught.value.invariant is mutation.caught_by, caught.value
    assert caught.value.path, "a violation comes with the schedule that shows it"


def _search_and_replay(scenario: Scenario) -> None:
    scenario.explore()
    check_same(scenario, scenario.bound, 1)


def test_every_invariant_catches_a_deliberate_fault() -> None:
    assert {mutation.caught_by for mutation in MUTATIONS} == set(Invariant)


def test_without_a_fault_two_senders_duplicate_only_where_they_overlap() -> None:
    assert by_title("two senders").explore(Bound(0)).duplicates == {Why.OVERLAP}


def test_without_a_fault_a_lease_rules_out_every_duplicate() -> None:
    report = by_title("two senders with a lease").explore(Bound(0))

    assert report.most_mails == 1


def test_a_mail_that_ses_reports_before_anybody_claims_again_is_the_only_one() -> None:
    assert by_title("a sender and feedback on its mail").explore().most_mails == 1
