"""Rates say how sure they are, and INVALID is neither hidden nor held against a contestant."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from scipy.stats import binomtest

from pytest_deploybench.model import Verdict
from pytest_deploybench.reports.statistics import (
    MCNEMAR,
    RESAMPLED,
    Measured,
    Tally,
    clustered,
    measured,
    paired,
    pass_all,
    pass_at,
    repeated,
    tally,
    wilson,
)

HALF = {f"task-{number}": Tally(passed=number % 2, failed=1 - number % 2) for number in range(20)}
ALL = {task: Tally(passed=1) for task in HALF}


@pytest.mark.parametrize(("passed", "valid"), [(0, 1), (1, 1), (3, 4), (5, 5), (25, 51), (0, 51)])
def test_wilsons_interval_is_that_of_scipy(passed: int, valid: int) -> None:
    found = binomtest(passed, valid).proportion_ci(0.95, method="wilson")
    assert wilson(passed, valid) == pytest.approx((found.low, found.high))


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
    assert clustered([counted]) is None


def test_one_attempt_a_task_is_wilsons_interval() -> None:
    assert clustered(HALF.values()) == pytest.approx(wilson(10, 20))


def test_attempts_that_end_alike_say_no_more_than_one() -> None:
    alike = [Tally(passed=3 * each.passed, failed=3 * each.failed) for each in HALF.values()]
    assert clustered(alike) == pytest.approx(wilson(10, 20), abs=0.005)
    assert clustered([Tally(passed=3)] * 5) == wilson(5, 5)
    assert clustered([Tally(passed=3, failed=3)]) == wilson(0.5, 1)


def test_attempts_that_end_independently_count_as_many() -> None:
    assert clustered([Tally(passed=2, failed=1)] * 20) == pytest.approx(wilson(40, 60))


def test_the_clustered_interval_holds_its_level() -> None:
    """19 of 20 times the interval holds the true rate, where tasks differ much and attempts at one are alike."""
    draw = Random(1)
    held = 0
    for _ in range(400):
        chances = [draw.betavariate(0.3, 0.7) for _ in range(30)]
        passed = [sum(draw.random() < chance for _ in range(4)) for chance in chances]
        low, high = clustered([Tally(passed=each, failed=4 - each) for each in passed]) or (1.0, 0.0)
        held += low <= 0.3 <= high
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize(("valid", "passed"), [(1, 0), (1, 1), (3, 1), (5, 2), (5, 5), (6, 0)])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_chances_over_attempts_are_those_of_all_choices_of_k(k: int, valid: int, passed: int) -> None:
    attempts = [True] * passed + [False] * (valid - passed)
    choices = list(combinations(attempts, k))
    if not choices:
        assert pass_at(k, valid, passed) is pass_all(k, valid, passed) is None
        return
    assert pass_at(k, valid, passed) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_all(k, valid, passed) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_chances_are_means_over_the_tasks_with_enough_attempts() -> None:
    found = repeated(2, [Tally(passed=2), Tally(passed=1, failed=1), Tally(passed=1, invalid=1)])
    assert found is not None
    assert (found.tasks, found.any_passes, found.all_pass) == (2, 1.0, 0.5)
    assert repeated(3, [Tally(passed=2)]) is None


def test_what_is_unknown_is_not_counted_as_nothing() -> None:
    assert measured([3.0, None, 1.0, 8.0]) == Measured(n=3, total=12.0, mean=4.0, median=3.0)
    assert measured([None]) == Measured(n=0, total=None, mean=None, median=None)
    assert measured([0.0]).total == 0.0


def test_one_attempt_each_is_compared_by_mcnemar() -> None:
    found = paired(ALL, HALF)
    assert found is not None
    assert (found.tasks, found.rate_a, found.rate_b, found.difference) == (20, 1.0, 0.5, -0.5)
    assert (found.a_better, found.b_better, found.method) == (10, 0, MCNEMAR)
    assert found.p_value == pytest.approx(2 * 0.5**10)
    # (0 + 1) / 22 less (10 + 1) / 22, and 1.959964 times the root of (12/22 - (10/22)^2) / 22.
    assert found.interval == pytest.approx((-0.6978, -0.2113), abs=5e-4)


def test_several_attempts_are_compared_by_task() -> None:
    thrice = {task: Tally(passed=3) for task in HALF}
    mixed = {task: Tally(passed=number % 3, failed=3 - number % 3) for number, task in enumerate(HALF)}
    found = paired(mixed, thrice)
    assert found is not None
    assert found.method == RESAMPLED
    assert found.difference == pytest.approx(1 - 19 / 60)
    assert found.interval is not None
    assert found.interval.low < found.difference < found.interval.high
    assert found.p_value < 0.001
    again = paired(mixed, thrice)
    assert again == found


def test_the_smallest_p_value_of_five_tasks_is_one_in_sixteen() -> None:
    five = {f"{number}": Tally(passed=1, failed=number) for number in range(1, 6)}
    found = paired(five, {task: Tally(passed=3) for task in five})
    assert found is not None
    assert found.p_value == pytest.approx(2 / 2**5)


@pytest.mark.parametrize("attempts", [1, 3])
def test_two_that_do_alike_do_not_differ(attempts: int) -> None:
    side = {task: Tally(passed=attempts * each.passed, failed=attempts * each.failed) for task, each in HALF.items()}
    found = paired(side, side)
    assert found is not None
    assert (found.difference, found.p_value) == (0.0, 1.0)
    assert (found.interval is None) == (attempts == 3)


def test_only_tasks_on_which_both_were_judged_are_compared() -> None:
    found = paired(
        {"a": Tally(passed=1), "b": Tally(invalid=1), "c": Tally(failed=1)},
        {"a": Tally(failed=1), "b": Tally(passed=1)},
    )
    assert found is not None
    assert (found.tasks, found.a_better) == (1, 1)
    assert paired({"a": Tally(passed=1)}, {"b": Tally(passed=1)}) is None
