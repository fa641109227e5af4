"""A job of GitHub Actions gets the report, and a job that cannot take it gets one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench.stepsummary import MOST_BYTES, VARIABLE, append
from tests.reports.runs import run, trial


def test_the_report_is_appended(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("of an earlier command\n")
    assert append(run(trial("a")), environment={VARIABLE: str(file)}) is None
    text = file.read_text()
    assert text.startswith("of an earlier command\n### deploybench\n")
    assert "<td>reference</td><td>1/1</td>" in text


@pytest.mark.parametrize("environment", [{}, {VARIABLE: ""}])
def test_nothing_happens_where_nobody_asked(environment: dict[str, str]) -> None:
    assert append(run(trial("a")), environment=environment) is None


@pytest.mark.parametrize("name", [".", "no/such/folder/summary.md"])
def test_a_file_that_cannot_be_written_is_one_line(name: str, tmp_path: Path) -> None:
    problem = append(run(trial("a")), environment={VARIABLE: str(tmp_path / name)})
    assert problem is not None
    assert problem.startswith(f"{VARIABLE}={tmp_path / name}: the summary of this run could not be written there: ")
    assert "\n" not in problem


def test_what_the_step_wrote_before_counts(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * (MOST_BYTES - 100))
    problem = append(run(trial("a")), environment={VARIABLE: str(file)})
    assert problem == f"{VARIABLE}={file}: there is no room left for the summary of this run"
    assert file.stat().st_size == MOST_BYTES - 100
