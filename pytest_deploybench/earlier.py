"""Reads an earlier run back, as users name it: by its folder or by its JSON report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
    files = sorted(path.glob(f"*/*/attempt-*/{TRIAL_FILE}"))
    frames = [path / name for name in (RUN_FILE, BEGUN_FILE) if (path / name).exists()]
    problems: list[str] = []
    for file in frames:
        try:
            salvaged = _whole(file, option)
        except UsageError as error:
            problems.append(str(error))
            continue
        if salvaged.run is not None and files:
            trials = tuple(_trials(path, files, problems))
            salvaged = Salvaged(replace(salvaged.run, trials=trials))
        return replace(salvaged, problems=(*problems, *salvaged.problems))
    raise UsageError("\n".join(problems) or f"{option}={path}: no {RUN_FILE} in it. Name a run's folder")


def _whole(file: Path, option: str) -> Salvaged:
    try:
        salvaged = salvage_run(file.read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}={file}: {error}. Name a run's folder or its {RUN_FILE}") from error
    if salvaged.run is None:
        raise UsageError("\n".join(salvaged.problems))
    return salvaged


def _trials(folder: Path, files: list[Path], problems: list[str]) -> Iterator[TrialRecord]:
    """The trials that can be read; why the others cannot, goes to `problems`."""
    for file in files:
        try:
            trial = load_trial(file.read_text(encoding="utf-8"), file)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{file}: {error}")
        except UsageError as error:
            problems.append(str(error))
        else:
            if folder / trial.key.folder == file.parent:
                yield trial
            else:
                problems.append(f"{file}: it is the record of another trial, {trial.key.folder.as_posix()}")
