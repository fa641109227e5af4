"""Counts verdicts and says how sure one can be of a pass rate, and of the difference between two.

INVALID trials judged nothing. They are no part of the rate, and beside it stands the rate that counts them as failed,
so that nobody can hide failures among them.

Several attempts at one task are not independent: a task that is too hard fails them all. So trials are clustered by
task. Their interval is Wilson's at the number of independent trials that would vary as much as the clusters do, the
effective sample size of Korn and Graubard. It was taken rather than a bootstrap over tasks because it needs no random
numbers, holds at rates of 0 and 1, where a bootstrap has no width, and is Wilson's own where each task has one trial.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median
from typing import NamedTuple

from pytest_deploybench.model import Verdict

CONFIDENCE_LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + CONFIDENCE_LEVEL) / 2)
_RESAMPLES = 9999
_SEED = 0
"""Of what is drawn at random, so that a report made again says the same."""


class Interval(NamedTuple):
    """Bounds of a rate, each between 0 and 1, or of a difference of rates, each between -1 and 1."""

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
        """Wilson's interval of `rate`, right for trials of different tasks; None where nothing was judged."""
        return wilson(self.passed, self.valid) if self.valid else None


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """Count verdicts."""
    count = Counter(verdicts)
    return Tally(count[Verdict.PASSED], count[Verdict.FAILED], count[Verdict.INVALID])


def wilson(passed: float, valid: float) -> Interval:
    """Wilson's score interval: sound also for few trials and for rates of 0 and 1, unlike the textbook's plus-minus.

    Both may be fractions, since an effective number of trials is one.

    Raises:
        ValueError: no trials, or more passed than there are.
    """
    if not 0 <= passed <= valid or not valid:
        raise ValueError(f"{passed} passed of {valid} trials")
    rate, spread = passed / valid, _Z * _Z / valid
    center = (rate + spread / 2) / (1 + spread)
    half = math.sqrt(rate * (1 - rate) * spread + spread * spread / 4) / (1 + spread)
    return Interval(max(0.0, center - half), min(1.0, center + half))


def clustered(tasks: Collection[Tally]) -> Interval | None:
    """The interval of the rate over all valid trials, given one tally a task; None where nothing was judged."""
    judged = [task for task in tasks if task.valid]
    passed, valid = sum(task.passed for task in judged), sum(task.valid for task in judged)
    if not valid:
        return None
    effective = valid / _design_effect(judged, passed / valid)
    return wilson(passed / valid * effective, effective)


def _design_effect(tasks: Collection[Tally], rate: float) -> float:
    """How many times more the rate varies than one of independent trials would (>= 1)."""
    count, valid = len(tasks), sum(task.valid for task in tasks)
    alike = valid / count
    if count == 1 or rate in (0, 1):
        # The tasks do not show how alike the attempts at one are, so they are taken as wholly alike.
        return alike
    between = sum((task.passed - task.valid * rate) ** 2 for task in tasks) * count / (count - 1) / valid**2
    independent = rate * (1 - rate) / (valid - 1)
    return max(1.0, between / independent)


def pass_at(k: int, valid: int, passed: int) -> float | None:
    """The chance that at least one of `k` attempts at a task passes, without bias from `valid` attempts (pass@k).

    None where there were fewer attempts than k.
    """
    return None if valid < k else 1 - math.comb(valid - passed, k) / math.comb(valid, k)


def pass_all(k: int, valid: int, passed: int) -> float | None:
    """The chance that all of `k` attempts at a task pass, without bias from `valid` attempts (pass^k).

    None where there were fewer attempts than k.
    """
    return None if valid < k else math.comb(passed, k) / math.comb(valid, k)


@dataclass(frozen=True)
class Repeated:
    """What a contestant reaches in several attempts, as means over the tasks that have as many."""

    k: int
    tasks: int
    """How many tasks have at least k valid attempts."""
    any_passes: float
    """pass@k."""
    all_pass: float
    """pass^k."""


def repeated(k: int, tasks: Iterable[Tally]) -> Repeated | None:
    """pass@k and pass^k over tasks; None where no task has k valid attempts."""
    counts = [(task.valid, task.passed) for task in tasks]
    at = [chance for count in counts if (chance := pass_at(k, *count)) is not None]
    every = [chance for count in counts if (chance := pass_all(k, *count)) is not None]
    return Repeated(k, len(at), fmean(at), fmean(every)) if at else None


