"""The challenge and the oracle of rcpp_jss11: no machine, no R, small cases solved by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.rcpp_jss11 import rcpp_oracle as oracle
from tasks.rcpp_jss11 import test_rcpp_jss11 as task


def left(folder: Path, challenge: task.RcppChallenge, **changes: Any) -> Experiment:
    """An experiment in which everything was right but for these changes."""
    drawn = challenge.drawn
    right = {
        "headers": [task.VERSION],
        "convolved_r": drawn.convolved().tolist(),
        "convolved_cpp": drawn.convolved().tolist(),
        "polynomial": drawn.polynomial().tolist(),
        "turned": {"reversed": ["txet"], "rev_numbers": drawn.points[::-1].tolist()},
        "allowed": [drawn.within],
        "refused": {"error": [drawn.complaint]},
        "cpu_seconds_r": [0.02],
        "cpu_seconds_cpp": [0.0],
    }
    (folder / "result.json").write_text(json.dumps(right | changes))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def judge(experiment: Experiment, challenge: task.RcppChallenge) -> None:
    """Every claim that needs no machine."""
    task.test_fresh_cpp_is_compiled_against_the_headers_of_this_version(experiment)
    for language in ("r", "cpp"):
        task.test_convolution_agrees_with_numpy(experiment, challenge, language)
    task.test_vectorised_expressions_agree_with_numpy(experiment, challenge)
    task.test_lists_pass_both_ways_with_their_names_and_types(experiment, challenge)
    task.test_exceptions_of_cpp_become_errors_of_r(experiment, challenge)
    task.test_compiled_convolution_is_faster_than_loops_in_r(experiment)


def test_a_seed_draws_one_challenge_and_another_another() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    for name in ("kernels.cpp", "challenge.txt"):
        assert task.draw(5).inputs[name] != task.draw(6).inputs[name]


def test_results_of_a_small_draw_are_known() -> None:
    small = replace(
        oracle.draw(1),
        a=np.array([1.0, 2.0]),
        b=np.array([3.0, 4.0]),
        coefficients=(1.0, 0.0, 2.0),
        points=np.array([3.0]),
    )
    assert small.convolved().tolist() == [3.0, 10.0, 8.0]
    assert small.polynomial().tolist() == [19.0]
    assert "1.0 + x * (0.0 + x * (NumericVector(x.size(), 2.0)))" in small.kernels().decode()


def test_a_value_lies_on_each_side_of_the_limit() -> None:
    for seed in range(100):
        drawn = oracle.draw(seed)
        assert drawn.within < drawn.limit < drawn.beyond


def test_a_right_result_passes(tmp_path: Path) -> None:
    challenge = task.draw(3)
    judge(left(tmp_path, challenge), challenge)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"headers": ["1.0.13"]}, "headers of Rcpp 1.0.10"),
        ({"convolved_cpp": [1.0]}, "convolved_cpp: expected"),
        ({"polynomial": [0.0] * 40}, "polynomial: expected at most"),
        ({"turned": {"reversed": ["text"]}}, "reversed parts"),
        ({"refused": {"value": [1.0]}}, "refused by order"),
        ({"allowed": [0.0]}, "to come back"),
        ({"cpu_seconds_cpp": [0.01]}, "times faster than R"),
    ],
)
def test_each_claim_can_fail(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    challenge = task.draw(3)
    with pytest.raises(AssertionError, match=complaint):
        judge(left(tmp_path, challenge, **changes), challenge)
