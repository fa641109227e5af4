"""The challenge and the oracle of libsvm_tist11: no machine, no SVM library, small cases solved by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.libsvm_tist11 import libsvm_oracle as oracle
from tasks.libsvm_tist11 import test_libsvm_tist11 as task

TWO_POINTS = np.array([[0.0], [1.0]])
"""With opposite labels the optimum has alpha = min(C, 1 / (1 - k)) twice, k the kernel between them, and rho = 0."""


def left(folder: Path, result: dict[str, Any]) -> Experiment:
    """An experiment that left this result."""
    (folder / "result.json").write_text(json.dumps(result))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def solve_pair(problem: oracle.Problem) -> dict[str, Any]:
    """A two-class model that solves no more than its own two first points of opposite label."""
    other = int(np.flatnonzero(problem.halves != problem.halves[0])[0])
    return {
        "labels": [int(problem.halves[0]), -int(problem.halves[0])],
        "sv_indices": [1, other + 1],
        "sv_coef": [[0.5], [-0.5]],
        "rho": [0.0],
    }


def silent_digits(problem: oracle.Problem) -> dict[str, Any]:
    """A ten-class model without coefficients: it votes for what rho says."""
    labels = list(range(oracle.CLASSES))
    return {
        "labels": labels,
        "sv_indices": [1],
        "sv_coef": [[0.0] * 9],
        "rho": [-1.0] * 45,
        "predicted": [0] * oracle.TEST,
    }


def test_a_seed_draws_one_challenge() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    assert (task.draw(5).problem.test_digits == task.draw(5).problem.test_digits).all()


def test_another_seed_draws_another_challenge() -> None:
    assert task.draw(5).inputs["challenge.json"] != task.draw(6).inputs["challenge.json"]


def test_the_machine_never_learns_the_digits_to_be_recognised() -> None:
    sent = json.loads(task.draw(5).inputs["challenge.json"])
    assert set(sent) == {"digits", "binary"}
    assert set(sent["digits"]) == {"x", "y", "test", "options"}
    assert len(sent["digits"]["y"]) == oracle.TRAIN


def test_what_is_sent_is_what_is_judged() -> None:
    challenge = task.draw(5)
    sent = json.loads(challenge.inputs["challenge.json"])
    assert (np.array(sent["digits"]["test"]) == challenge.problem.test).all()
    assert (np.array(sent["binary"]["x"]) == challenge.problem.train[: oracle.BINARY]).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_digits_need_a_kernel_and_are_learnable(seed: int) -> None:
    problem = oracle.draw_problem(seed)
    assert oracle.ridge_accuracy(problem) - task.BELOW_RIDGE > oracle.centroid_accuracy(problem)


def test_rbf_kernel_by_hand() -> None:
    assert oracle.rbf(TWO_POINTS, TWO_POINTS, 2.0) == pytest.approx(np.array([[1, np.exp(-2)], [np.exp(-2), 1]]))


@pytest.mark.parametrize("cost", [0.3, 100.0])
def test_the_gap_vanishes_at_the_optimum_of_two_points(cost: float) -> None:
    alpha = min(cost, 1 / (1 - np.exp(-1)))
    point = oracle.DualPoint(np.array([alpha, alpha]), np.array([1.0, -1.0]), rho=0.0)
    assert point.balance() == 0
    assert point.relative_gap(TWO_POINTS, oracle.Kernel(cost, 1.0, 1e-6)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("scale", "rho"), [(0.9, 0.0), (1.1, 0.0), (1.0, 0.1)])
def test_the_gap_is_positive_beside_the_optimum(scale: float, rho: float) -> None:
    alpha = scale / (1 - np.exp(-1))
    point = oracle.DualPoint(np.array([alpha, alpha]), np.array([1.0, -1.0]), rho)
    assert point.relative_gap(TWO_POINTS, oracle.Kernel(100.0, 1.0, 1e-6)) > 1e-3


@pytest.mark.parametrize("first", [1, -1])
def test_coefficients_are_read_from_the_side_of_the_models_first_label(first: int) -> None:
    model = {"labels": [first, -first], "sv_indices": [2, 3], "sv_coef": [[first * -0.5], [first * 0.5]], "rho": [0.25]}
    point = oracle.dual_point(model, np.array([1.0, -1.0, 1.0]))
    assert point.alpha.tolist() == [0, 0.5, 0.5]
    assert (point.signs * first).tolist() == [1, -1, 1]


def test_votes_by_hand() -> None:
    # Labels in the model's order 7, 5, 9; one support vector each at 0, 10, 20; each pair separates at once.
    model = {"labels": [7, 5, 9], "sv_indices": [1, 2, 3], "sv_coef": [[1, 1], [-1, 1], [-1, -1]], "rho": [0, 0, 0]}
    train, labels = np.array([[0.0], [10.0], [20.0]]), np.array([7, 5, 9])
    assert oracle.votes(model, train, labels, np.array([[1.0], [9.0], [21.0]]), 0.1).tolist() == [7, 5, 9]


def test_a_tie_goes_to_the_earlier_label() -> None:
    # 7 beats 5, 5 beats 9, 9 beats 7.
    model = {"labels": [7, 5, 9], "sv_indices": [1], "sv_coef": [[0, 0]], "rho": [-1, 1, -1]}
    assert oracle.votes(model, np.zeros((1, 1)), np.array([7]), np.zeros((1, 1)), 1.0).tolist() == [7]


def test_a_solution_that_stopped_early_is_feasible_but_not_optimal(tmp_path: Path) -> None:
    challenge = task.draw(5)
    experiment = left(tmp_path, {"binary": solve_pair(challenge.problem)})
    task.test_the_dual_solution_is_feasible(experiment, challenge)
    with pytest.raises(AssertionError, match="duality gap below"):
        task.test_the_dual_solution_is_optimal(experiment, challenge)


@pytest.mark.parametrize(
    ("coefficients", "complaint"),
    [([[-0.5], [0.5]], "alpha >= 0"), ([[99.0], [-99.0]], "alpha <= C"), ([[0.5], [-0.25]], "y'alpha = 0")],
)
def test_an_infeasible_solution_is_refused(tmp_path: Path, coefficients: list[list[float]], complaint: str) -> None:
    challenge = task.draw(5)
    model = {**solve_pair(challenge.problem), "sv_coef": coefficients}
    with pytest.raises(AssertionError, match=complaint):
        task.test_the_dual_solution_is_feasible(left(tmp_path, {"binary": model}), challenge)


def test_predictions_must_come_from_the_model_and_be_right(tmp_path: Path) -> None:
    challenge = task.draw(5)
    digits = silent_digits(challenge.problem)
    experiment = left(tmp_path, {"digits": digits})
    task.test_predictions_follow_from_the_trained_model(experiment, challenge)
    with pytest.raises(AssertionError, match="accuracy of at least"):
        task.test_unseen_digits_are_recognised(experiment, challenge)
    truth = challenge.problem.test_digits.tolist()
    experiment = left(tmp_path, {"digits": {**digits, "predicted": truth}})
    task.test_unseen_digits_are_recognised(experiment, challenge)
    with pytest.raises(AssertionError, match="predictions differ"):
        task.test_predictions_follow_from_the_trained_model(experiment, challenge)


def test_too_few_predictions_are_refused(tmp_path: Path) -> None:
    challenge = task.draw(5)
    experiment = left(tmp_path, {"digits": {**silent_digits(challenge.problem), "predicted": [0]}})
    for check in (task.test_unseen_digits_are_recognised, task.test_predictions_follow_from_the_trained_model):
        with pytest.raises(AssertionError, match="got 1"):
            check(experiment, challenge)
