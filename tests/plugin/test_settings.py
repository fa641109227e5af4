"""settings: what a session was asked to do, and one clear message where that cannot be done."""

from __future__ import annotations

import pytest

from pytest_deploybench.plugin.layer1_checks import CHECKS
from tests.plugin.conftest import Project

PARALLEL = pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["plain", "xdist"])


def usage_error(project: Project, *args: str) -> str:
    """Run, expect a usage error without any traceback, and return it."""
    result = project.pytester.runpytest_subprocess(*args, timeout=120) if "-n" in args else project.collect(*args)
    shown = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR, shown
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    assert shown.count("ERROR: ") == 1
    return shown


@PARALLEL
def test_tasks_without_anybody_to_deploy_them_show_the_first_steps(project: Project, parallel: tuple[str, ...]) -> None:
    project.task()
    shown = usage_error(project, *parallel)
    for command in (
        "pytest --deploybench-list",
        "pytest --deploybench-agent=reference -m smoke",
        "pytest --deploybench-model=NAME",
    ):
        assert command in shown


@PARALLEL
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--deploybench-agent=referense"], "unknown agent 'referense'. Did you mean 'reference'?"),
        (["--deploybench-agent=noop", "--deploybench-provider=cloud"], "unknown provider 'cloud'"),
        (["--deploybench-model=gpt-5.3-codex"], "OPENAI_API_KEY is not set (for gpt-5.3-codex)"),
    ],
    ids=["agent", "provider", "model"],
)
def test_an_unusable_name_is_a_usage_error(
    project: Project, options: list[str], says: str, parallel: tuple[str, ...]
) -> None:
    project.task()
    assert says in usage_error(project, *options, *parallel)


@PARALLEL
def test_own_hosts_are_asked_for_before_any_trial(project: Project, parallel: tuple[str, ...]) -> None:
    project.task()
    (project.path / "hosts.yaml").write_text("hosts:\n  - name: gpu1\n    hots: x\n")
    named = ("--deploybench-agent=noop", "--deploybench-provider=ssh", *parallel)
    assert "name it with --deploybench-inventory=FILE" in usage_error(project, *named)
    wrong = usage_error(project, *named, "--deploybench-inventory=hosts.yaml")
    assert "/hosts.yaml: host gpu1: hots: unknown key. Did you mean" in wrong


def test_own_hosts_without_their_provider_are_not_passed_over_in_silence(project: Project) -> None:
    project.task()
    assert "Add --deploybench-provider=ssh" in usage_error(
        project, "--deploybench-agent=noop", "--deploybench-inventory=hosts.yaml"
    )


def test_a_used_run_folder_is_not_overwritten(project: Project) -> None:
    project.task()
    (project.path / "run").mkdir()
    (project.path / "run" / "run.json").write_text("{}")
    assert "never overwrites the evidence of another" in usage_error(
        project, *project.arguments("--deploybench-agent=noop")
    )


def test_modules_without_a_task_need_nobody(project: Project) -> None:
    project.task()
    project.pytester.makepyfile(test_other="def test_other(): pass")
    result = project.collect("test_other.py")
    result.assert_outcomes(passed=1)


def test_deselected_tasks_need_nobody(project: Project) -> None:
    project.task(labels=[])
    project.pytester.makepyfile(test_other="def test_other(): pass")
    result = project.collect("-k", "test_other")
    result.assert_outcomes(passed=1, deselected=len(CHECKS) + 1)
