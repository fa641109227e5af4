"""A certificate vouches for the folder beside it and for no other version of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_deploybench import certification, taskfile
from pytest_deploybench.model import Task

TASKS = taskfile.discover(Path(__file__).parents[2] / "tasks")
CERTIFIED = [task for task in TASKS if (task.folder / certification.FILENAME).exists()]


@pytest.mark.parametrize("task", CERTIFIED, ids=lambda task: task.id)
def test_no_certificate_is_stale(task: Task) -> None:
    content = certification.read(task.folder)
    assert content is not None
    assert (content["task"], content["digest"]) == (task.id, taskfile.digest(task.folder)), (
        f"{task.id} changed since it was certified: run `deploybench certify {task.id}`"
    )
    assert {agent: entry["verdict"] for agent, entry in content["witnesses"].items()} == certification.WITNESSES


def test_any_change_of_a_folder_makes_its_certificate_stale(tmp_path: Path) -> None:
    folder = shutil.copytree(CERTIFIED[0].folder, tmp_path / CERTIFIED[0].id)
    certified = certification.read(folder)
    assert certified is not None
    assert certified["digest"] == taskfile.digest(folder)
    with (folder / "instruction.md").open("a") as instruction:
        instruction.write("\n")
    assert certified["digest"] != taskfile.digest(folder)
