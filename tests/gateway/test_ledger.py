"""Sums, costs and limits of one trial."""

from __future__ import annotations

import pytest

from pytest_deploybench.gateway.ledger import Budget, Ledger, Limit, Usage, cost_usd, covered
from pytest_deploybench.models import Price, Rates

PRICE = Price("2026-11-30", Rates(input=2.0, output=10.0, cached_input=0.5, cache_write=3.0))


def test_cached_and_written_input_have_their_own_rates() -> None:
    used = Usage(input=1_000_000, cached=400_000, cache_written=100_000, output=200_000, reasoning=150_000)
    assert cost_usd(used, PRICE) == pytest.approx(0.5 * 2.0 + 0.4 * 0.5 + 0.1 * 3.0 + 0.2 * 10.0)


def test_without_rates_of_their_own_they_cost_as_other_input() -> None:
    used = Usage(input=1_000_000, cached=400_000, cache_written=100_000)
    assert cost_usd(used, Price(None, Rates(2.0, 10.0))) == pytest.approx(2.0)


def test_more_cached_than_read_is_not_a_discount() -> None:
    assert cost_usd(Usage(input=10, cached=1_000_000), PRICE) == pytest.approx(10 * 0.5 / 1e6)


@pytest.mark.parametrize(("tokens", "rate"), [(199_999, 2.0), (200_000, 4.0)])
def test_a_long_prompt_costs_more_for_all_of_its_tokens(tokens: int, rate: float) -> None:
    price = Price(None, Rates(2.0, 10.0), long_from=200_000, long_rates=Rates(4.0, 10.0))
    assert cost_usd(Usage(input=tokens), price) == pytest.approx(tokens * rate / 1e6)


def test_usage_adds_up_field_by_field() -> None:
    total = Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50)
    assert total == Usage(11, 22, 33, 44, 55)
    assert total.total == 55


def test_an_unknown_price_has_no_cost_and_a_known_one_begins_at_zero() -> None:
    used = Usage(input=5, output=5)
    assert Ledger.new(None, Budget()).begun().ended(used).cost_usd is None
    ledger = Ledger.new(PRICE, Budget())
    assert ledger.cost_usd == 0.0
    assert ledger.begun().ended(used).cost_usd == pytest.approx(60 / 1e6)


def test_a_call_without_counts_is_unmetered_and_one_cut_off_counts_what_is_known() -> None:
    ledger = Ledger.new(PRICE, Budget()).begun().ended(None).begun().ended(Usage(input=7), complete=False)
    assert (ledger.calls, ledger.unmetered, ledger.usage) == (2, 2, Usage(input=7))
    assert ledger.begun().ended(Usage(input=1)).unmetered == 2


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(), None),
        (Budget(tokens=31), None),
        (Budget(tokens=30), Limit.TOKENS),
        (Budget(cost_usd=0.000221), None),
        (Budget(cost_usd=0.00022), Limit.COST),
        (Budget(calls=2), None),
        (Budget(calls=1), Limit.CALLS),
        (Budget(tokens=0), Limit.TOKENS),
        (Budget(tokens=1, cost_usd=0.0, calls=0), Limit.TOKENS),
    ],
)
def test_a_limit_is_reached_when_it_is_used_up(budget: Budget, limit: Limit | None) -> None:
    ledger = Ledger.new(PRICE, budget).begun().ended(Usage(input=10, output=20))
    assert ledger.exhausted() == limit


def test_a_call_under_way_counts_against_the_limit_of_calls() -> None:
    assert Ledger.new(None, Budget(calls=1)).begun().exhausted() is Limit.CALLS


@pytest.mark.parametrize(
    ("intervals", "seconds"),
    [([], 0), ([(1, 3)], 2), ([(1, 3), (2, 5)], 4), ([(5, 6), (1, 2)], 2), ([(1, 9), (2, 3), (4, 5)], 8)],
)
def test_waits_at_the_same_time_count_once(intervals: list[tuple[float, float]], seconds: float) -> None:
    assert covered(intervals) == pytest.approx(seconds)
