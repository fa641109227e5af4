"""`deploybench show` replays a trial for people, and nothing of it can reach their terminal as a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pytest_deploybench.cli import main
from pytest_deploybench.model import AgentRun, Termination, Verdict
from pytest_deploybench.models import Dialect
from pytest_deploybench.reports.json import dump_trial
from pytest_deploybench.trajectory import write
from tests.reports.runs import trial
from tests.trajectory.conversations import conversation

NASTY = "\x1b]0;owned\x07\x1b[2J[bold]\u202e" + "x" * 1000


def add_trial(run: Path, task: str = "minimap2_bio18", attempt: int = 1, *, output: str = "built") -> Path:
    """A trial of a run, as a session leaves it."""
    record = trial(task, Verdict.FAILED, "the index is missing", model="nice-model", attempt=attempt)
    folder = run / record.key.folder
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(dump_trial(record))
    lines = json.dumps(conversation(Dialect.CHAT)).replace('"built"', json.dumps(output))
    (folder / "llm.jsonl").write_text("\n".join(map(json.dumps, json.loads(lines))))
    write(folder, record.key, AgentRun(Termination.FINISHED, 1.0, 2.0), print)
    return folder


def show(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["show", *map(str, arguments)])


def shown(*arguments: object) -> str:
    result = show(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_trial_is_told_step_by_step(tmp_path: Path) -> None:
    text = shown(add_trial(tmp_path))
    assert text.splitlines() == [
        "minimap2_bio18 · openhands · nice-model · attempt 1",
        "FAILED  the index is missing",
        "agent: finished after 10:00 of 1:36:00, and claimed success",
        "model: 2 answers · 3,000 tokens in (200 cached), 100 out · $0.5000",
        "",
        "── 1 system  +0:00 ",
        "Be brief.",
        "",
        "── 2 user  +0:00 ",
        "Go.",
        "",
        "── 3 agent  +0:04 1,000 in, 50 out  $0.2500  thought 4.0 s",
        "I build.",
        "$ make",
        "  built",
        "",
        "── 4 user  +0:10 ",
        "On.",
        "",
        "── 5 agent  +0:14 2,000 in, 50 out  $0.2500  thought 4.0 s",
        "Done.",
    ]


@pytest.mark.parametrize(
    ("steps", "numbers"), [("3", "3"), ("2-3", "23"), ("4-", "45"), ("-2", "12"), ("5-99", "5"), ("7", "")]
)
def test_a_part_of_it_can_be_chosen(tmp_path: Path, steps: str, numbers: str) -> None:
    text = shown(add_trial(tmp_path), "--steps", steps)
    assert [line.split()[1] for line in text.splitlines() if line.startswith("──")] == list(numbers)
    assert ("there are only 5 steps" in text) is (not numbers)


@pytest.mark.parametrize("steps", ["", "-", "x", "5-3", "1-2-3"])
def test_a_range_that_is_none_is_refused(tmp_path: Path, steps: str) -> None:
    result = show(add_trial(tmp_path), "--steps", steps)
    assert result.exit_code == 2
    assert "--steps" in result.output


def test_what_is_long_is_shown_in_full_only_on_request(tmp_path: Path) -> None:
    folder = add_trial(tmp_path, output="\n".join(f"line {number}" for number in range(100)) + "\n" + "y" * 1000)
    text = shown(folder)
    assert "  line 7\n  [... 85 lines; --full shows them ...]\n  line 93\n" in text
    assert "y" * 400 + " [... 600 characters]" in text
    assert "line 50\n" in shown(folder, "--full")
    assert "y" * 1000 in shown(folder, "--full")


def test_nothing_a_guest_prints_reaches_the_terminal(tmp_path: Path) -> None:
    text = shown(add_trial(tmp_path, output=NASTY), "--full")
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]\\u202exxx" in text


def test_a_trial_is_found_by_its_run_and_task(tmp_path: Path) -> None:
    add_trial(tmp_path)
    assert "minimap2_bio18" in shown(tmp_path)
    add_trial(tmp_path, "libsvm_tist11")
    add_trial(tmp_path, "libsvm_tist11", 2)
    assert "minimap2_bio18 · " in shown(tmp_path, "minimap2_bio18")
    assert "attempt 2" in shown(tmp_path, "libsvm_tist11/openhands+nice-model/attempt-02")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "libsvm"), "holds no trial of 'libsvm'. Did you mean libsvm_tist11? There are: libsvm_tist11/open"),
        (("run", "libsvm_tist11"), "several trials could be meant: libsvm_tist11/openhands+nice-model/attempt-01, "),
        (("run",), "several trials could be meant: libsvm_tist11/"),
        (("rum",), "run? Name a trial's folder"),
        (("empty",), "is neither a trial's folder nor a run's"),
    ],
)
def test_what_cannot_be_found_is_told_with_what_is_near(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    add_trial(tmp_path / "run", "libsvm_tist11")
    add_trial(tmp_path / "run", "libsvm_tist11", 2)
    place, *task = arguments
    result = show(tmp_path / place, *task)
    assert result.exit_code == 2
    assert message in result.output


def test_an_earlier_try_and_a_trial_without_a_trajectory_are_shown_as_far_as_they_go(tmp_path: Path) -> None:
    folder = add_trial(tmp_path)
    (folder / "record.json").rename(tmp_path / "record.json")
    assert "(no record: not judged)" in shown(folder)
    assert "no trajectory: the agent did not begin" in shown(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"steps": 1}'])
def test_a_damaged_trajectory_is_named(tmp_path: Path, text: str) -> None:
    folder = add_trial(tmp_path)
    (folder / "trajectory.json").write_text(text)
    result = show(folder)
    assert result.exit_code == 2
    assert "trajectory.json: no" in result.output
