"""A challenge stays inside its folder, and its seed says who is compared on what."""

from __future__ import annotations

import pytest

from pytest_deploybench.layer2 import Challenge
from pytest_deploybench.layer2.challenge import trial_seed


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "", "."])
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_no_path_leaves_the_folder(name: str, side: str) -> None:
    inputs = {name: b""} if side == "inputs" else {}
    outputs = (name,) if side == "outputs" else ()
    with pytest.raises(ValueError, match="must stay inside"):
        Challenge("true", inputs, outputs)


def test_nested_paths_are_fine() -> None:
    assert Challenge("true", {"in/a.txt": b"x"}, ("out/b.json",)).outputs == ("out/b.json",)


def test_seed_depends_on_run_task_and_attempt_only() -> None:
    seeds = {trial_seed(run, task, attempt) for run in (1, 2) for task in ("a", "b") for attempt in (1, 2)}
    assert len(seeds) == 8
    assert trial_seed(1, "a", 1) == trial_seed(1, "a", 1)
    assert all(0 <= seed < 2**63 for seed in seeds)
