"""mini-swe-agent: one bash command a step, each in a new shell on the machine."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_deploybench.agents import driving
from pytest_deploybench.agents.addressing import base_url, litellm_name
from pytest_deploybench.agents.child import Launch
from pytest_deploybench.agents.environments import Scaffold
from pytest_deploybench.model import AgentRun, Brief, Readiness, Task
from pytest_deploybench.ports import Machine, Progress

SCAFFOLD = Scaffold(
    name="mini-swe-agent",
    requirements=("mini-swe-agent==2.4.6", "litellm>=1.93,<1.106,!=1.107.0"),
    pythons=("3.12", "3.13", "3.11"),
    module="minisweagent",
    size="750 MB",
)
DRIVER = Path(__file__).parent / "drivers" / "mini_swe_agent.py"


class MiniSweAgent:
    """Drives a model through mini-swe-agent. Raises what `driving.drive` raises."""

    needs_model = True

    def __init__(self, brief: Brief) -> None:
        self._brief = brief

    @classmethod
    def prepare(cls, progress: Progress) -> None:
        """Install mini-swe-agent, unless it is there."""
        SCAFFOLD.prepare(progress)

    @classmethod
    def readiness(cls) -> Readiness:
        """Whether it is installed, or can be."""
        return SCAFFOLD.readiness()

    def run(
        self,
        machine: Machine,
        task: Task,  # noqa: ARG002 - what it may know of the task lies on the machine
        budget_s: float,
        folder: Path,
    ) -> AgentRun:
        return driving.drive(self._brief, machine, budget_s, folder, self._launch)

    def _launch(self, place: driving.Workplace) -> Launch:
        brief = self._brief
        work = {
            "prompt": place.prompt,
            "model": litellm_name(brief),
            "responses": brief.dialect == "responses",
            "base_url": base_url(brief),
            "token": brief.token,
            "steps": brief.max_steps or 0,
        }
        # Over stdin, so that the token stands in no environment and on no command line.
        return Launch(
            [str(SCAFFOLD.interpreter()), "-P", str(DRIVER)],
            json.dumps(work).encode(),
            {
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_GLOBAL_CONFIG_DIR": str(place.folder / "mini"),
                "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
            },
        )
