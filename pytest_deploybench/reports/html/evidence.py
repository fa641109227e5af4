"""What one trial left to read, as values; whoever reads the files makes them."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_deploybench.reports.html.log import Log
from pytest_deploybench.reports.html.trajectory import Trajectory


@dataclass(frozen=True)
class Evidence:
    """What one trial left to read; None where there is no such file."""

    trajectory: Trajectory | None = None
    agent_log: Log | None = None
    experiment_log: Log | None = None
    runbook: Log | None = None
    traces: int = 0
    """Lines that Layer 1 read before the experiment's log; its line numbers count them."""
    problems: tuple[str, ...] = ()
    """What is there and could not be read, one sentence each."""
