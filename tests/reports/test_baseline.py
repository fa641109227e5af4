"""The paper's figures are those of its table."""

from __future__ import annotations

import pytest

from pytest_deploybench.reports.baseline import ALL, BASELINES

PAPER = BASELINES["paper"]


@pytest.mark.parametrize("model", PAPER.rates)
def test_each_rate_is_a_whole_number_of_its_tasks(model: str) -> None:
    passed = {group: rate * PAPER.tasks[group] for group, rate in PAPER.rates[model].items()}
    for count in passed.values():
        assert count == pytest.approx(round(count), abs=0.03)
    parts = sum(round(count) for group, count in passed.items() if group != ALL)
    assert parts == round(passed[ALL])


def test_154_of_204_trials_failed() -> None:
    passed = sum(round(rates[ALL] * PAPER.tasks[ALL]) for rates in PAPER.rates.values())
    assert len(PAPER.rates) * PAPER.tasks[ALL] - passed == 154
