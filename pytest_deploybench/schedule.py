"""How long a trial will take, and how trials are spread by that. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_deploybench.model import Task


def expected_s(task: Task, observed_s: float | None = None) -> float:
    """Native seconds that a trial is expected to take.

    `observed_s` is what a trial of the same agent took; without one it is what the task allows, since an agent that
    drives a model may well use all of it.
    """
    return task.agent_budget_s + task.experiment_budget_s if observed_s is None else observed_s


def shards(expected: Mapping[str, float], count: int) -> list[frozenset[str]]:
    """Split trials into `count` parts of about the same duration: the longest first, each to the part with least.

    The same on every machine: ties go by name, and between parts to the first.
    """
    parts: list[set[str]] = [set() for _ in range(count)]
    loads = [0.0] * count
    for name in sorted(expected, key=lambda name: (-expected[name], name)):
        least = min(range(count), key=loads.__getitem__)
        parts[least].add(name)
        loads[least] += expected[name]
    return [frozenset(part) for part in parts]
