"""Does nothing and ends at once: no task may PASS because of how a machine comes out of the box."""

from __future__ import annotations

from pathlib import Path

from pytest_deploybench.model import AgentRun, Task, Termination
from pytest_deploybench.ports import Machine


class NoopAgent:
    """Leaves the machine untouched and claims nothing."""

    needs_model = False

    def run(
        self,
        machine: Machine,  # noqa: ARG002 - it does nothing with it, on purpose
        task: Task,  # noqa: ARG002
        budget_s: float,
        folder: Path,
    ) -> AgentRun:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "agent.log").write_text("[deploybench: noop does nothing]\n", encoding="utf-8")
        return AgentRun(Termination.FINISHED, seconds=0.0, budget_s=budget_s)
