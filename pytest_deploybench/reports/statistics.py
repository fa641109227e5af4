"""Counts verdicts and says how sure one can be of a pass rate.

INVALID trials judged nothing. They are no part of the rate, and beside it stands the rate that counts them as failed,
so that nobody can hide failures among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pytest_deploybench.model import Verdict

CONFIDENCE_LEVEL = 0.95


class Interval(NamedTuple):
    """Bounds of a rate, each between 0 and 1."""

    low: float
    high: float


@dataclass(frozen=True)
class Tally:
    """How many trials ended with which verdict."""

    passed: int = 0
    failed: int = 0
    invalid: int = 0

    @property
    def valid(self) -> int:
        return self.passed + self.failed

    @property
    def total(self) -> int:
        return self.valid + self.invalid

    @property
    def rate(self) -> float | None:
        """Passed among the valid trials; None where nothing was judged."""
        return self.passed / self.valid if self.valid else None

    @property
    def rate_with_invalid_failed(self) -> float | None:
        """Passed among all trials: the least that the rate can be."""
        return self.passed / self.total if self.total else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval of `rate` at `CONFIDENCE_LEVEL`; None where nothing was judged."""
        return wilson(self.passed, self.valid) if self.valid else None


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """Count verdicts."""
    count = Counter(verdicts)
    return Tally(count[Verdict.PASSED], count[Verdict.FAILED], count[Verdict.INVALID])


def wilson(passed: int, valid: int) -> Interval:
    """Wilson's score interval: sound also for few trials and for rates of 0 and 1, unlike the textbook's plus-minus.

    Raises:
        ValueError: no trials, or more passed than there are.
    """
    # scipy takes most of a second to import; only a report pays for it.
    from scipy.stats import binomtest

    found = binomtest(passed, valid).proportion_ci(CONFIDENCE_LEVEL, method="wilson")
    return Interval(float(found.low), float(found.high))
