"""`deploybench report` and `deploybench compare` on runs that are on disk, whole and damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pytest_deploybench.cli import main
from pytest_deploybench.model import RunRecord, Verdict
from pytest_deploybench.reports.json import dump_run, dump_trial, load_run
from pytest_deploybench.stepsummary import VARIABLE
from tests.reports.runs import run, trial

PASSED, FAILED, INVALID = Verdict


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv(VARIABLE, raising=False)


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def flat(text: str) -> str:
    return " ".join(text.split())


def put(name: str, record: RunRecord) -> Path:
    folder = Path(name)
    folder.mkdir()
    (folder / "run.json").write_text(dump_run(replace(record, run_id=name)))
    return folder


def put_trials(name: str, record: RunRecord) -> Path:
    """A run whose session was killed: its trials alone."""
    folder = Path(name)
    for each in record.trials:
        (folder / each.folder).mkdir(parents=True)
        (folder / each.folder / "record.json").write_text(dump_trial(each))
    return folder


def test_a_run_is_shown_by_its_folder_or_its_file() -> None:
    put("one", run(trial("a"), trial("b", FAILED, "test_x: no")))
    result = call("report", "one")
    assert result.exit_code == 0
    assert "reference 1/2 50 %" in flat(result.stdout)
    assert "evidence: b/reference/attempt-01" in result.stdout
    assert call("report", "one/run.json").stdout == result.stdout


def test_several_runs_become_one_in_which_each_trial_counts_once() -> None:
    put("one", run(trial("a", INVALID, "broke"), trial("b")))
    put("two", run(replace(trial("a", FAILED, "test_x: no"), started_at="2026-02-01T00:00:00Z"), trial("c")))
    result = call("report", "one", "two", "one", "--json", "all.json")
    assert result.exit_code == 0
    assert "reference 2/3 67 %" in flat(result.stdout)
    assert "evidence: two/a/reference/attempt-01" in result.stdout
    told = flat(result.stdout)
    assert "FAILED of two is taken, not INVALID of one: the other one judged nothing" in told
    whole = load_run(Path("all.json").read_text())
    assert [(each.task, each.folder) for each in whole.trials] == [
        ("a", "two/a/reference/attempt-01"),
        ("b", "one/b/reference/attempt-01"),
        ("c", "two/c/reference/attempt-01"),
    ]
    assert "reference 2/3 67 %" in flat(call("report", "all.json").stdout)


def test_published_figures_on_request() -> None:
    put("one", run(trial("a", model="grok-4.20")))
    assert "100/11.8" in call("report", "one", "--baseline=paper").stdout


def test_in_a_job_of_github_the_summary_gets_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    put("one", run(trial("a")))
    monkeypatch.setenv(VARIABLE, "summary.md")
    assert call("report", "one").exit_code == 0
    assert "### deploybench" in Path("summary.md").read_text()
    monkeypatch.setenv(VARIABLE, ".")
    result = call("report", "one")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"{VARIABLE}=.: ")


def test_what_is_damaged_costs_one_line_and_nothing_else() -> None:
    put("good", run(trial("a")))
    fields = json.loads(dump_run(run(trial("b"), trial("c"))))
    del fields["trials"][0]["verdict"]
    put("part", run()).joinpath("run.json").write_text(json.dumps(fields))
    put("cut", run()).joinpath("run.json").write_text(dump_run(run(trial("d")))[:700])
    Path("later.json").write_text(dump_run(run()).replace('"schema_version": 1', '"schema_version": 9'))
    Path("nowhere.json").symlink_to("gone.json")
    Path("binary.json").write_bytes(b"\xff\xfe")
    result = call("report", "good", "part", "cut", "later.json", "nowhere.json", "binary.json", "absent")
    assert result.exit_code == 1
    assert "reference 2/2 100 %" in flat(result.stdout)
    starts = [line.partition(": ")[2][:40] for line in result.stderr.splitlines()]
    assert [start.split(":")[0] for start in starts] == [
        "part/run.json",
        "cut/run.json",
        "later.json",
        "nowhere.json",
        "binary.json",
        "absent",
    ]
    for word in ("verdict: Field required", "cut off", "schema_version: 9", "symbolic link to nowhere", "not UTF-8"):
        assert word in result.stderr


def test_a_killed_run_is_read_by_its_trials() -> None:
    folder = put_trials("killed", run(trial("a"), trial("b", FAILED, "test_x: no"), trial("c"), trial("d")))
    (folder / "c/reference/attempt-01/record.json").unlink()
    (folder / "c/reference/attempt-01/record.json").symlink_to("gone.json")
    (folder / "d/reference/attempt-01/record.json").write_text("{")
    result = call("report", "killed")
    assert result.exit_code == 1
    assert "reference 1/2 50 %" in flat(result.stdout)
    assert len(result.stderr.splitlines()) == 4
    assert "c/reference/attempt-01/record.json: a symbolic link to nowhere" in result.stderr
    assert "d/reference/attempt-01/record.json: not JSON" in result.stderr
    assert "the records of its 2 finished trials are used instead" in result.stderr


@pytest.mark.parametrize("command", ["report", "compare"])
def test_where_nothing_can_be_read_the_status_is_2(command: str) -> None:
    Path("empty").mkdir()
    result = call(command, "empty")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr == "left out: empty/run.json: No such file or directory. Name a run's folder, or its JSON file\n"
    )


def test_a_file_that_cannot_be_written_is_one_line() -> None:
    put("one", run(trial("a")))
    result = call("report", "one", "--json", "no/such/folder.json")
    assert result.exit_code != 0
    assert "no/such/folder.json cannot be written: No such file or directory. Name another file" in result.stderr


def test_two_runs_or_two_of_one_run_are_compared() -> None:
    put("one", run(trial("a", model="m"), trial("b", FAILED, "test_x: no", model="m"), trial("a", model="n")))
    put("two", run(trial("a", model="m"), trial("b", model="m")))
    result = call("compare", "one", "two")
    assert result.exit_code == 0
    assert "B less A: +50 points" in result.stdout
    assert "Exact McNemar test" in flat(result.stdout)
    of_one = call("compare", "one", "--of", "m", "--of", "n")
    assert of_one.exit_code == 0
    assert "only A has it (1): b" in of_one.stdout
    unclear = call("compare", "two")
    assert unclear.exit_code == 2
    assert "say which two with --of NAME --of NAME" in unclear.stderr


def test_a_comparison_that_lacks_something_says_so() -> None:
    put("one", run(trial("a", model="m")))
    put_trials("two", run(trial("a", model="m")))
    assert call("compare", "one", "two").exit_code == 1
