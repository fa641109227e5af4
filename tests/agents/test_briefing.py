"""What the model is told: the two files that lie on the machine, and nothing of the verifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench import taskfile
from pytest_deploybench.agents.briefing import prompt
from pytest_deploybench.handover import task_md

TASKS = Path(__file__).parents[2] / "tasks"


def test_it_holds_both_files_as_they_are_and_the_time_left() -> None:
    text = prompt("Deploy {this}.", "About %s and {that}.", 5400.0)
    assert "Deploy {this}." in text
    assert "About %s and {that}." in text
    assert "about 90 minutes" in text


@pytest.mark.parametrize(
    "folder", [path.parent for path in sorted(TASKS.glob("*/task.yaml"))], ids=lambda path: path.name
)
def test_nothing_of_the_verifier_is_in_it(folder: Path) -> None:
    task = taskfile.load(folder)
    text = prompt(task_md(task, ["artifact"], 3600.0, 0.0), (folder / "paper.md").read_text(), 3600.0)
    for needed in ("RUNBOOK.md", "env.sh", "No containers", "UTC"):
        assert needed in text
    checks = [line for line in (folder / f"test_{task.id}.py").read_text().splitlines() if line.startswith("def test_")]
    for check in checks:
        assert check.removeprefix("def ").partition("(")[0] not in text
    for script in ("reference.sh", "shallow.sh", "certification.json", "deploybench"):
        assert script not in text
