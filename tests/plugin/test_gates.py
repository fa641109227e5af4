"""gates: a gate that decides, decides; and a run in which nothing was judged is never green."""

from __future__ import annotations

import pytest

from pytest_deploybench.plugin.gates import Count, Gates, exit_status, findings
from tests.plugin.conftest import STAND_IN, Project
from tests.plugin.test_settings import usage_error

OK, RED, STOPPED, NOTHING = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
PARALLEL = pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["plain", "xdist"])
FAILS = "def test_it(layer1): assert False, 'out of order'\n"
BREAKS = "def test_it(layer1, nothing): pass\n"
INVALID = STAND_IN.replace("    diary = Diary()", "    raise RuntimeError('ours')\n    diary = Diary()")
SKIPPED = STAND_IN.replace("    diary = Diary()", "    pytest.skip('no GPU here')\n    diary = Diary()")


@pytest.mark.parametrize(
    ("before", "gates", "trials", "after"),
    [
        (OK, Gates(), Count(passed=2), OK),
        (OK, Gates(), Count(), NOTHING),
        (OK, Gates(), Count(invalid=2), NOTHING),
        (OK, Gates(), Count(skipped=2), NOTHING),
        (OK, Gates(), Count(passed=1, skipped=2), OK),
        (OK, Gates(), Count(passed=1, invalid=1), RED),
        (RED, Gates(), Count(passed=1), RED),
        (RED, Gates(), Count(passed=1, failed=1), RED),
        (RED, Gates(), Count(invalid=2), RED),
        (RED, Gates(min_pass_rate=50), Count(passed=1, failed=1), OK),
        (RED, Gates(min_pass_rate=50.1), Count(passed=1, failed=1), RED),
        (RED, Gates(min_pass_rate=0), Count(failed=2), OK),
        (RED, Gates(min_pass_rate=0), Count(invalid=2), NOTHING),
        (RED, Gates(min_pass_rate=50), Count(passed=2, invalid=1), RED),
        (RED, Gates(max_invalid_rate=34), Count(passed=2, invalid=1), OK),
        (RED, Gates(max_invalid_rate=33), Count(passed=2, invalid=1), RED),
        (RED, Gates(max_invalid_rate=50), Count(passed=2, failed=1, invalid=1), RED),
        (RED, Gates(max_invalid_rate=100), Count(invalid=3), NOTHING),
        (RED, Gates(50, 25), Count(passed=2, failed=1, invalid=1), OK),
        (OK, Gates(expect=2), Count(passed=2), OK),
        (OK, Gates(expect=3), Count(passed=2), RED),
        (RED, Gates(expect=2), Count(passed=1, failed=1), RED),
        (RED, Gates(min_pass_rate=50, expect=2), Count(passed=1, failed=1), OK),
        (STOPPED, Gates(min_pass_rate=0), Count(passed=1), STOPPED),
        (NOTHING, Gates(), Count(passed=1), OK),
    ],
)
def test_what_decides(before: int, gates: Gates, trials: Count, after: int) -> None:
    assert exit_status(before, gates, trials, otherwise_broken=False) == after


def test_no_gate_excuses_what_is_no_trial() -> None:
    assert exit_status(RED, Gates(min_pass_rate=0), Count(passed=1), otherwise_broken=True) == RED
    assert exit_status(OK, Gates(), Count(passed=1), otherwise_broken=True) == RED


def test_each_gate_shows_its_figures() -> None:
    assert [str(finding) for finding in findings(Gates(60, None, 51), Count(31, 20, 1))] == [
        "gate: pass rate 60.78 % (31 of 51) >= 60 %: met",
        "gate: INVALID 1.923 % (1 of 52) <= 0 %: not met",
        "gate: 51 trials judged >= 51: met",
    ]


@PARALLEL
def test_failures_within_the_gate_leave_the_session_green(project: Project, parallel: tuple[str, ...]) -> None:
    project.task()
    project.task("bad_venue20", checks=FAILS)
    met = project.run(
        "--deploybench-agent=noop", "--deploybench-min-pass-rate=50%", "--deploybench-expect=2", *parallel
    )
    assert met.ret == OK
    met.stdout.fnmatch_lines(["evidence: *", "gate: pass rate 50 % (1 of 2) >= 50 %: met", "gate: 2 trials * met"])


