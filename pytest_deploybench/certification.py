"""Certificates: evidence that on this version of a task `reference` PASSED while `noop` and `shallow` FAILED.

A certificate is made from trial records only and bound to the digest of the task's folder, so that any change of the
task makes it stale. No certificate is ever written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_deploybench.model import RunRecord, TrialRecord, Verdict

FILENAME = "certification.json"
WITNESSES = {"reference": Verdict.PASSED, "noop": Verdict.FAILED, "shallow": Verdict.FAILED}
"""The agents that testify, and what each must end in."""


def shortcomings(task: str, digest: str, trials: Sequence[TrialRecord]) -> list[str]:
    """Why these trials do not certify the task, one sentence each; empty when they do."""
    by_agent = {trial.agent: trial for trial in trials if trial.task == task}
    missing = [f"{task}: no trial of {agent}" for agent in WITNESSES if agent not in by_agent]
    stale = [
        f"{task}: the folder changed while {trial.agent} ran; certify again"
        for trial in by_agent.values()
        if trial.task_digest != digest
    ]
    wrong = [
        f"{task}: {agent} ended {by_agent[agent].verdict}, not {verdict}: {by_agent[agent].reason}"
        for agent, verdict in WITNESSES.items()
        if agent in by_agent and by_agent[agent].verdict is not verdict
    ]
    return missing + stale + wrong


def merged(runs: Sequence[RunRecord]) -> RunRecord:
    """Several runs as one: of each witness the latest trial that was judged at all."""
    ordered = sorted(runs, key=lambda run: run.finished_at)
    latest: dict[tuple[str, str], TrialRecord] = {}
    for trial in (trial for run in ordered for trial in run.trials):
        name = trial.task, trial.agent
        if name not in latest or trial.verdict is not Verdict.INVALID:
            latest[name] = trial
    return replace(ordered[-1], trials=tuple(latest.values()))


def certificate(task: str, digest: str, run: RunRecord) -> dict[str, Any]:
    """The certificate's content for a task that has no shortcomings in this run."""
    trials = {trial.agent: trial for trial in run.trials if trial.task == task}
    machine = trials["reference"].machine
    return {
        "task": task,
        "digest": digest,
        "date": run.finished_at,
        "provider": run.provider,
        "image": machine.image if machine else None,
        "acceleration": machine.acceleration if machine else None,
        "speed_factor": machine.speed_factor if machine else None,
        "versions": run.versions,
        "witnesses": {agent: _testimony(trials[agent]) for agent in WITNESSES},
    }


def write(folder: Path, content: dict[str, Any]) -> Path:
    """Write the certificate into the task's folder."""
    path = folder / FILENAME
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def read(folder: Path) -> dict[str, Any] | None:
    """The certificate of a task; None where there is none or it cannot be read."""
    try:
        content = json.loads((folder / FILENAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _testimony(trial: TrialRecord) -> dict[str, Any]:
    return {
        "verdict": trial.verdict.value,
        "run_seed": trial.run_seed,
        "reason": trial.reason,
        "termination": trial.termination.value if trial.termination else None,
        "durations": trial.durations,
        "failed_checks": [check.name for check in trial.checks if check.outcome == "failed"],
    }
