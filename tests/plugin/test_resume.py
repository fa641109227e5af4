"""resume: verdicts are kept, the rest is done again, and nothing is mixed that was reached under other conditions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

from pytest_deploybench.model import RunRecord
from pytest_deploybench.plugin import resume
from pytest_deploybench.plugin.layer1_checks import CHECKS
from pytest_deploybench.reports.json import load_run
from tests.plugin.conftest import Project

ALL = len(CHECKS) + 1
PARALLEL = pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["plain", "xdist"])
NOOP = "--deploybench-agent=noop"
RESUME = "--deploybench-resume=run"

PASSES = """\
def test_it(layer1, trial_key):
    with open("ran", "a") as log:
        print(trial_key.task, file=log)
"""
FAILS = PASSES + "    assert 1 + 1 == 3, 'sums are wrong'\n"
BREAKS = PASSES + (
    "    from pathlib import Path\n"
    "    from pytest_deploybench.errors import TaskFileError\n"
    "    if Path('broken').exists():\n"
    "        raise TaskFileError('task.yaml', 'x', 'broken', 'mend it')\n"
)
WAITS = PASSES + "    open('meeting').close()\n"


def again(project: Project, *args: str, folder: str = "again", resumed: str = "run") -> pytest.RunResult:
    """Resume a run."""
    return project.run(NOOP, f"--deploybench-run-dir={folder}", f"--deploybench-resume={resumed}", *args)


def kept(project: Project, *args: str, folder: str = "again", resumed: str = "run") -> pytest.RunResult:
    """Resume a run of which nothing is left to do, in this process, which has no machines."""
    options = (NOOP, f"--deploybench-run-dir={folder}", f"--deploybench-resume={resumed}")
    project.pytester.syspathinsert(project.path.parent / f"{project.path.name}-site")  # knows the scripted provider
    return project.collect(*project.arguments(*options, *args))


def refused(result: pytest.RunResult) -> str:
    """What a session said that ended with one clear usage error."""
    shown = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR, shown
    assert shown.count("ERROR: ") == 1
    assert "Traceback" not in shown
    return shown


def written(project: Project, folder: str = "again") -> RunRecord:
    return load_run((project.path / folder / "run.json").read_text(encoding="utf-8"))


def ran(project: Project) -> list[str]:
    """The tasks whose own check really ran since this was last asked."""
    log = project.path / "ran"
    names = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    return sorted(names)


@PARALLEL
def test_verdicts_are_kept_and_the_rest_is_done_again(project: Project, parallel: tuple[str, ...]) -> None:
    for name, checks in (("good_venue20", PASSES), ("bad_venue20", FAILS), ("odd_venue20", BREAKS)):
        project.task(name, checks)
    (project.path / "broken").touch()
    project.run(NOOP, "--deploybench-seed=7", *parallel).assert_outcomes(passed=2 * ALL + ALL - 2, failed=1, errors=1)
    assert ran(project) == ["bad_venue20", "good_venue20", "odd_venue20"]
    evidence = project.path / "run" / "good_venue20" / "noop" / "attempt-01" / "agent.log"
    evidence.write_text("what the agent did")
    (project.path / "broken").unlink()

    result = again(project, "-v", "--junitxml=r.xml", *parallel)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=3 * ALL - 1, failed=1)
    assert ran(project) == ["odd_venue20"]
    run = written(project)
    assert {trial.task: (trial.verdict, trial.resumed_from) for trial in run.trials} == {
        "good_venue20": ("PASSED", "run"),
        "bad_venue20": ("FAILED", "run"),
        "odd_venue20": ("PASSED", None),
    }
    assert run.run_seed == 7
    folder = project.path / "again" / "good_venue20" / "noop" / "attempt-01"
    assert (folder / "agent.log").read_text() == "what the agent did"
    assert '"resumed_from": "run"' in (folder / "record.json").read_text()
    header = "deploybench: resumes run run: 1 PASSED, 1 FAILED, 1 INVALID; PASSED and FAILED are kept"
    result.stdout.fnmatch_lines([header, "*sums are wrong*"])
    assert sum("PASSED (kept)" in line for line in result.outlines) == 2 * ALL - 1
    assert sum("FAILED (kept)" in line for line in result.outlines) == 2  # once in the short summary
    cases = ElementTree.parse(project.path / "r.xml").findall(".//testcase")  # noqa: S314 - written by ourselves
    from_then = [case for case in cases if case.find(".//property[@name='resumed_from']") is not None]
    assert len(cases) == 3 * ALL
    assert len(from_then) == 2 * ALL


@pytest.mark.parametrize(("checks", "status"), [(PASSES, 0), (FAILS, 1)], ids=["passed", "failed"])
def test_what_is_only_kept_needs_no_machine_and_ends_as_it_ended(project: Project, checks: str, status: int) -> None:
    project.task(checks=checks)
    assert project.run(NOOP).ret == status
    assert kept(project).ret == status
    assert kept(project, folder="third", resumed="again/run.json").ret == status
    assert ran(project) == ["toy_venue20"]
    assert written(project, "third").trials[0].resumed_from == "run"


def test_a_killed_run_is_resumed(project: Project) -> None:
    project.task("a_venue20", PASSES, budget__agent_s=900)
    project.task("b_venue20", WAITS)
    meeting, record = project.path / "meeting", project.path / "run/a_venue20/noop/attempt-01/record.json"
    os.mkfifo(meeting)
    command = [sys.executable, "-m", "pytest", *project.arguments(NOOP, "-n2")]
    with subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL) as session:
        deadline = time.monotonic() + 600
        while not record.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        gate = os.open(meeting, os.O_RDWR)  # its waiting worker must not outlive the test
        session.kill()
    os.close(gate)
    assert not (project.path / "run" / "run.json").exists()
    ran(project)
    meeting.unlink()
    meeting.touch()

    assert again(project, "-n2").ret == pytest.ExitCode.OK
    assert ran(project) == ["b_venue20"]
    assert {trial.task: trial.resumed_from for trial in written(project).trials} == {
        "a_venue20": "run",
        "b_venue20": None,
    }


def test_damage_costs_one_trial_and_one_line_each(project: Project) -> None:
    for name in ("a_venue20", "b_venue20", "c_venue20"):
        project.task(name, PASSES)
    project.run(NOOP)
    ran(project)
    run = project.path / "run"
    places = [run / task / "noop" / "attempt-01" / "record.json" for task in ("a_venue20", "b_venue20")]
    whole = places[0].read_text()
    places[0].write_text(whole[: len(whole) // 2])
    places[1].write_text(whole)
    (run / "run.json").write_text("{")
    result = again(project)
    assert ran(project) == ["a_venue20", "b_venue20"]
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "deploybench: */run/run.json: *",
            "deploybench: */a_venue20/noop/attempt-01/record.json: not JSON *",
            "deploybench: */b_venue20/*: it is the record of another trial, a_venue20/noop/attempt-01*",
        ]
    )


def test_every_difference_is_named(project: Project) -> None:
    project.task(checks=PASSES)
    project.run(NOOP, "--deploybench-agent=reference", "--deploybench-seed=7", "--deploybench-max-tokens=5")
    shown = refused(kept(project, "--deploybench-seed=8", "--deploybench-reboot-before-verify"))
    for difference in (
        "--deploybench-seed: 7 then, 8 now",
        "--deploybench-max-tokens: 5 then, none now",
        "--deploybench-reboot-before-verify: none then, yes now",
        "reference, attempt 1: took part then, not now",
        "That run was started as: pytest ",
    ):
        assert difference in shown


def test_a_task_that_changed_is_refused_before_any_trial(project: Project) -> None:
    for name in ("a_venue20", "b_venue20"):
        project.task(name, PASSES)
    project.run(NOOP)
    ran(project)
    (project.path / "tasks" / "a_venue20" / "paper.md").write_text("another paper")
    for result in (kept(project), again(project, "-n2", folder="parallel")):
        shown = refused(result)
        assert "  task a_venue20: digest " in shown
        assert "task b_venue20: digest" not in shown
    assert ran(project) == []
    assert kept(project, "-k", "b_venue20", folder="part").ret == pytest.ExitCode.OK


def test_what_cannot_be_resumed_is_one_clear_error(project: Project) -> None:
    project.task(checks=PASSES)
    project.run(NOOP)
    for options, says in (
        ([NOOP, "--deploybench-resume=nowhere"], "nowhere: No such file or directory. Name a run's folder"),
        ([NOOP, "--deploybench-resume=tasks"], "tasks: no run.json in it. Name a run's folder"),
        ([RESUME], "name again who deploys. That run was started as: pytest "),
        ([RESUME, "--deploybench-reverify=run"], "do not go together"),
    ):
        assert says in refused(project.collect(*options))


def test_a_new_model_is_no_difference_and_a_moved_one_is() -> None:
    then = {"--deploybench-model=a": "openai/a at https://x/v1"}
    now = {"--deploybench-model=a": "openai/a at https://y/v1", "--deploybench-model=b": "openai/b at https://y/v1"}
    assert list(resume.differences(then, now)) == [
        "--deploybench-model=a: openai/a at https://x/v1 then, openai/a at https://y/v1 now"
    ]
    assert list(resume.differences({}, {"--deploybench-provider": "qemu"})) == [
        "--deploybench-provider: not recorded then, qemu now"
    ]


def test_a_check_that_a_failed_trial_did_not_come_to_is_skipped(project: Project) -> None:
    project.task(checks=FAILS + "def test_later(layer1): pass\n")
    project.run(NOOP, "-x")
    kept(project).assert_outcomes(passed=len(CHECKS), failed=1, skipped=1)