def test_one_trial_less_than_the_gate_asks_for(project: Project) -> None:
    project.task()
    project.task("bad_venue20", checks=FAILS)
    result = project.run("--deploybench-agent=noop", "--deploybench-min-pass-rate=51")
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate: pass rate 50 % (1 of 2) >= 51 %: not met"])


def test_too_few_judged_trials(project: Project) -> None:
    project.task()
    result = project.run("--deploybench-agent=noop", "--deploybench-expect=2")
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate: 1 trial judged >= 2: not met"])


def test_invalid_trials_within_the_gate(project: Project) -> None:
    project.task()
    project.task("broken_venue20", checks=BREAKS)
    gate = "--deploybench-max-invalid-rate"
    assert project.run("--deploybench-agent=noop", f"{gate}=50").ret == OK
    assert project.run("--deploybench-agent=noop", f"{gate}=49", "--deploybench-run-dir=again").ret == RED


@PARALLEL
@pytest.mark.parametrize("stand_in", [INVALID, SKIPPED], ids=["invalid", "skipped"])
def test_nothing_judged_is_never_green(project: Project, stand_in: str, parallel: tuple[str, ...]) -> None:
    project.pytester.makeconftest(stand_in)
    project.task()
    lenient = ("--deploybench-min-pass-rate=0", "--deploybench-max-invalid-rate=100")
    result = project.run("--deploybench-agent=noop", *lenient, *parallel)
    assert result.ret == NOTHING
    result.stdout.fnmatch_lines(["deploybench: nothing was judged (*): exit status 5"])


def test_a_session_without_any_task_is_not_green(project: Project) -> None:
    project.pytester.makepyfile("def test_a(): pass")
    assert project.run("--deploybench-agent=noop").ret == NOTHING


@PARALLEL
def test_a_session_that_stops_early_meets_no_gate(project: Project, parallel: tuple[str, ...]) -> None:
    project.task()
    project.task("a_bad_venue20", checks=FAILS)
    result = project.run("--deploybench-agent=noop", "--deploybench-min-pass-rate=0", "-x", *parallel)
    assert result.ret in (RED, STOPPED)
    result.stdout.fnmatch_lines(["gate: the session stopped before its end: not met"])


@pytest.mark.parametrize(
    ("name", "content"),
    [("test_own.py", "def test_a(): assert False\n"), ("test_own.py", "import nowhere_at_all\n")],
    ids=["test", "module"],
)
def test_what_is_no_trial_fails_as_anywhere(project: Project, name: str, content: str) -> None:
    project.task()
    (project.path / name).write_text(content)
    lenient = ("--deploybench-min-pass-rate=0", "--continue-on-collection-errors")
    assert project.run("--deploybench-agent=noop", *lenient).ret == RED


@pytest.mark.parametrize("option", ["min-pass-rate", "max-invalid-rate"])
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("101", "'101' is not a share in per cent, from 0 to 100, such as 62.5"),
        ("-1", "'-1' is not a share in per cent"),
        ("half", "'half' is not a share in per cent"),
        ("nan", "'nan' is not a share in per cent"),
        ("0.5", "'0.5': write 50 for 50 %, or 0.5% if meant"),
    ],
)
def test_a_wrong_share_is_a_usage_error(project: Project, option: str, value: str, says: str) -> None:
    result = project.collect(f"--deploybench-{option}={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--deploybench-{option}: {says}*"])


def test_a_gate_before_nothing_is_a_usage_error(project: Project) -> None:
    project.task()
    for gate in ("--deploybench-min-pass-rate=0", "--deploybench-max-invalid-rate=0", "--deploybench-expect=1"):
        assert "nobody was named to deploy" in usage_error(project, gate)
    shown = usage_error(project, "--deploybench-agent=noop", "--deploybench-expect=1", "--collect-only")
    assert "with --collect-only none is run" in shown
