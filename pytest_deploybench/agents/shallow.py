"""Deploys something that looks right and is not, through the task's own `shallow.sh`; it must FAIL."""

from __future__ import annotations

from pathlib import Path

from pytest_deploybench.agents.script import run_script
from pytest_deploybench.model import AgentRun, Task
from pytest_deploybench.ports import Machine

SCRIPT = "shallow.sh"


class ShallowAgent:
    """Runs `shallow.sh` of the task's folder. Raises what `script.run_script` raises."""

    needs_model = False

    def run(self, machine: Machine, task: Task, budget_s: float, folder: Path) -> AgentRun:
        return run_script(SCRIPT, machine, task, budget_s, folder)
