"""Folds the reports of a trial into its record. Pure: values in, a value out.

pytest reports each check in up to three phases. What a failure means depends on the phase: the check itself speaks
about the deployment, setup and teardown are ours, and `???` is xdist's word for a worker that crashed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_deploybench import verdict
from pytest_deploybench.layer2.challenge import trial_seed
from pytest_deploybench.model import Check, Fault, Outcome, Task, TrialKey, TrialRecord
from pytest_deploybench.trial import Diary

_MEANING: dict[tuple[str, str], Outcome] = {
    ("setup", "failed"): Outcome.ERROR,
    ("setup", "skipped"): Outcome.SKIPPED,
    ("call", "passed"): Outcome.PASSED,
    ("call", "failed"): Outcome.FAILED,
    ("call", "skipped"): Outcome.SKIPPED,
    ("teardown", "failed"): Outcome.ERROR,
    ("teardown", "skipped"): Outcome.SKIPPED,
    ("???", "failed"): Outcome.ERROR,
}
"""What a phase says of its check; a phase that is not here says nothing."""

_WEIGHT = (Outcome.PASSED, Outcome.SKIPPED, Outcome.ERROR, Outcome.FAILED)
"""Of a check's phases the last in this order decides: a teardown that breaks does not take back a failure."""


@dataclass(frozen=True)
class Phase:
    """One report of pytest, without pytest."""

    check: str
    layer: int
    when: str
    outcome: str
    seconds: float
    message: str = ""
    fault: Fault | None = None


@dataclass(frozen=True)
class Subject:
    """What is known of a trial before any of its checks ran."""

    key: TrialKey
    task: Task
    digest: str
    run_seed: int
    started_at: str


def fold(subject: Subject, phases: Sequence[Phase], diary: Diary | None, expected: int) -> TrialRecord:
    """The record of a trial; `expected` is how many checks its task has, whether or not they were selected."""
    key, task = subject.key, subject.task
    found = checks(phases)
    fault = next((phase.fault for phase in phases if phase.fault), None)
    agent_run = diary.agent_run if diary else None
    termination = agent_run.termination if agent_run else None
    judged, reason = verdict.judge(found, fault, termination, expected=expected)
    return TrialRecord(
        task=key.task,
        agent=key.agent,
        model=key.model,
        attempt=key.attempt,
        verdict=judged,
        reason=reason,
        termination=termination,
        checks=found,
        durations=_durations(phases, diary),
        seed=trial_seed(subject.run_seed, key.task, key.attempt),
        run_seed=subject.run_seed,
        domain=task.domain,
        labels=task.labels,
        task_digest=subject.digest,
        folder=key.folder.as_posix(),
        started_at=diary.started_at if diary else subject.started_at,
        machine=diary.facts if diary else None,
        agent_run=agent_run,
        findings=tuple(diary.findings) if diary else (),
        tries=tuple(diary.tries) if diary else (),
        vitals=diary.vitals if diary else None,
        model_use=diary.model_use if diary else None,
        kept=diary.kept if diary else None,
        verified_again=diary.verified_again if diary else None,
    )


def checks(phases: Sequence[Phase]) -> tuple[Check, ...]:
    """The checks that ended, in the order in which they ran."""
    by_name: dict[str, list[Phase]] = {}
    for phase in phases:
        by_name.setdefault(phase.check, []).append(phase)
    return tuple(check for group in by_name.values() if (check := _check(group)))


def _check(phases: Sequence[Phase]) -> Check | None:
    telling = [(outcome, phase) for phase in phases if (outcome := _MEANING.get((phase.when, phase.outcome)))]
    if not telling:
        return None
    outcome, decisive = max(telling, key=lambda pair: _WEIGHT.index(pair[0]))
    return Check(
        name=decisive.check,
        layer=decisive.layer,
        outcome=outcome,
        seconds=round(sum(phase.seconds for phase in phases if phase.when == "call"), 3),
        message=decisive.message,
    )


def _durations(phases: Sequence[Phase], diary: Diary | None) -> dict[str, float]:
    return {
        **(diary.durations if diary else {}),
        "checks": round(sum(phase.seconds for phase in phases if phase.when == "call"), 3),
        "total": round(sum(phase.seconds for phase in phases), 3),
    }
