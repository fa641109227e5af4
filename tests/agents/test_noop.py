"""The agent that does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench import registry
from pytest_deploybench.agents.noop import NoopAgent
from pytest_deploybench.model import AgentRun, Termination


class Untouchable:
    """A machine and a task that fail whoever looks at them."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the noop agent used {name}")


def test_it_touches_nothing_and_claims_nothing(tmp_path: Path) -> None:
    nothing: Any = Untouchable()
    run = NoopAgent().run(nothing, nothing, 60.0, tmp_path / "evidence")
    assert run == AgentRun(Termination.FINISHED, seconds=0.0, budget_s=60.0)
    assert run.claimed_success is None
    assert (tmp_path / "evidence" / "agent.log").read_text()


@pytest.mark.parametrize("name", ["noop", "reference", "shallow"])
def test_it_is_found_by_name_and_needs_no_model(name: str) -> None:
    assert registry.load(registry.AGENTS, name)().needs_model is False
