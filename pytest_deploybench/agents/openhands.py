"""OpenHands: its own agent loop and terminal tool, the terminal's shell being one on the machine. The default agent."""

from __future__ import annotations

from typing import Any

from pytest_deploybench.agents.driving import Workplace
from pytest_deploybench.agents.environments import Scaffold
from pytest_deploybench.agents.scaffolded import ScaffoldedAgent
from pytest_deploybench.model import Brief

SCAFFOLD = Scaffold(
    name="openhands",
    requirements=(
        "openhands-sdk==1.58.2",
        "openhands-tools==1.58.2",
        "litellm==1.105.7",
    ),
    pythons=("3.12", "3.13"),
    module="openhands.tools",
    size="660 MB",
)

# One file, since OpenHands takes a path and adds `-i`. A dumb terminal without line editing: else the output is full of
# escapes, and long commands are echoed mangled.
_SHELL = """\
#!/bin/sh
exec ssh -tt vm 'cd; export TERM=dumb PAGER=cat GIT_PAGER=cat PIP_PROGRESS_BAR=off; exec bash --norc --noediting -i'
"""


class OpenHandsAgent(ScaffoldedAgent):
    """Drives a model through OpenHands. Raises what `driving.drive` raises."""

    scaffold = SCAFFOLD
    driver = "openhands.py"

    def _work(self, brief: Brief, place: Workplace) -> dict[str, Any]:
        shell = place.folder / "shell"
        shell.write_text(_SHELL, encoding="utf-8")
        shell.chmod(0o700)
        api_mode = "responses" if brief.dialect == "responses" else "chat"
        return {"api_mode": api_mode, "steps": brief.max_steps, "shell": str(shell)}

    def _environment(self, place: Workplace) -> dict[str, str]:  # noqa: ARG002 - the base's
        return {"OPENHANDS_SUPPRESS_BANNER": "1"}
