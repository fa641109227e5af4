"""The challenge and the oracle of theano_nipsw12: no machine, no Theano, derivatives checked by differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.theano_nipsw12 import test_theano_nipsw12 as task
from tasks.theano_nipsw12 import theano_oracle as oracle

SEEDS = range(5)
"""Among them nets of both kinds."""


def right_result(net: oracle.Net) -> dict[str, Any]:
    """What a right deployment leaves of its computations, made by the oracle."""
    losses, inward, around = oracle.train(net)
    return {"net": {"losses": losses, "inward": inward.tolist(), "around": around.tolist()}}


def left(folder: Path, result: dict[str, Any]) -> Experiment:
    """An experiment that left this result."""
    (folder / "result.json").write_text(json.dumps(result))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def test_a_seed_draws_one_challenge() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs


def test_another_seed_draws_another_challenge() -> None:
    first, other = (json.loads(task.draw(seed).inputs["challenge.json"]) for seed in (5, 6))
    assert all(first[part] != other[part] for part in ("sequence", "start", "target", "inward", "around", "rate"))


def test_both_kinds_of_units_are_drawn() -> None:
    assert {oracle.draw_net(seed).activation for seed in SEEDS} == set(oracle.ACTIVATIONS)


@pytest.mark.parametrize("name", oracle.ACTIVATIONS)
def test_slopes_of_units_are_those_of_differences(name: str) -> None:
    function, slope = oracle.ACTIVATIONS[name]
    places = np.array([-2.0, 0.0, 0.3, 5.0])
    assert slope(places) == pytest.approx((function(places + 1e-6) - function(places - 1e-6)) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_back_propagation_is_that_of_differences(seed: int) -> None:
    net = oracle.draw_net(seed)
    _, *slopes = oracle.loss_and_slopes(net, net.inward, net.around)
    for which, slope in enumerate(slopes):
        for place in ((0, 0), (1, 2)):
            moved = []
            for sign in (1, -1):
                weights = [net.inward.copy(), net.around.copy()]
                weights[which][place] += sign * 1e-6
                moved.append(oracle.loss_and_slopes(net, weights[0], weights[1])[0])
            assert (moved[0] - moved[1]) / 2e-6 == pytest.approx(slope[place], rel=1e-5, abs=1e-7)


def test_a_net_of_one_unit_by_hand() -> None:
    one = np.ones((1, 1))
    net = oracle.Net("tanh", 0.5 * one, 0 * one[0], 0 * one, one, one, rate=0.1, steps=1)
    state = np.tanh(0.5)
    losses, inward, around = oracle.train(net)
    assert losses == [pytest.approx(state**2)]
    assert inward[0, 0] == pytest.approx(1 - 0.1 * 2 * state * (1 - state**2) * 0.5)
    assert around[0, 0] == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_net_learns(seed: int) -> None:
    losses, *_ = oracle.train(oracle.draw_net(seed))
    assert losses[-1] < 0.95 * losses[0]


def test_the_right_result_passes_and_a_wrong_digit_does_not(tmp_path: Path) -> None:
    challenge = task.draw(5)
    task.test_a_recurrent_net_is_trained_through_scan(left(tmp_path, right_result(challenge.net)), challenge)
    wrong = right_result(challenge.net)
    wrong["net"]["losses"][-1] *= 1.00001
    with pytest.raises(AssertionError, match="the losses: differs"):
        task.test_a_recurrent_net_is_trained_through_scan(left(tmp_path, wrong), challenge)


def test_single_precision_is_not_enough(tmp_path: Path) -> None:
    challenge = task.draw(5)
    result = right_result(challenge.net)
    result["net"]["around"] = np.float32(result["net"]["around"]).tolist()
    with pytest.raises(AssertionError, match="the trained recurrent weights"):
        task.test_a_recurrent_net_is_trained_through_scan(left(tmp_path, result), challenge)


def test_another_shape_is_refused(tmp_path: Path) -> None:
    challenge = task.draw(5)
    result = right_result(challenge.net)
    result["net"]["losses"].pop()
    with pytest.raises(AssertionError, match="expected shape"):
        task.test_a_recurrent_net_is_trained_through_scan(left(tmp_path, result), challenge)
