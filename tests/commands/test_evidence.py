"""The evidence of trials is read bounded, and nothing outside a trial's own folder is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_deploybench.cli import main
from pytest_deploybench.commands.evidence import LINES_KEPT, read_evidence
from pytest_deploybench.commands.gathering import gather
from pytest_deploybench.model import TrialRecord, Verdict
from pytest_deploybench.reports.html import Evidence
from pytest_deploybench.reports.json import dump_run
from tests.reports.runs import run, trial, with_everything

SECRET = "what must not be shown"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    return file


def folder_of(root: Path, record: TrialRecord) -> Path:
    """The folder of a trial's evidence in a run that holds this trial only."""
    root.mkdir(exist_ok=True)
    (root / "run.json").write_text(dump_run(run(record)))
    folder = root / record.key.folder
    folder.mkdir(parents=True)
    return folder


def read(root: Path) -> Evidence:
    (found,) = read_evidence(gather([root])).values()
    return found


def test_all_that_a_trial_left_is_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", trial("spin_tse11"))
    (folder / "agent.log").write_text("one\ntwo\n")
    (folder / "experiment.log").write_bytes(b"three\r\n\xff four")
    (folder / "RUNBOOK.md").write_text("# How\n")
    (folder / "containers.txt").write_text("container engine found: docker at /usr/bin/docker\n")
    (folder / "trajectory.json").write_text(json.dumps({"steps": [{"source": "agent", "message": "hello"}]}))
    found = read(tmp_path / "run")
    assert found.agent_log
    assert [line.text for line in found.agent_log.lines] == ["one", "two"]
    assert found.experiment_log
    assert [line.text for line in found.experiment_log.lines] == ["three", "\ufffd four"]
    assert found.runbook
    assert found.trajectory
    assert found.trajectory.steps[0].parts[0].text == "hello"
    assert found.traces == 1
    assert found.problems == ()


def test_a_folder_that_is_gone_leaves_nothing_and_no_complaint(tmp_path: Path) -> None:
    folder_of(tmp_path / "run", trial("spin_tse11")).rmdir()
    assert read(tmp_path / "run") == Evidence()


def test_no_link_is_followed_out_of_the_folder(tmp_path: Path, secret: Path) -> None:
    folder = folder_of(tmp_path / "run", trial("spin_tse11"))
    (folder / "experiment.log").symlink_to(secret)
    found = read(tmp_path / "run")
    assert found.experiment_log is None
    assert found.problems == ("experiment.log was not read: a symbolic link is on the way to it, and none is followed",)


def test_no_folder_that_is_a_link_is_entered(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", trial("spin_tse11"))
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    (elsewhere / "agent.log").write_text(SECRET)
    folder.symlink_to(elsewhere)
    found = read(tmp_path / "run")
    assert found.agent_log is None
    assert "agent.log was not read: a symbolic link is on the way" in " ".join(found.problems)


def test_a_record_cannot_name_a_folder_elsewhere(tmp_path: Path, secret: Path) -> None:
    from dataclasses import replace

    (tmp_path / "agent.log").write_text(SECRET)
    for record in (
        replace(trial("spin_tse11"), folder="../"),
        replace(trial("../.."), folder="../../reference/attempt-01"),
    ):
        root = tmp_path / "run"
        root.mkdir(exist_ok=True)
        (root / "run.json").write_text(dump_run(run(record)))
        found = read(root)
        assert found.agent_log is None
        assert "is not where the evidence of this trial lies" in found.problems[0]


def test_a_pipe_is_no_evidence_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(folder_of(tmp_path / "run", trial("spin_tse11")) / "agent.log")
    found = read(tmp_path / "run")
    assert found.agent_log is None
    assert found.problems == ("agent.log was not read: it is no file",)


def test_a_huge_log_is_kept_at_its_ends_and_around_its_finding(tmp_path: Path) -> None:
    record = with_everything()
    folder = folder_of(tmp_path / "run", record)
    (folder / "experiment.log").write_text("".join(f"{number}\n" for number in range(1, 100_001)))
    (folder / "RUNBOOK.md").write_text("x" * 10_000_000 + "\nend\n")
    found = read(tmp_path / "run")
    assert found.experiment_log
    kept = [line.number for line in found.experiment_log.lines]
    assert kept == [*range(1, LINES_KEPT + 1), *range(100_001 - LINES_KEPT, 100_001)]
    assert found.experiment_log.total == 100_000
    assert found.runbook
    assert [len(line.text) for line in found.runbook.lines] == [4000, 3]


def test_a_damaged_trajectory_is_told_and_the_log_shown(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", trial("spin_tse11"))
    (folder / "trajectory.json").write_text('{"steps": [')
    (folder / "agent.log").write_text("did it\n")
    found = read(tmp_path / "run")
    assert found.trajectory is None
    assert found.problems == ("trajectory.json is damaged or was cut off; the agent's log is shown instead",)
    assert found.agent_log


def test_the_report_is_written_as_a_page_with_what_trials_left(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", trial("spin_tse11", Verdict.FAILED, "no"))
    (folder / "experiment.log").write_text("the experiment's own words\n")
    done = CliRunner().invoke(main, ["report", str(tmp_path / "run"), "--html", str(tmp_path / "report.html")])
    assert done.exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "experiment&#39;s own words" in page
    assert "run/spin_tse11/reference/attempt-01" in page, "evidence is named as seen from the page"


def test_a_comparison_is_written_as_a_page(tmp_path: Path) -> None:
    for name, verdict in (("a", Verdict.PASSED), ("b", Verdict.FAILED)):
        folder_of(tmp_path / name, trial("spin_tse11", verdict, "no"))
    page = tmp_path / "both.html"
    done = CliRunner().invoke(main, ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--html", str(page)])
    assert done.exit_code == 0
    assert "B less A: -100 points" in page.read_text()
