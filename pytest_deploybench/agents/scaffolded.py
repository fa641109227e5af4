"""The common part of agents whose loop is somebody else's scaffold, run by a driver of ours in the scaffold's Python.

A subclass says which scaffold and which driver, what that driver is told beside the common things, and what environment
the scaffold wants.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from pytest_deploybench.agents import driving
from pytest_deploybench.agents.addressing import base_url, litellm_name
from pytest_deploybench.agents.child import Launch
from pytest_deploybench.agents.environments import Scaffold
from pytest_deploybench.model import AgentRun, Brief, Readiness, Task
from pytest_deploybench.ports import Machine, Progress

_DRIVERS = Path(__file__).parent / "drivers"
_OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True"}
"""litellm would otherwise fetch tables from the internet before its first call."""


class ScaffoldedAgent:
    """Drives a model through a scaffold. Raises what `driving.drive` raises."""

    needs_model = True
    scaffold: ClassVar[Scaffold]
    driver: ClassVar[str]
    """File among our drivers."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief

    @classmethod
    def prepare(cls, progress: Progress) -> None:
        """Install the scaffold, unless it is there."""
        cls.scaffold.prepare(progress)

    @classmethod
    def readiness(cls) -> Readiness:
        """Whether it is installed, or can be."""
        return cls.scaffold.readiness()

    def run(
        self,
        machine: Machine,
        task: Task,  # noqa: ARG002 - what it may know of the task lies on the machine
        budget_s: float,
        folder: Path,
    ) -> AgentRun:
        return driving.drive(self._brief, machine, budget_s, folder, self._launch)

    def _work(self, brief: Brief, place: driving.Workplace) -> dict[str, Any]:
        """What this driver is told beside prompt, model and the way to it."""
        raise NotImplementedError

    def _environment(self, place: driving.Workplace) -> dict[str, str]:
        """What this scaffold wants in its environment."""
        raise NotImplementedError

    def _launch(self, place: driving.Workplace) -> Launch:
        brief = self._brief
        common = {
            "prompt": place.prompt,
            "model": litellm_name(brief),
            "base_url": base_url(brief),
            "token": brief.token,
        }
        # Over stdin, so that the token stands in no environment and on no command line.
        return Launch(
            [str(self.scaffold.interpreter()), "-P", str(_DRIVERS / self.driver)],
            json.dumps(common | self._work(brief, place)).encode(),
            _OFFLINE | self._environment(place),
        )
