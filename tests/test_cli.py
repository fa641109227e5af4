"""The command line teaches, and answers what it cannot do with one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_deploybench.cli import main
from tests.support.task_folder import write_task


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize("command", ["doctor", "image", "sources", "certify", "new-task", "check-task", "tasks"])
def test_help_shows_each_command_and_each_command_explains_itself(command: str) -> None:
    assert command in run("--help")[1]
    status, text = run(command, "--help")
    assert status == 0
    assert len(text.split("\n\n")[1].split()) > 5


def test_certify_wants_to_know_which_tasks(tmp_path: Path) -> None:
    assert run("certify", "--tasks-dir", tmp_path) == (2, "Error: name the tasks to certify, or give --all\n")


def test_an_unknown_task_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    write_task(tmp_path)
    status, text = run("certify", "toy_venue21", "--tasks-dir", tmp_path)
    assert status == 2
    assert "no task toy_venue21" in text
    assert "Known: toy_venue20" in text


def test_a_broken_task_folder_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    write_task(tmp_path, budget__agent_s=-5)
    status, text = run("sources", "fetch", "--tasks-dir", tmp_path)
    assert status == 1
    assert "budget.agent_s" in text
    assert len(text.splitlines()) == 1
