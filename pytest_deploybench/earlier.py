"""Reads an earlier run back, as users name it: by its folder or by its JSON report."""

from __future__ import annotations

from pathlib import Path

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import RunRecord
from pytest_deploybench.reports.json import load_run

RUN_FILE = "run.json"


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
