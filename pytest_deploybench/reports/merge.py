"""Makes one run of several: shards of one benchmark, or a run and those that did its missing trials again.

Promises a reviewer can check: each trial (task, agent, model, attempt) is in the result once, whatever the runs hold;
of two verdicts on it none is chosen for being better; every choice is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pytest_deploybench.model import RunRecord, TrialKey, TrialRecord, Verdict


@dataclass(frozen=True)
class Merged:
    """Several runs as one."""

    run: RunRecord
    origins: Mapping[TrialKey, int]
    """The place, among the runs given, of the one from which a trial was taken."""
    notes: tuple[str, ...]
    """Which trial was taken where several runs held it, one sentence each."""


@dataclass(frozen=True)
class _Found:
    """A trial and where it was found."""

    trial: TrialRecord
    origin: int


_REASONS: Sequence[tuple[str, Callable[[TrialRecord, TrialRecord], bool], bool]] = (
    ("it is the same trial", lambda earlier, later: _bare(earlier) == _bare(later), False),
    ("the other one judged nothing", lambda _, later: later.verdict is Verdict.INVALID, False),
    ("the other one judged nothing", lambda earlier, _: earlier.verdict is Verdict.INVALID, True),
    ("the task was changed in between", lambda earlier, later: earlier.task_digest != later.task_digest, True),
    ("it verified again what was deployed", lambda _, later: later.verified_again is not None, True),
    ("the first verdict counts, since a second try would be a second chance", lambda *_: True, False),
)
"""Why one of two records of a trial is taken: the first reason that holds decides, True for the later one."""


def _bare(trial: TrialRecord) -> TrialRecord:
    """The trial without what tells in which run it lies."""
    return replace(trial, resumed_from=None, folder="")


def merge(runs: Sequence[RunRecord], names: Sequence[str]) -> Merged:
    """Several runs as one; `names` are what people call them.

    Raises:
        ValueError: no run is given.
    """
    taken: dict[TrialKey, _Found] = {}
    notes = []
    found = [_Found(trial, origin) for origin, run in enumerate(runs) for trial in run.trials]
    for later in sorted(found, key=lambda each: datetime.fromisoformat(each.trial.started_at)):
        key = later.trial.key
        earlier = taken.setdefault(key, later)
        if earlier is later:
            continue
        why, take_later = next((why, taking) for why, holds, taking in _REASONS if holds(earlier.trial, later.trial))
        if take_later:
            taken[key] = later
        used, other = (later, earlier) if take_later else (earlier, later)
        notes.append(
            f"{key.folder.as_posix()}: {used.trial.verdict} of {names[used.origin]} is taken, "
            f"not {other.trial.verdict} of {names[other.origin]}: {why}"
        )
    run = _run(runs, taken)
    notes += [*_different_settings(runs, names), *_different_tasks(run)]
    return Merged(run, {key: each.origin for key, each in taken.items()}, tuple(notes))


def _different_settings(runs: Sequence[RunRecord], names: Sequence[str]) -> Iterator[str]:
    """What the verdicts of a run depend on should be the same in all of its parts."""
    for option in sorted({option for run in runs for option in run.settings}):
        values = {name: run.settings.get(option, "not told") for name, run in zip(names, runs, strict=True)}
        if len(set(values.values())) > 1:
            told = ", ".join(f"{value} in {name}" for name, value in values.items())
            yield f"these runs were not made alike, {option}: {told}"


def _different_tasks(run: RunRecord) -> Iterator[str]:
    digests: dict[str, set[str]] = {}
    for trial in run.trials:
        digests.setdefault(trial.task, set()).add(trial.task_digest)
    for task, found in digests.items():
        if len(found) > 1:
            yield f"{task}: its folder changed between these trials, so they did not all meet the same task"


def _run(runs: Sequence[RunRecord], taken: Mapping[TrialKey, _Found]) -> RunRecord:
    """The frame of the first run around the trials of all."""
    if not runs:
        raise ValueError("no run to merge")
    order = sorted(taken, key=lambda key: (key.task, key.agent, key.model or "", key.attempt))
    return replace(
        runs[0],
        run_id=" + ".join(dict.fromkeys(run.run_id for run in runs)),
        started_at=min((run.started_at for run in runs), key=datetime.fromisoformat),
        finished_at=max((run.finished_at for run in runs), key=datetime.fromisoformat),
        provider=" + ".join(dict.fromkeys(run.provider for run in runs)),
        trials=tuple(taken[key].trial for key in order),
        swept=tuple(dict.fromkeys(line for run in runs for line in run.swept)),
    )
