"""Reads what is left of runs, as users name them, for the commands that report on them.

Promises a reviewer can check: no run is changed; what cannot be read costs one sentence and nothing else that can.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import click

from pytest_deploybench import earlier
from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import RunRecord, TrialKey, TrialRecord
from pytest_deploybench.redact import printable
from pytest_deploybench.reports.json import Salvaged, salvage_run
from pytest_deploybench.reports.merge import merge

PART_READ = 1
"""Exit status: there is a report, and it lacks what could not be read."""
NOTHING_READ = 2
"""Exit status: there is no report."""


@dataclass(frozen=True)
class Gathered:
    """All trials of the runs that a user named, each once."""

    run: RunRecord
    """With several runs, each trial's folder begins with its run's, as the user named it."""
    evidence: Mapping[TrialKey, Path]
    """The folder of each trial's evidence, which may be gone."""
    notes: tuple[str, ...]
    """Which trial was taken where several runs held it."""
    problems: tuple[str, ...]
    """What could not be read, one sentence each."""


def gather(paths: Sequence[Path]) -> Gathered:
    """The runs in these folders or files as one.

    Raises:
        UsageError: nothing of them could be read; one line for each thing that is wrong.
    """
    runs: list[tuple[Path, RunRecord]] = []
    problems: list[str] = []
    for path in paths:
        salvaged = _read(path)
        problems += map(printable, salvaged.problems)
        if salvaged.run is not None:
            runs.append((path, salvaged.run))
    if not runs:
        raise UsageError("\n".join(problems))
    merged = merge([run for _, run in runs], [str(path) for path, _ in runs])
    evidence = {trial.key: _root(runs[merged.origins[trial.key]][0]) / trial.folder for trial in merged.run.trials}
    run = merged.run
    if len(runs) > 1:
        run = replace(run, trials=tuple(replace(t, folder=evidence[t.key].as_posix()) for t in run.trials))
    return Gathered(run, evidence, tuple(map(printable, merged.notes)), tuple(problems))


def _root(path: Path) -> Path:
    """The folder to which a run's evidence is relative."""
    return path if path.is_dir() else path.parent


def _read(path: Path) -> Salvaged:
    file = path / earlier.RUN_FILE if path.is_dir() else path
    try:
        salvaged = salvage_run(earlier.read(file), file)
    except UsageError as error:
        salvaged = Salvaged(None, (str(error),))
    return _from_trials(path, salvaged) if salvaged.run is None and path.is_dir() else salvaged


def _from_trials(folder: Path, whole: Salvaged) -> Salvaged:
    """A run made of its trials' own records, where its session did not live to write them all into one file."""
    recorded = earlier.trials(folder)
    trials, told = recorded.trials, (*whole.problems, *recorded.problems)
    if not trials:
        return Salvaged(None, told)
    last = max(map(_ended, trials)).isoformat()
    run = replace(_frame(folder, trials), trials=trials, finished_at=last)
    return Salvaged(run, (*told, f"{folder}: the records of its {len(trials)} finished trials are used instead"))


def _ended(trial: TrialRecord) -> datetime:
    return datetime.fromisoformat(trial.started_at) + timedelta(seconds=trial.durations.get("total", 0.0))


def _frame(folder: Path, trials: Sequence[TrialRecord]) -> RunRecord:
    """What the session left word of when it began; made up from its trials where not even that is there."""
    with suppress(UsageError):
        if run := salvage_run(earlier.read(folder / earlier.BEGUN_FILE)).run:
            return run
    started = [trial.started_at for trial in trials]
    providers = dict.fromkeys(trial.machine.provider for trial in trials if trial.machine)
    return RunRecord(
        run_id=folder.resolve().name,
        started_at=min(started),
        finished_at=max(started),
        command=(),
        provider=" + ".join(providers),
        run_seed=trials[0].run_seed,
        versions={},
        trials=(),
    )


def gather_or_exit(paths: Sequence[Path]) -> Gathered:
    """The runs in these folders or files as one; where nothing can be read, say why and end the program."""
    try:
        gathered = gather(paths)
    except UsageError as error:
        tell_problems(str(error).splitlines())
        sys.exit(NOTHING_READ)
    tell_problems(gathered.problems)
    return gathered


def tell_problems(problems: Sequence[str]) -> None:
    """Tell on standard error what could not be read."""
    for problem in problems:
        click.secho(f"left out: {problem}", fg="red", err=True)


def write(file: Path, text: str) -> None:
    """Write what the user asked for.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}. Name another file") from error


def relative_to(file: Path, gathered: Gathered) -> RunRecord:
    """The run as it is written into a file: each trial's folder as seen from there."""
    start = file.parent.resolve()
    return replace(
        gathered.run,
        trials=tuple(
            replace(trial, folder=Path(os.path.relpath(gathered.evidence[trial.key].resolve(), start)).as_posix())
            for trial in gathered.run.trials
        ),
    )


def width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns


def color() -> bool:
    """Whether the output may be coloured."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
