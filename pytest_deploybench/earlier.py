"""Reads an earlier run back, as users name it: by its folder or by its JSON report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import RunRecord, TrialRecord
from pytest_deploybench.reports.json import Salvaged, load_run, load_trial, salvage_run

RUN_FILE = "run.json"
BEGUN_FILE = "begun.json"
"""A run.json without trials, written when the first one begins, for a session that does not live to write the whole."""
TRIAL_FILE = "record.json"


def load(path: Path, option: str) -> RunRecord:
    """The run in this folder or file; `option` is how the user named it.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    file = path / RUN_FILE if path.is_dir() else path
    try:
        return load_run(file.read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{option}={path}: {error}. Name a run's folder, or the file that --deploybench-json named"
        ) from error


def salvage(path: Path, option: str) -> Salvaged:
    """What is left of the run in this folder or file, which may have been killed.

    In a folder the records of its trials count, since each was written when its trial was over and a user may have
    taken one away; only where there is none, the run's own file does.

    Raises:
        UsageError: there is nothing that tells what run it was.
    """
    if not path.is_dir():
        return _whole(path, option)
    recorded = trials(path)
    problems: list[str] = []
    for file in (path / name for name in (RUN_FILE, BEGUN_FILE) if (path / name).exists()):
        try:
            salvaged = _whole(file, option)
        except UsageError as error:
            problems.append(str(error))
            continue
        if salvaged.run is not None and (recorded.trials or recorded.problems):
            salvaged = Salvaged(replace(salvaged.run, trials=recorded.trials), recorded.problems)
        return replace(salvaged, problems=(*problems, *salvaged.problems))
    raise UsageError("\n".join(problems) or f"{option}={path}: no {RUN_FILE} in it. Name a run's folder")


@dataclass(frozen=True)
class Recorded:
    """The trials that wrote records of their own, and why others cannot be read, one sentence each."""

    trials: tuple[TrialRecord, ...]
    problems: tuple[str, ...]


def trials(folder: Path) -> Recorded:
    """The trials' own records in a run's folder, each of which was written when its trial was over."""
    found: list[TrialRecord] = []
    problems: list[str] = []
    for file in sorted(attempt / TRIAL_FILE for attempt in folder.glob("*/*/attempt-*") if attempt.is_dir()):
        if not file.exists() and not file.is_symlink():
            continue  # its trial was not over when the session was killed, or the user took it away
        try:
            trial = load_trial(read(file), file)
        except UsageError as error:
            problems.append(str(error))
            continue
        if folder / trial.key.folder == file.parent:
            found.append(trial)
        else:
            problems.append(f"{file}: it is the record of another trial, {trial.key.folder.as_posix()}")
    return Recorded(tuple(found), tuple(problems))


def read(file: Path) -> str:
    """The text of a run's file.

    Raises:
        UsageError: it cannot be read; one sentence that says why and what to do.
    """
    try:
        if file.is_symlink() and not file.exists():
            raise UsageError(f"{file}: a symbolic link to nowhere, {file.readlink()}. Put back what it stood for")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 ({error.reason}). The file is damaged; take it from a backup") from error
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}. Name a run's folder, or its JSON file") from error


def _whole(file: Path, option: str) -> Salvaged:
    try:
        salvaged = salvage_run(read(file), file)
    except UsageError as error:
        raise UsageError(f"{option}={error}") from error
    if salvaged.run is None:
        raise UsageError("\n".join(salvaged.problems))
    return salvaged
