"""Each task of the benchmark keeps each rule. A certificate may be missing, never wrong: see `deploybench tasks`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pytest_deploybench import hygiene

TASKS = Path(__file__).parents[2] / "tasks"
IDS = sorted(file.parent.name for file in TASKS.glob("*/task.yaml"))


@cache
def folder(name: str) -> hygiene.Folder:
    """One for all rules, so that each task draws its challenges once."""
    return hygiene.Folder(TASKS / name)


@pytest.mark.parametrize("rule", [rule for rule in hygiene.RULES if rule not in hygiene.NOTES])
@pytest.mark.parametrize("task", IDS)
def test_task_keeps_rule(task: str, rule: str) -> None:
    complaints = [str(complaint) for complaint in hygiene.RULES[rule](folder(task))]
    assert not complaints, "\n".join(complaints)


def test_no_folder_is_overlooked() -> None:
    folders = {path.name for path in TASKS.iterdir() if path.is_dir() and not path.name.startswith(("__", "."))}
    assert folders == set(IDS), "each folder under tasks/ has a task.yaml"
