"""Keeps the account of one trial: calls -> tokens, cost, and whether the next call is still within the budget.

Promises a reviewer can check: pure, no clock and no I/O; every value is frozen; an unknown price gives no cost, never
a cost of 0; tokens are counted only from what the provider reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pytest_deploybench.models import Price

_MILLION = 1_000_000


class Limit(StrEnum):
    """Which part of its budget a trial has used up."""

    TOKENS = "token_budget"
    COST = "cost_budget"
    CALLS = "call_budget"


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counts them, in the same sense for every dialect."""

    input: int = 0
    """All that was read, from a cache or not."""
    cached: int = 0
    """The part of `input` that came from the provider's cache."""
    cache_written: int = 0
    """The part of `input` that was written to the provider's cache, where that is billed."""
    output: int = 0
    """All that was generated, reasoning included."""
    reasoning: int = 0
    """The part of `output` that is reasoning, where the provider says so."""

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.cache_written + other.cache_written,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True)
class Budget:
    """What a trial may use; None sets no limit. A call under way when a limit is reached is let finish."""

    tokens: int | None = None
    """Input and output together, cached input too."""
    cost_usd: float | None = None
    calls: int | None = None


@dataclass(frozen=True)
class Statement:
    """What a trial has used so far, or in all once its account is closed."""

    usage: Usage
    cost_usd: float | None
    """None when the price of the model is unknown."""
    calls: int
    """Requests passed on to the model; the gateway's own retries do not count."""
    unmetered: int
    """Calls that ended without the provider's full count of tokens; usage and cost are too low by what they used."""
    refused: Limit | None
    """The limit for which a call was refused first."""
    provider_down: str | None
    """Why the model could not be reached, as a sentence: then the trial is INVALID by fault of the model's API."""
    waited_s: float
    """Seconds in which the trial waited for the provider's rate limits and faults; not the agent's working time."""
    log_problem: str | None = None
    """Why the log of the calls is not complete; None if it is."""


def cost_usd(usage: Usage, price: Price) -> float:
    """What one call costs, by list price."""
    rates = price.rates
    if price.long_rates and price.long_from is not None and usage.input >= price.long_from:
        rates = price.long_rates
    cached = min(usage.cached, usage.input)
    written = min(usage.cache_written, usage.input - cached)
    cached_rate = rates.input if rates.cached_input is None else rates.cached_input
    written_rate = rates.input if rates.cache_write is None else rates.cache_write
    fresh = usage.input - cached - written
    return (
        fresh * rates.input + cached * cached_rate + written * written_rate + usage.output * rates.output
    ) / _MILLION


@dataclass(frozen=True)
class Ledger:
    """The sums of one trial."""

    price: Price | None
    budget: Budget = field(default_factory=Budget)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    calls: int = 0
    unmetered: int = 0

    @classmethod
    def new(cls, price: Price | None, budget: Budget) -> Ledger:
        return cls(price, budget, cost_usd=None if price is None else 0.0)

    def begun(self) -> Ledger:
        """With one more call on its way."""
        return replace(self, calls=self.calls + 1)

    def ended(self, usage: Usage | None, *, complete: bool = True) -> Ledger:
        """With what a call used.

        Args:
            usage: what the provider said; None when it said nothing.
            complete: whether it had said everything when the call ended.
        """
        used = usage or Usage()
        return replace(
            self,
            usage=self.usage + used,
            cost_usd=None if self.price is None else (self.cost_usd or 0.0) + cost_usd(used, self.price),
            unmetered=self.unmetered + (usage is None or not complete),
        )

    def exhausted(self) -> Limit | None:
        """The limit that forbids a further call."""
        budget = self.budget
        used = (
            (Limit.TOKENS, self.usage.total, budget.tokens),
            (Limit.COST, self.cost_usd, budget.cost_usd),
            (Limit.CALLS, self.calls, budget.calls),
        )
        return next((name for name, sum_, most in used if sum_ is not None and most is not None and sum_ >= most), None)


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """The length of the union of intervals: what parallel calls waited for at the same time counts once."""
    length, end = 0.0, float("-inf")
    for start, stop in sorted(intervals):
        length += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return length
