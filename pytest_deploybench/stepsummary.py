"""Hands the report of a run to GitHub Actions, which shows it at the top of the job.

GitHub names a file in `GITHUB_STEP_SUMMARY` and takes up to 1 MiB of it from each step; what is longer it refuses as a
whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_deploybench.model import RunRecord
from pytest_deploybench.reports.baseline import Baseline

VARIABLE = "GITHUB_STEP_SUMMARY"
MOST_BYTES = 1024 * 1024


def append(run: RunRecord, baseline: Baseline | None = None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Append the report to the file that GitHub named, behind what the step wrote before.

    Returns:
        Why that was not possible, as a sentence; None where it was, or where nobody asked for it.
    """
    name = environment.get(VARIABLE)
    if not name:
        return None
    from pytest_deploybench.reports.markdown import render

    file = Path(name)
    try:
        with file.open("ab") as stream:
            text = render(run, MOST_BYTES - stream.tell(), baseline)
            stream.write(text.encode())
    except OSError as error:
        return f"{VARIABLE}={name}: the summary of this run could not be written there: {error.strerror or error}"
    return None if text else f"{VARIABLE}={name}: there is no room left for the summary of this run"
