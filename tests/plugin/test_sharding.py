"""sharding: each selected trial is in exactly one part, the parts are even, and every host splits alike."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_deploybench.plugin.layer1_checks import CHECKS
from pytest_deploybench.schedule import shards
from tests.plugin.conftest import Project

TWO = ("--deploybench-agent=noop", "--deploybench-agent=reference", "--deploybench-attempts=2")
NODE = re.compile(r"\S+?/(\w+)/\S+::test_it_works\[(.+)\]")


def trials(result: pytest.RunResult) -> set[str]:
    return {f"{found[1]}-{found[2]}" for line in result.outlines if (found := NODE.match(line))}


def test_every_trial_is_in_one_part(project: Project) -> None:
    for name, budget in (("a_venue20", 300), ("b_venue20", 900), ("c_venue20", 600)):
        project.task(name, budget__agent_s=budget)
    whole = trials(project.collect(*TWO, "--collect-only", "-q", "--deploybench-shard=1/1"))
    assert len(whole) == 3 * 4
    parts = [trials(project.collect(*TWO, "--collect-only", "-q", f"--deploybench-shard={i}/5")) for i in range(1, 6)]
    assert set().union(*parts) == whole
    assert sum(map(len, parts)) == len(whole)
    assert all(parts)


def test_a_part_runs_its_trials_only_under_xdist_too(project: Project) -> None:
    for name in ("a_venue20", "b_venue20"):
        project.task(name)
    project.pytester.makepyfile(test_plain="def test_plain(): pass")
    found = []
    for part in ("1/2", "2/2"):
        folder = f"--deploybench-run-dir=run{part[0]}"
        result = project.run(*TWO, f"--deploybench-shard={part}", "--deploybench-seed=7", "-n2", folder)
        result.assert_outcomes(passed=4 * (len(CHECKS) + 1) + 1)
        run = json.loads((project.path / f"run{part[0]}" / "run.json").read_text())
        found += [trial["folder"] for trial in run["trials"]]
    assert len(found) == len(set(found)) == 8


def test_what_is_not_selected_takes_no_room_in_a_part(project: Project) -> None:
    project.task("a_venue20", budget__agent_s=9000)
    project.task("b_venue20")
    project.task("c_venue20")
    chosen = ("--deploybench-agent=noop", "--collect-only", "-q", "-k", "not a_venue20")
    parts = [trials(project.collect(*chosen, f"--deploybench-shard={part}/2")) for part in (1, 2)]
    assert parts == [{"b_venue20-noop"}, {"c_venue20-noop"}]


def test_a_certificate_tells_how_long_a_witness_takes(project: Project) -> None:
    said: dict[str, Any] = {"reason": "", "termination": None, "durations": {"total": 6000.0}, "failed_checks": []}
    verdicts = {"reference": "PASSED", "noop": "FAILED", "shallow": "FAILED"}
    certificate = {
        "task": "c_venue20",
        "digest": "stale",
        "date": "2026-01-02T03:04:05Z",
        "provider": "qemu",
        "image": None,
        "acceleration": "tcg",
        "speed_factor": 2.0,
        "versions": {},
        "witnesses": {agent: said | {"verdict": verdict} for agent, verdict in verdicts.items()},
    }
    for name in ("a_venue20", "b_venue20", "c_venue20"):  # 660 s by their budgets
        (project.task(name) / "certification.json").write_text(json.dumps(certificate if name[0] == "c" else {}))
    chosen = ("--deploybench-agent=noop", "--collect-only", "-q")
    assert trials(project.collect(*chosen, "--deploybench-shard=1/2")) == {"c_venue20-noop"}


def test_the_longest_go_first_and_ties_by_name() -> None:
    assert shards({"a": 1.0, "b": 1.0, "c": 3.0, "d": 2.0}, 2) == [frozenset("cb"), frozenset("da")]
    assert shards({"b": 1.0, "a": 1.0}, 2) == shards({"a": 1.0, "b": 1.0}, 2)
    assert shards({"a": 1.0}, 3) == [frozenset("a"), frozenset(), frozenset()]
    assert shards({}, 2) == [frozenset(), frozenset()]


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "1/0", "a/2", "1/2/3", "-1/2", "", "½/2", "1/99999999999999"])
def test_what_is_no_part_is_a_usage_error(project: Project, part: str) -> None:
    result = project.collect("--deploybench-agent=noop", f"--deploybench-shard={part}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--deploybench-shard: '{part}' is no part I of N*for example 2/4"])
