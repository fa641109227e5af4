"""listing: `--deploybench-list` shows the tasks that a run with the same selection would take."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project


def listed(project: Project, *args: str) -> list[str]:
    result = project.collect("--deploybench-list", *args)
    assert result.ret == pytest.ExitCode.OK
    return [line.split()[0] for line in result.outlines if "_venue" in line]


def test_a_task_is_a_row(project: Project) -> None:
    project.task(domain="ai", difficulty="hard", languages=["c++", "python"], labels=["legacy", "smoke"])
    result = project.collect("--deploybench-list")
    result.stdout.fnmatch_lines(
        [
            "task * title * domain * difficulty * languages * labels*",
            "toy_venue20 * Toy, deployed * ai * hard * C++, Python * legacy, smoke*",
            "1 task",
        ]
    )


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ([], ["a_venue20", "b_venue20"]),
        (["-m", "legacy"], ["b_venue20"]),
        (["-m", "not legacy and lang_c"], ["a_venue20"]),
        (["-k", "B_venue"], ["b_venue20"]),
        (["tasks/a_venue20"], ["a_venue20"]),
        (["tasks/a_venue20/test_a_venue20.py"], ["a_venue20"]),
        (["tasks/a_venue20/test_a_venue20.py::test_it_works"], ["a_venue20"]),
    ],
)
def test_the_selection_narrows_the_table(project: Project, args: list[str], names: list[str]) -> None:
    project.task("b_venue20", labels=["legacy"])
    project.task("a_venue20")
    assert listed(project, *args) == names


def test_a_broken_expression_is_a_usage_error(project: Project) -> None:
    project.task()
    result = project.collect("--deploybench-list", "-m", "legacy and")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: -m or -k: *Write for example*"])


def test_a_broken_task_is_a_usage_error(project: Project) -> None:
    project.task(domain="art")
    result = project.collect("--deploybench-list")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: tasks/toy_venue20/task.yaml: domain: *"])


def test_no_run_folder_is_made(project: Project) -> None:
    project.task()
    listed(project, "--deploybench-agent=noop")
    assert not (project.path / "deploybench-runs").exists()