@dataclass(frozen=True)
class Measured:
    """A quantity of trials of which some may not know it. Unknown is never counted as 0."""

    n: int
    """How many trials know it."""
    total: float | None = None
    """Over those that know it; None where nobody does, and so are the others."""
    mean: float | None = None
    median: float | None = None


def measured(values: Iterable[float | None]) -> Measured:
    """Sum, mean and median of what is known."""
    known = [value for value in values if value is not None]
    return Measured(len(known), sum(known), fmean(known), median(known)) if known else Measured(0)


@dataclass(frozen=True)
class Paired:
    """Two contestants, A and B, on the tasks on which both were judged."""

    tasks: int
    rate_a: float
    """Mean over the tasks; so is `rate_b`."""
    rate_b: float
    a_better: int
    """Tasks on which A passed more often."""
    b_better: int
    interval: Interval | None
    """Of `difference`; None where the tasks are too few, or too alike, to tell."""
    p_value: float
    """How often contestants of equal strength differ as much as these or more."""
    method: str
    """How interval and p value were found."""

    @property
    def difference(self) -> float:
        """`rate_b` less `rate_a`."""
        return self.rate_b - self.rate_a


MCNEMAR = "Exact McNemar test; Bonett-Price interval"
RESAMPLED = "Sign-flip permutation test and bootstrap, both over tasks"


def paired(a: Mapping[str, Tally], b: Mapping[str, Tally]) -> Paired | None:
    """Compare two contestants by their tallies of each task; None where they share no task that both were judged on."""
    shared = [task for task, tally_a in a.items() if tally_a.valid and task in b and b[task].valid]
    if not shared:
        return None
    rates_a = [a[task].passed / a[task].valid for task in shared]
    rates_b = [b[task].passed / b[task].valid for task in shared]
    differences = [rate_b - rate_a for rate_a, rate_b in zip(rates_a, rates_b, strict=True)]
    a_better, b_better = sum(each < 0 for each in differences), sum(each > 0 for each in differences)
    once = all(a[task].valid == b[task].valid == 1 for task in shared)
    interval = _bonett_price(a_better, b_better, len(shared)) if once else _bootstrap(differences)
    p_value = _mcnemar(a_better, b_better) if once else _sign_flips(differences)
    method = MCNEMAR if once else RESAMPLED
    return Paired(len(shared), fmean(rates_a), fmean(rates_b), a_better, b_better, interval, p_value, method)


def _mcnemar(a_better: int, b_better: int) -> float:
    # scipy takes most of a second to import; only a comparison pays for it.
    from scipy.stats import binomtest

    discordant = a_better + b_better
    return float(binomtest(a_better, discordant).pvalue) if discordant else 1.0


def _bonett_price(a_better: int, b_better: int, tasks: int) -> Interval:
    """Wald's interval after one more task of each discordant kind: holds its level also for few tasks (2012)."""
    a, b = (a_better + 1) / (tasks + 2), (b_better + 1) / (tasks + 2)
    half = _Z * math.sqrt((a + b - (b - a) ** 2) / (tasks + 2))
    return Interval(max(-1.0, b - a - half), min(1.0, b - a + half))


def _bootstrap(differences: Sequence[float]) -> Interval | None:
    if len(set(differences)) == 1:
        return None
    from numpy import mean
    from scipy.stats import bootstrap

    found = bootstrap(
        (differences,),
        mean,
        confidence_level=CONFIDENCE_LEVEL,
        n_resamples=_RESAMPLES,
        method="percentile",
        rng=_SEED,
    ).confidence_interval
    return Interval(float(found.low), float(found.high))


def _sign_flips(differences: Sequence[float]) -> float:
    """Whether it could as well be the other way round on each task; exact where all ways can be counted."""
    telling = [difference for difference in differences if difference]
    if len(telling) < 2:
        return 1.0
    from numpy import mean, subtract, zeros_like
    from scipy.stats import permutation_test

    found = permutation_test(
        (telling, zeros_like(telling)),
        lambda b, a, axis: mean(subtract(b, a), axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        rng=_SEED,
    )
    return float(found.pvalue)
