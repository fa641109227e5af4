"""The challenge and the oracle of repa_icfp10: no machine, no Haskell, small cases solved by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.repa_icfp10 import repa_oracle as oracle
from tasks.repa_icfp10 import test_repa_icfp10 as task

CORNER = np.array([[1.0, 0.0], [0.0, 0.0]])


def left(folder: Path, challenge: task.RepaChallenge, **changes: object) -> Experiment:
    """An experiment that computed everything right on both workers, but for these changes on the second."""
    right: dict[str, object] = {name: numbers.tolist() for name, numbers in challenge.expected.items()}
    for workers in task.WORKERS:
        result = right | {"capabilities": workers, "gang": workers} | (changes if workers == 2 else {})
        (folder / f"result-{workers}.json").write_text(json.dumps(result))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def test_a_seed_draws_one_challenge_and_another_another() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    assert task.draw(5).inputs["challenge.txt"] != task.draw(6).inputs["challenge.txt"]


def test_what_is_sent_is_what_is_computed_on() -> None:
    kernels = oracle.draw_kernels(7)
    sizes, left_line, *_ = kernels.as_input().decode().splitlines()
    (n, k), (_, m) = kernels.left.shape, kernels.right.shape
    assert list(map(int, sizes.split()))[:3] == [n, k, m]
    assert np.array_equal(np.array(left_line.split(), dtype=np.float64), kernels.left.ravel())


def test_a_relaxed_corner_is_the_mean_of_its_neighbours_and_fixed_values_stay() -> None:
    drawn = oracle.draw_kernels(1)
    plane = replace(drawn, mask=CORNER, fixed=np.array([[0.0, 8.0], [4.0, 2.0]]), start=np.ones((2, 2)), steps=2)
    assert plane.results()["relaxed"].tolist() == [3.0, 8.0, 4.0, 2.0]


def test_moments_weigh_by_place_along_the_innermost_dimension() -> None:
    drawn = replace(oracle.draw_kernels(1), rank3=np.array([[[1.0, 1.0, 1.0]], [[0.0, 0.0, 2.0]]]))
    assert drawn.results()["rank3"].tolist() == [6.0, 6.0]


def test_a_unit_is_spelt_as_ghc_spells_it() -> None:
    unit = oracle.unit_id("/home/agent/.local/lib/libHSrepa-3.4.1.5-Az9Zb.a")
    assert unit == "repa-3.4.1.5-Az9Zb"
    assert oracle.z_encoded(unit) == "repazm3zi4zi1zi5zmAzz9ZZb"


def test_a_right_result_passes(tmp_path: Path) -> None:
    challenge = task.draw(3)
    experiment = left(tmp_path, challenge)
    for kernel in challenge.expected:
        task.test_each_kernel_agrees_with_numpy(experiment, challenge, kernel)
        task.test_two_workers_give_what_one_gives(experiment, kernel)
    for workers in task.WORKERS:
        task.test_the_work_is_shared_by_as_many_workers_as_asked_for(experiment, workers)


def test_a_wrong_element_a_missing_list_and_a_lonely_worker_fail(tmp_path: Path) -> None:
    challenge = task.draw(3)
    product = challenge.expected["product"].tolist()
    wrong = left(tmp_path, challenge, product=[product[0] + 1e-6, *product[1:]], rank3=None, gang=1)
    with pytest.raises(AssertionError, match=r"result-1\.json and result-2\.json differ"):
        task.test_two_workers_give_what_one_gives(wrong, "product")
    with pytest.raises(AssertionError, match="expected a list 'rank3'"):
        task.test_two_workers_give_what_one_gives(wrong, "rank3")
    with pytest.raises(AssertionError, match=r"got \(2, 1\)"):
        task.test_the_work_is_shared_by_as_many_workers_as_asked_for(wrong, 2)
    swapped = replace(challenge, expected=challenge.expected | {"product": challenge.expected["product"][::-1]})
    with pytest.raises(AssertionError, match="product: expected at most"):
        task.test_each_kernel_agrees_with_numpy(left(tmp_path, challenge), swapped, "product")
