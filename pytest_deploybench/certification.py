"""Certificates: evidence that on this version of a task `reference` PASSED while `noop` and `shallow` FAILED.

A certificate is made from trial records only and bound to the digest of the task's folder, so that any change of the
task makes it stale. No certificate is ever written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from pytest_deploybench import taskfile
from pytest_deploybench.model import Outcome, RunRecord, Termination, TrialRecord, Verdict

FILENAME = taskfile.CERTIFICATE
WITNESSES = {"reference": Verdict.PASSED, "noop": Verdict.FAILED, "shallow": Verdict.FAILED}
"""The agents that testify, and what each must end in."""


@dataclass(frozen=True)
class Statement:
    """What one witness said."""

    verdict: Verdict
    reason: str
    termination: Termination | None
    durations: dict[str, float]
    """Seconds by phase, on the certified machine."""
    failed_checks: tuple[str, ...]
    run_seed: int | None = None
    """What `--deploybench-seed` takes to draw the same challenge again."""


@dataclass(frozen=True)
class Certificate:
    """The content of certification.json."""

    task: str
    digest: str
    date: str
    provider: str
    image: str | None
    acceleration: str | None
    speed_factor: float | None
    versions: dict[str, str]
    witnesses: dict[str, Statement]


class State(StrEnum):
    """Whether a task can be trusted; the value says it in words."""

    CERTIFIED = "certified"
    MISSING = "it was never certified"
    STALE = "the folder changed since it was certified"
    UNFIT = "it is no certificate of this task: it is damaged, or a witness in it said otherwise than it must"


def state(folder: Path) -> State:
    """What the certificate beside a task says of the task as it is now."""
    if not (folder / FILENAME).exists():
        return State.MISSING
    content = read(folder)
    if content is None or content.task != folder.name:
        return State.UNFIT
    if {agent: said.verdict for agent, said in content.witnesses.items()} != WITNESSES:
        return State.UNFIT
    return State.CERTIFIED if content.digest == taskfile.digest(folder) else State.STALE


def testifies(trial: TrialRecord, digest: str) -> bool:
    """Whether this trial is what the certificate of the task with this digest needs from that witness."""
    return trial.agent in WITNESSES and trial.task_digest == digest and not _objection(trial)


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
        f"{task}: {agent} {why}" for agent in WITNESSES if agent in by_agent and (why := _objection(by_agent[agent]))
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


def certificate(task: str, digest: str, run: RunRecord) -> Certificate:
    """The certificate of a task that has no shortcomings in this run."""
    trials = {trial.agent: trial for trial in run.trials if trial.task == task}
    machine = trials["reference"].machine
    return Certificate(
        task=task,
        digest=digest,
        date=run.finished_at,
        provider=machine.provider if machine else run.provider,
        image=machine.image if machine else None,
        acceleration=machine.acceleration if machine else None,
        speed_factor=machine.speed_factor if machine else None,
        versions=run.versions,
        witnesses={agent: _statement(trials[agent]) for agent in WITNESSES},
    )


def write(folder: Path, content: Certificate) -> Path:
    """Write the certificate into the task's folder."""
    path = folder / FILENAME
    path.write_text(json.dumps(asdict(content), indent=2) + "\n", encoding="utf-8")
    return path


def read(folder: Path) -> Certificate | None:
    """The certificate of a task; None where there is none or it is damaged."""
    # Imported here: whoever only asks for the witnesses does not pay for the validation.
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Certificate).validate_json((folder / FILENAME).read_bytes())
    except (OSError, ValidationError):
        return None


def observed_s(content: Certificate | None, agent: str) -> float | None:
    """Native seconds that a witness's trial took by a certificate; None where it does not say."""
    testimony = content.witnesses.get(agent) if content else None
    seconds = testimony.durations.get("total") if testimony else None
    return seconds / (content.speed_factor or 1.0) if content and seconds else None


def _statement(trial: TrialRecord) -> Statement:
    return Statement(
        verdict=trial.verdict,
        run_seed=trial.run_seed,
        reason=trial.reason,
        termination=trial.termination,
        durations=trial.durations,
        failed_checks=tuple(check.name for check in trial.checks if check.outcome is Outcome.FAILED),
    )


def _objection(trial: TrialRecord) -> str:
    """Why this witness cannot be heard; empty where it can."""
    expected = WITNESSES[trial.agent]
    if trial.verdict is not expected:
        return f"ended {trial.verdict}, not {expected}: {trial.reason}"
    if trial.machine and trial.machine.no_benchmark:
        return f"ran on {trial.machine.provider}, which certifies nothing: {trial.machine.no_benchmark}"
    if trial.termination is not Termination.FINISHED:
        return f"ended by {trial.termination}, so it is not known what it deployed: its agent.log says where"
    return ""
