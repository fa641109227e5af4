"""collection: a task folder becomes marked checks, for each trial once, and a broken one becomes one sentence."""

from __future__ import annotations

import pytest

from pytest_deploybench.plugin import LABELS
from pytest_deploybench.plugin.layer1_checks import CHECKS
from tests.plugin.conftest import Project

OWN = "tasks/toy_venue20/test_toy_venue20.py::test_it_works"


def ids(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line and not line.startswith("ERROR")]


def test_checks_of_the_task_follow_those_of_layer_1(project: Project) -> None:
    project.task()
    result = project.collect("--collect-only", "-q", "--deploybench-agent=reference")
    names = [nodeid.partition("::")[2] for nodeid in ids(result)]
    assert names == [f"{name}[reference]" for name in (*CHECKS, "test_it_works")]


def test_collecting_needs_nobody_to_deploy(project: Project) -> None:
    project.task()
    result = project.collect("--collect-only", "-q")
    assert result.ret == pytest.ExitCode.OK
    assert ids(result)[-1] == OWN


def test_all_checks_of_a_trial_stand_together(project: Project) -> None:
    project.task(checks="def test_a(layer1): pass\ndef test_b(layer1): pass\n")
    result = project.collect(
        "--collect-only", "-q", "--deploybench-agent=noop", "--deploybench-agent=shallow", "--deploybench-attempts=2"
    )
    trials = [nodeid.partition("[")[2].rstrip("]") for nodeid in ids(result)]
    count = len(CHECKS) + 2
    assert trials == [trial for trial in ("noop-1", "noop-2", "shallow-1", "shallow-2") for _ in range(count)]


def test_a_tasks_own_parameters_come_after_the_trial(project: Project) -> None:
    project.task(
        checks="def pytest_generate_tests(metafunc):\n"
        "    if 'mode' in metafunc.fixturenames:\n"
        "        metafunc.parametrize('mode', ['fast', 'slow'])\n"
        "def test_it(layer1, mode): pass\n"
    )
    result = project.collect("--collect-only", "-q", "--deploybench-agent=noop")
    assert [nodeid.partition("::")[2] for nodeid in ids(result)[-2:]] == ["test_it[noop-fast]", "test_it[noop-slow]"]


def test_a_check_without_fixtures_belongs_to_the_trial_too(project: Project) -> None:
    project.task(checks="def test_bare(): pass\n")
    assert ids(project.collect("--collect-only", "-q", "--deploybench-agent=noop"))[-1].endswith("test_bare[noop]")


@pytest.mark.parametrize(
    ("selection", "tasks"),
    [
        (("-m", "legacy"), {"old_venue15"}),
        (("-m", "systems and not qemu"), {"old_venue15", "gpu_venue24"}),
        (("-m", "lang_cpp or ai"), {"gpu_venue24", "net_venue20"}),
        (("-k", "gpu"), {"gpu_venue24"}),
        (("-k", "net_venue20"), {"net_venue20"}),
        (("-m", "hard"), {"net_venue20"}),
    ],
)
def test_labels_select_whole_tasks(project: Project, selection: tuple[str, ...], tasks: set[str]) -> None:
    project.task("old_venue15", labels=["legacy"])
    project.task("kernel_venue21", labels=["qemu"])
    project.task("gpu_venue24", machine__accelerator="nvidia-tesla-t4", languages=["C++", "CUDA"])
    project.task("net_venue20", domain="ai", difficulty="hard", languages=["Python"])
    found = ids(project.collect("--collect-only", "-q", "--deploybench-agent=noop", *selection))
    assert {nodeid.split("/")[1] for nodeid in found} == tasks
    assert len(found) == len(tasks) * (len(CHECKS) + 1)


def test_no_label_is_part_of_a_shared_checks_name() -> None:
    # `-k gpu` must select tasks, not one Layer-1 check of every task. `ai` is in every other word; it has `-m ai`.
    labels = {*LABELS, "lang_"} - {"ai"}
    assert not [(name, label) for name in CHECKS for label in labels if label in name]


def test_markers_are_listed(project: Project) -> None:
    project.collect("--markers").stdout.fnmatch_lines(["@pytest.mark.legacy: deploybench: *"])


def test_a_broken_task_is_one_sentence_and_hides_no_other(project: Project) -> None:
    project.task("good_venue20")
    project.task("bad_venue20", budget__agent_s=0)
    result = project.collect("--collect-only", "-q", "--deploybench-agent=noop")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["tasks/bad_venue20/task.yaml: budget.agent_s: input should be greater than 0. Give *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert {nodeid.split("/")[1] for nodeid in ids(result)} == {"good_venue20"}


def test_a_broken_task_is_named_under_xdist_too(project: Project) -> None:
    project.task(difficulty="trivial")
    result = project.run("--deploybench-agent=noop", "-n2")
    result.stdout.fnmatch_lines(["tasks/toy_venue20/task.yaml: difficulty: *Give easy, medium or hard."])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_two_tasks_with_one_id_are_an_error(project: Project) -> None:
    project.pytester.makeini("[pytest]\naddopts = --import-mode=importlib\n")
    for parent in ("a", "b"):
        (project.path / parent).mkdir()
        project.task().rename(project.path / parent / "toy_venue20")
    result = project.collect("--collect-only", "-q")
    result.stdout.fnmatch_lines(["b/toy_venue20/task.yaml: id: a/toy_venue20 has the same id 'toy_venue20'*"])


def test_classes_are_refused_in_a_task_module(project: Project) -> None:
    project.task(checks="class TestIt:\n    def test_a(self): pass\n")
    result = project.collect("--collect-only", "-q")
    result.stdout.fnmatch_lines(["*TestIt: the checks of a task are plain functions*"])


def test_other_modules_beside_a_task_are_left_alone(project: Project) -> None:
    folder = project.task()
    (folder / "test_helper.py").write_text("def test_helper(): pass\n")
    result = project.collect("--deploybench-agent=noop", "tasks/toy_venue20/test_helper.py")
    result.assert_outcomes(passed=1)
    assert not (project.path / "deploybench-runs").exists()
