"""guard: a check that hangs is FAILED within its time, which grows with the machine's speed factor."""

from __future__ import annotations

import pytest

from pytest_deploybench.plugin.layer1_checks import CHECKS
from tests.plugin.conftest import STAND_IN, Project

HANGING = """\
import time

def test_hangs(layer1):
    time.sleep(3600)

def test_after(layer1):
    pass
"""

LOOKING = """\
def test_limits(layer1, request):
    print("LIMITS", [marker.args[0] for marker in request.node.iter_markers("timeout")])
"""


@pytest.mark.parametrize("parallel", [(), ("-n", "1")], ids=["plain", "xdist"])
def test_a_check_that_hangs_is_failed_and_the_machine_goes(project: Project, parallel: tuple[str, ...]) -> None:
    project.task(checks=HANGING, budget__check_s=1)
    result = project.run("--deploybench-agent=noop", *parallel)
    result.assert_outcomes(failed=1, passed=len(CHECKS) + 1)
    verdict, reason = project.verdicts()["toy_venue20/noop-1"]
    assert verdict == "FAILED"
    assert reason.startswith("test_hangs: ")
    assert "Timeout" in reason
    assert project.provider.traces() == []


def test_the_limit_grows_with_the_speed_factor(project: Project) -> None:
    # What a slower machine would state; the scripted one is native.
    slow = STAND_IN.replace("lease.machine_id, lease.facts", "lease.machine_id, dataclasses.replace(FACTS)")
    assert slow != STAND_IN
    facts = 'FACTS = MachineFacts("scripted", "none", "tcg", speed_factor=9.5)\n'
    imports = "import dataclasses\nfrom pytest_deploybench.model import MachineFacts\n"
    project.pytester.makeconftest(imports + facts + slow.partition("\n")[2])
    project.task(checks=LOOKING, budget__check_s=20)
    result = project.run("--deploybench-agent=noop", "-s")
    result.stdout.fnmatch_lines(["*LIMITS [[]190.0, 20.0]"])


def test_agent_and_experiment_are_not_timed(project: Project) -> None:
    slow = STAND_IN.replace("        yield diary", "        __import__('time').sleep(1.5)\n        yield diary")
    assert slow != STAND_IN
    project.pytester.makeconftest(slow)
    project.task(budget__check_s=1)
    project.run("--deploybench-agent=noop").assert_outcomes(passed=len(CHECKS) + 1)


def test_without_pytest_timeout_checks_still_run(project: Project) -> None:
    project.task()
    project.run("--deploybench-agent=noop", "-p", "no:timeout").assert_outcomes(passed=len(CHECKS) + 1)
