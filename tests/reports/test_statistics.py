"""Rates say how sure they are, and INVALID is neither hidden nor held against a contestant."""

from __future__ import annotations

import pytest

from pytest_deploybench.model import Verdict
from pytest_deploybench.reports.statistics import Tally, tally, wilson


@pytest.mark.parametrize(
    ("passed", "valid", "low", "high"),
    [
        # From the closed formula with z = 1.959964, worked out apart from scipy.
        (0, 1, 0.0, 0.7935),
        (1, 1, 0.2065, 1.0),
        (3, 4, 0.3006, 0.9544),
        (5, 5, 0.5655, 1.0),
        (25, 51, 0.3586, 0.6232),
        (0, 51, 0.0, 0.0700),
    ],
)
def test_wilsons_interval(passed: int, valid: int, low: float, high: float) -> None:
    assert wilson(passed, valid) == pytest.approx((low, high), abs=5e-5)


def test_an_interval_holds_its_rate_and_narrows_with_more_trials() -> None:
    width = 1.0
    for valid in (2, 4, 8, 16, 32, 64):
        found = wilson(valid // 2, valid)
        assert found.low < 0.5 < found.high
        assert found.high - found.low < width
        width = found.high - found.low


@pytest.mark.parametrize(("passed", "valid"), [(0, 0), (3, 2), (-1, 2)])
def test_an_impossible_count_has_no_interval(passed: int, valid: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        wilson(passed, valid)


def test_invalid_trials_are_apart_from_the_rate() -> None:
    counted = tally([Verdict.PASSED] * 3 + [Verdict.FAILED] + [Verdict.INVALID] * 2)
    assert counted == Tally(passed=3, failed=1, invalid=2)
    assert (counted.valid, counted.total) == (4, 6)
    assert counted.rate == 0.75
    assert counted.rate_with_invalid_failed == 0.5
    assert counted.interval == wilson(3, 4)


@pytest.mark.parametrize(("counted", "worst"), [(Tally(), None), (Tally(invalid=3), 0.0)])
def test_where_nothing_was_judged_there_is_no_rate(counted: Tally, worst: float | None) -> None:
    assert counted.rate is None
    assert counted.interval is None
    assert counted.rate_with_invalid_failed == worst
