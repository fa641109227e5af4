"""The shape of all tasks together: what the benchmark as a whole promises, and how far it has come.

This file performs no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_deploybench.model import Task

SHAPE = {
    "ai": 25,
    "systems": 19,
    "scientific": 7,
    "gpu": 22,
    "qemu": 5,
    "legacy": 10,
    "easy": 12,
    "medium": 20,
    "hard": 19,
}
"""How many tasks bear each label when the benchmark is whole; 51 in three domains."""
WHOLE = SHAPE["ai"] + SHAPE["systems"] + SHAPE["scientific"]
LEAST_LANGUAGES = 11
"""Different main languages, the first that each task names."""
YEARS = (2008, 2025)
LEGACY_YEARS = (2011, 2018)


def exceeded(tasks: Sequence[Task]) -> list[str]:
    """Bounds that these tasks break, one sentence each: no task that is added can mend that."""
    counts = _counts(tasks)
    over = [
        f"{counts[label]} tasks are labelled {label}, {most} at most: {', '.join(_bearers(tasks, label))}"
        for label, most in SHAPE.items()
        if counts[label] > most
    ]
    old = [task for task in tasks if task.legacy]
    return over + _out_of_years("papers", tasks, YEARS) + _out_of_years("papers of legacy tasks", old, LEGACY_YEARS)


def missing(tasks: Sequence[Task]) -> list[str]:
    """What is still to come, one phrase each; empty when the benchmark is whole."""
    counts = _counts(tasks)
    lacking = [f"{wanted - counts[label]} {label}" for label, wanted in SHAPE.items() if counts[label] < wanted]
    languages = len({task.languages[0] for task in tasks})
    if languages < LEAST_LANGUAGES:
        lacking.append(f"{LEAST_LANGUAGES - languages} main languages")
    years = {task.paper.year for task in tasks}
    lacking += [f"a paper of {year}" for year in YEARS if year not in years]
    return lacking


def _out_of_years(what: str, tasks: Sequence[Task], years: tuple[int, int]) -> list[str]:
    first, last = years
    return [
        f"{task.id}: {what} are of {first} to {last}, and this one is of {task.paper.year}"
        for task in tasks
        if not first <= task.paper.year <= last
    ]


def _counts(tasks: Sequence[Task]) -> dict[str, int]:
    return {label: len(_bearers(tasks, label)) for label in SHAPE}


def _bearers(tasks: Sequence[Task], label: str) -> list[str]:
    return [task.id for task in tasks if label in task.labels]
