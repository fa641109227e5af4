"""OpenHands: its own agent loop and terminal tool, the terminal's shell being one on the machine. The default agent."""

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
    name="openhands",
    requirements=(
        "openhands-sdk==1.58.2",
        "openhands-tools==1.58.2",
        "litellm>=1.93,<1.106,!=1.107.0",
    ),
    pythons=("3.12", "3.13"),
    module="openhands.tools",
    size="660 MB",
)
DRIVER = Path(__file__).parent / "drivers" / "openhands.py"

# One file, since OpenHands takes a path and adds `-i`. A dumb terminal without line editing: else the output is full of
# escapes, and long commands are echoed mangled.
_SHELL = """\
#!/bin/sh
exec ssh -tt vm 'cd; export TERM=dumb PAGER=cat GIT_PAGER=cat PIP_PROGRESS_BAR=off; exec bash --norc --noediting -i'
"""


class OpenHandsAgent:
    """Drives a model through OpenHands. Raises what `driving.drive` raises."""

    needs_model = True

    def __init__(self, brief: Brief) -> None:
        self._brief = brief

    @classmethod
    def prepare(cls, progress: Progress) -> None:
        """Install OpenHands, unless it is there."""
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
        shell = place.folder / "shell"
        shell.write_text(_SHELL, encoding="utf-8")
        shell.chmod(0o700)
        work = {
            "prompt": place.prompt,
            "model": litellm_name(brief),
            "api_mode": "responses" if brief.dialect == "responses" else "chat",
            "base_url": base_url(brief),
            "token": brief.token,
            "steps": brief.max_steps,
            "shell": str(shell),
        }
        # Over stdin, so that the token stands in no environment and on no command line.
        return Launch(
            [str(SCAFFOLD.interpreter()), "-P", str(DRIVER)],
            json.dumps(work).encode(),
            {
                "OPENHANDS_SUPPRESS_BANNER": "1",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
            },
        )
