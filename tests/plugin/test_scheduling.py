"""scheduling: one trial is one unit on one worker, the longest first, and a crash costs its own trial only."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from bench.scheduling import LIMIT, WORKERS, Config, Worker, planned, simulate
from pytest_deploybench.plugin.layer1_checks import CHECKS
from pytest_deploybench.plugin.scheduling import TrialScheduling
from tests.plugin.conftest import Project

CRASHING = """\
import os

def test_before(layer1):
    pass

def test_crashes(layer1):
    os._exit(3)

def test_after(layer1):
    pass
"""
LINE = re.compile(r"\[(gw\d+)\] \[ *\d+%\] PASSED \S+?/(\w+)/\S+\[([^]]+)\]")


def started(result: pytest.RunResult) -> list[tuple[str, str]]:
    """(worker, trial) in the order in which checks passed."""
    return [(found[1], f"{found[2]}-{found[3]}") for line in result.outlines if (found := LINE.match(line))]


def test_a_trial_stays_on_one_worker(project: Project) -> None:
    project.task("a_venue20")
    project.task("b_venue20")
    result = project.run("--deploybench-agent=noop", "--deploybench-attempts=2", "-n2", "-v")
    result.assert_outcomes(passed=4 * (len(CHECKS) + 1))
    workers = defaultdict(set)
    for worker, trial in started(result):
        workers[trial].add(worker)
    assert len(workers) == 4
    assert all(len(each) == 1 for each in workers.values())
    assert {verdict for verdict, _ in project.verdicts().values()} == {"PASSED"}


def test_the_longest_agent_budget_goes_first(project: Project) -> None:
    for name, budget in (("a_venue20", 300), ("b_venue20", 900), ("c_venue20", 600)):
        project.task(name, budget__agent_s=budget)
    project.pytester.makepyfile(test_plain="def test_plain(): pass")
    result = project.run("--deploybench-agent=noop", "-n1", "-v")
    order = list(dict.fromkeys(trial for _, trial in started(result)))
    assert order == ["b_venue20-noop", "c_venue20-noop", "a_venue20-noop"]
    result.assert_outcomes(passed=3 * (len(CHECKS) + 1) + 1)


def test_a_trial_does_not_wait_behind_a_long_one_while_a_worker_is_idle(project: Project) -> None:
    for meeting in ("first_waits", "third_is_over"):
        os.mkfifo(project.path / meeting)
    first = "def test_waits(layer1):\n    open('first_waits', 'w').close()\n    open('third_is_over').close()\n"
    project.task("a_venue20", checks=first + "def test_last(layer1): pass\n", budget__agent_s=900, budget__check_s=20)
    second = "def test_waits(layer1): open('first_waits').close()\n"
    second += "".join(f"def test_{number}(layer1): pass\n" for number in range(3))
    project.task("b_venue20", checks=second, budget__agent_s=800, budget__check_s=20)
    third = "def test_ends(layer1): open('third_is_over', 'w').close()\n"
    project.task("c_venue20", checks=third, budget__agent_s=700, budget__check_s=20)
    project.run("--deploybench-agent=noop", "-n2").assert_outcomes(passed=3 * len(CHECKS) + 7)


def test_the_contestants_of_one_task_run_in_parallel(project: Project) -> None:
    os.mkfifo(project.path / "meeting")
    meets = (
        "def test_meets(layer1, trial_key):\n    open('meeting', 'w' if trial_key.agent == 'noop' else 'r').close()\n"
    )
    project.task(checks=meets, budget__check_s=60)
    agents = ("--deploybench-agent=noop", "--deploybench-agent=reference")
    project.run(*agents, "-n2").assert_outcomes(passed=2 * (len(CHECKS) + 1))


@pytest.mark.parametrize("workers", WORKERS)
def test_the_whole_benchmark_ends_near_the_earliest_possible_moment(workers: int) -> None:
    benchmark = planned()
    outcome = simulate(TrialScheduling, benchmark, workers)
    assert outcome.makespan_s <= LIMIT * benchmark.bound_s(workers)
    assert outcome.machines == len(benchmark.seconds) == 51 * 4


def test_the_node_ids_of_all_workers_are_kept_once() -> None:
    benchmark = planned()
    scheduler = TrialScheduling(Config(2, benchmark.lineup), Producer("test", enabled=False))  # type: ignore[arg-type]
    for name in ("gw0", "gw1"):
        worker = Worker(SimpleNamespace(id=name))
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, [f"{nodeid} "[:-1] for nodeid in benchmark.collection])
    first, second = scheduler.registered_collections.values()
    assert first == benchmark.collection
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_without_xdist_the_order_is_pytests(project: Project) -> None:
    for name, budget in (("a_venue20", 300), ("b_venue20", 900)):
        project.task(name, budget__agent_s=budget)
    result = project.run("--deploybench-agent=noop", "-v", "-p", "no:xdist")
    passed = [line.split("/")[1] for line in result.outlines if "::" in line and "PASSED" in line]
    assert list(dict.fromkeys(passed)) == ["a_venue20", "b_venue20"]
    result.assert_outcomes(passed=2 * (len(CHECKS) + 1))


def test_a_worker_that_crashes_makes_its_trial_invalid_and_no_other(project: Project) -> None:
    project.task("a_venue20", checks=CRASHING, budget__agent_s=900)
    project.task("b_venue20")
    project.task("c_venue20")
    result = project.run("--deploybench-agent=noop", "-n1", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=len(CHECKS) + 1 + 2 * (len(CHECKS) + 1), failed=1)
    verdicts = project.verdicts()
    assert verdicts.pop("a_venue20/noop-1") == (
        "INVALID",
        "pytest_deploybench broke: test_crashes: worker 'gw0' crashed while running "
        "'tasks/a_venue20/test_a_venue20.py::test_crashes[noop]'",
    )
    assert {verdict for verdict, _ in verdicts.values()} == {"PASSED"}
    assert project.provider.traces() == []
    assert project.record("a_venue20/noop/attempt-01")["checks"][-1]["name"] == "test_crashes"


def test_other_projects_keep_their_scheduler(project: Project) -> None:
    project.pytester.makepyfile("def test_a(): pass\ndef test_b(): pass")
    result = project.pytester.runpytest_subprocess("-n1", "-v", timeout=120)
    result.stdout.fnmatch_lines(["scheduling tests via LoadScheduling"])
