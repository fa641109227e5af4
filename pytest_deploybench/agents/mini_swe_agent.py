"""mini-swe-agent: one bash command a step, each in a new shell on the machine."""

from __future__ import annotations

from typing import Any

from pytest_deploybench.agents.driving import Workplace
from pytest_deploybench.agents.environments import Scaffold
from pytest_deploybench.agents.scaffolded import ScaffoldedAgent
from pytest_deploybench.model import Brief

SCAFFOLD = Scaffold(
    name="mini-swe-agent",
    requirements=("mini-swe-agent==2.4.6", "litellm==1.105.7"),
    pythons=("3.12", "3.13", "3.11"),
    module="minisweagent",
    size="750 MB",
)


class MiniSweAgent(ScaffoldedAgent):
    """Drives a model through mini-swe-agent. Raises what `driving.drive` raises."""

    scaffold = SCAFFOLD
    driver = "mini_swe_agent.py"

    def _work(self, brief: Brief, place: Workplace) -> dict[str, Any]:  # noqa: ARG002 - the base's
        return {"responses": brief.dialect == "responses", "steps": brief.max_steps or 0}

    def _environment(self, place: Workplace) -> dict[str, str]:
        return {
            "MSWEA_SILENT_STARTUP": "1",
            "MSWEA_GLOBAL_CONFIG_DIR": str(place.folder / "mini"),
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
        }
