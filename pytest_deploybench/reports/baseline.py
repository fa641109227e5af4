"""Figures that others published, to be shown beside ours.

The paper's are from DeployBench (arXiv 2606.05238) and its project page: the pass rates of four models, each of which
met each of its 51 tasks once, in all and by domain. They are rates as printed there, so no interval is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_deploybench.model import Domain

ALL = "all"
"""The group of all tasks; the others are named as their domain."""


@dataclass(frozen=True)
class Baseline:
    """Pass rates that somebody published."""

    title: str
    tasks: Mapping[str, int]
    """How many tasks each group had."""
    rates: Mapping[str, Mapping[str, float]]
    """Rate between 0 and 1 by model and group."""
    caution: str
    """What a reader must know before setting them beside others."""


_GROUPS = (ALL, Domain.AI.value, Domain.SCIENTIFIC.value, Domain.SYSTEMS.value)
_PAPER = {
    "gpt-5.3-codex": (51.0, 52.0, 42.9, 52.6),
    "gemini-3.1-pro": (27.5, 16.0, 57.1, 31.6),
    "grok-4.20": (11.8, 8.0, 14.3, 15.8),
    "gpt-5.4-mini": (7.8, 0.0, 0.0, 21.1),
}
"""Per cent, in the order of `_GROUPS`."""

BASELINES: Mapping[str, Baseline] = {
    "paper": Baseline(
        title="DeployBench, arXiv 2606.05238",
        tasks=dict(zip(_GROUPS, (51, 25, 7, 19), strict=True)),
        rates={
            model: dict(zip(_GROUPS, (rate / 100 for rate in rates), strict=True)) for model, rates in _PAPER.items()
        },
        caution="The paper's tasks, machines and agents are not those of this run: read its figures as a scale.",
    )
}
"""By the name that `--deploybench-baseline` takes."""
