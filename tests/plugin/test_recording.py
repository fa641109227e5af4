"""recording: reports become records, whoever is at fault, and the exit status follows the verdicts."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from pytest_deploybench.layer2.challenge import trial_seed
from pytest_deploybench.plugin.layer1_checks import CHECKS
from tests.plugin.conftest import STAND_IN, Project

ALL = len(CHECKS) + 1
CUT_OFF = """\
from pytest_deploybench.errors import MachineLostError

def test_cannot_reach_the_machine(layer1):
    raise MachineLostError("the connection broke")
"""
LOST = """\
from pytest_deploybench.errors import MachineLostError
from tests.support.scripted_provider import ScriptedProvider

def test_loses_the_machine(layer1):
    provider = ScriptedProvider()
    provider.kill(provider.running()[0])
    raise MachineLostError("the connection broke")
"""
NO_MACHINE = STAND_IN.replace(
    "        yield diary",
    "        from pytest_deploybench.errors import InfraError\n"
    "        from pytest_deploybench.model import Fault, Try\n"
    "        diary.tries += [Try(1, 'db-1', 2.5, Fault.PROVIDER, 'no luck')]\n"
    "        diary.tries += [Try(2, 'db-2', 3.5, Fault.PROVIDER, 'again')]\n"
    "        raise InfraError('again')\n"
    "        yield diary",
)
REFUSED = STAND_IN.replace("    diary = Diary()", "    pytest.skip('no GPU on this provider')\n    diary = Diary()")

PARALLEL = pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["plain", "xdist"])


@PARALLEL
def test_a_trial_whose_checks_all_pass(project: Project, parallel: tuple[str, ...]) -> None:
    project.task()
    result = project.run("--deploybench-agent=noop", "--deploybench-seed=42", *parallel)
    assert result.ret == pytest.ExitCode.OK
    [trial] = project.records().trials
    assert (trial.verdict, trial.reason) == ("PASSED", f"all {ALL} checks passed")
    assert [check.name for check in trial.checks] == [*CHECKS, "test_it_works"]
    assert [check.layer for check in trial.checks] == [1] * len(CHECKS) + [2]
    assert (trial.run_seed, trial.seed) == (42, trial_seed(42, "toy_venue20", 1))
    assert trial.machine is not None
    assert trial.machine.provider == "scripted"
    assert {"machine", "checks", "total"} <= trial.durations.keys()
    assert trial.labels == ("systems", "easy", "smoke", "lang_c")
    assert json.loads((project.path / "run" / trial.folder / "record.json").read_text())["verdict"] == "PASSED"


@PARALLEL
def test_a_check_that_fails_makes_the_trial_failed(project: Project, parallel: tuple[str, ...]) -> None:
    project.task(checks="def test_sum(layer1):\n    assert 1 + 1 == 3, 'sums are wrong'\n")
    result = project.run("--deploybench-agent=noop", *parallel)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    verdict, reason = project.verdicts()["toy_venue20/noop-1"]
    assert (verdict, reason) == ("FAILED", "test_sum: AssertionError: sums are wrong")


@PARALLEL
def test_a_machine_lost_under_a_check_is_an_error(project: Project, parallel: tuple[str, ...]) -> None:
    project.task(checks=LOST)
    result = project.run("--deploybench-agent=noop", "--junitxml=r.xml", *parallel)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=len(CHECKS), errors=1)
    verdict, reason = project.verdicts()["toy_venue20/noop-1"]
    assert verdict == "INVALID"
    assert reason.startswith("the provider or the machine broke: test_loses_the_machine: ")
    xml = ElementTree.parse(project.path / "r.xml")  # noqa: S314 - written by ourselves
    assert len(xml.findall(".//error")) == 1
    assert not xml.findall(".//failure")


def test_a_machine_that_runs_but_cannot_be_reached_is_the_agents_doing(project: Project) -> None:
    project.task(checks=CUT_OFF)
    project.run("--deploybench-agent=noop").assert_outcomes(passed=len(CHECKS), failed=1)
    verdict, reason = project.verdicts()["toy_venue20/noop-1"]
    assert verdict == "FAILED"
    assert "the agent left a machine that breaks off while it is checked: the connection broke" in reason


@PARALLEL
def test_a_trial_without_a_machine_keeps_its_tries(project: Project, parallel: tuple[str, ...]) -> None:
    project.pytester.makeconftest(NO_MACHINE)
    project.task()
    result = project.run("--deploybench-agent=noop", *parallel)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=ALL)
    result.stdout.fnmatch_lines(["InfraError: again"])
    result.stdout.no_fnmatch_line("*raise InfraError*")
    [trial] = project.records().trials
    assert trial.verdict == "INVALID"
    assert [(each.number, each.machine_id, each.error) for each in trial.tries] == [
        (1, "db-1", "no luck"),
        (2, "db-2", "again"),
    ]


def test_a_task_that_cannot_be_hosted_is_skipped_and_nothing_is_judged(project: Project) -> None:
    project.pytester.makeconftest(REFUSED)
    project.task()
    result = project.run("--deploybench-agent=noop")
    result.assert_outcomes(skipped=ALL)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert project.verdicts()["toy_venue20/noop-1"] == (
        "INVALID",
        "not judged, every check was skipped: no GPU on this provider",
    )


def test_a_skipped_task_beside_one_that_passed_fails_no_session(project: Project) -> None:
    project.pytester.makeconftest(
        STAND_IN.replace(
            "    diary = Diary()",
            "    if trial_key.task == 'gpu_venue24':\n        pytest.skip('no')\n    diary = Diary()",
        )
    )
    project.task()
    project.task("gpu_venue24")
    assert project.run("--deploybench-agent=noop").ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    "selection",
    [("-k", "test_it_works"), ("tasks/toy_venue20/test_toy_venue20.py::test_it_works",)],
    ids=["keyword", "node id"],
)
@PARALLEL
def test_a_part_of_the_checks_is_no_verdict(
    project: Project, selection: tuple[str, ...], parallel: tuple[str, ...]
) -> None:
    project.task()
    result = project.run("--deploybench-agent=noop", *selection, *parallel)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    verdict, reason = project.verdicts()["toy_venue20/noop-1"]
    assert verdict == "INVALID"
    assert reason.startswith(f"only 1 of {ALL} checks ran")


def test_a_part_of_the_checks_can_fail_a_trial(project: Project) -> None:
    project.task(checks="def test_a(layer1): assert False\ndef test_b(layer1): pass\n")
    assert project.run("--deploybench-agent=noop", "-k", "test_a").ret == pytest.ExitCode.TESTS_FAILED
    assert project.verdicts()["toy_venue20/noop-1"][0] == "FAILED"


def test_an_unfinished_trial_beside_one_that_passed_fails_the_session(project: Project) -> None:
    project.task()
    project.task("whole_venue20")
    result = project.run(
        "--deploybench-agent=noop", "tasks/toy_venue20/test_toy_venue20.py::test_it_works", "tasks/whole_venue20"
    )
    result.assert_outcomes(passed=1 + ALL)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_stopping_at_the_first_failure_records_what_ran(project: Project) -> None:
    project.task(checks="def test_a(layer1): assert False\ndef test_b(layer1): pass\n")
    project.task("zz_venue20")
    assert project.run("--deploybench-agent=noop", "-x").ret == pytest.ExitCode.TESTS_FAILED
    assert list(project.verdicts()) == ["toy_venue20/noop-1"]
    assert project.verdicts()["toy_venue20/noop-1"][0] == "FAILED"


def test_a_record_is_written_as_soon_as_its_trial_is_over(project: Project) -> None:
    project.task("a_venue20")
    project.task(
        "b_venue20",
        checks="from pathlib import Path\n"
        "def test_order(layer1):\n"
        "    assert Path('run/a_venue20/noop/attempt-01/record.json').is_file()\n"
        "    assert not Path('run/run.json').exists()\n",
    )
    assert project.run("--deploybench-agent=noop").ret == pytest.ExitCode.OK


def test_junit_holds_what_a_reader_asks_for(project: Project) -> None:
    project.task()
    project.task("bad_venue20", checks="def test_it(layer1): assert False\n")
    project.run(
        "--deploybench-agent=reference", "--deploybench-attempts=2", "-n2", "--junitxml=r.xml", "--deploybench-seed=7"
    )
    cases = ElementTree.parse(project.path / "r.xml").findall(".//testcase")  # noqa: S314 - written by ourselves
    properties = [{each.get("name"): each.get("value") for each in case.iter("property")} for case in cases]
    assert len(properties) == 4 * ALL
    assert all({"task", "agent", "model", "attempt", "seed", "run_seed"} <= found.keys() for found in properties)
    judged = [found for found in properties if "verdict" in found]
    assert sorted((found["task"], found["attempt"], found["verdict"]) for found in judged) == [
        ("bad_venue20", "1", "FAILED"),
        ("bad_venue20", "2", "FAILED"),
        ("toy_venue20", "1", "PASSED"),
        ("toy_venue20", "2", "PASSED"),
    ]
    assert all({"duration_machine", "duration_checks", "duration_total"} <= found.keys() for found in judged)
    assert {found["seed"] for found in judged if found["task"] == "toy_venue20"} == {
        str(trial_seed(7, "toy_venue20", attempt)) for attempt in (1, 2)
    }
    assert "deploybench" not in {name for found in properties for name in found}


def test_the_run_says_how_it_was_made(project: Project) -> None:
    project.task()
    project.run("--deploybench-agent=noop", "--deploybench-json=elsewhere/all.json")
    assert not (project.path / "run" / "run.json").exists()
    run = json.loads((project.path / "elsewhere" / "all.json").read_text())
    assert run["command"][0] == "pytest"
    assert "--deploybench-agent=noop" in run["command"]
    assert (run["run_id"], run["provider"]) == ("run", "scripted")
    assert {"python", "pytest", "pytest_deploybench"} <= run["versions"].keys()
    assert 0 <= run["run_seed"] < 2**63


def test_a_secret_in_a_failure_is_not_recorded(project: Project) -> None:
    secret = "sk-ant-" + "a1B2" * 12
    project.task(checks=f"def test_a(layer1): raise RuntimeError('key {secret}')\n")
    project.run("--deploybench-agent=noop")
    written = [path.read_text() for path in (project.path / "run").rglob("*.json")]
    assert written
    assert not [text for text in written if secret in text]
