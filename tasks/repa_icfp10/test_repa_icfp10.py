"""Repa, built from the given source, computes the paper's kernels on fresh arrays, alike on one worker and on two.

The program is the experimenter's: compiled on the machine with the deployed library, and asked by its linker which
library that was. The host computes the same kernels in numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.repa_icfp10 import repa_oracle as oracle

VERSION = "3.4.1.5"
WORKERS = (1, 2)
TOLERANCE = 1e-12
"""Over 200 draws another order of the same sums changed no result by more than 1e-14; a wrong element by 1e-3."""


@dataclass(frozen=True)
class RepaChallenge(Challenge):
    """The arrays with what the kernels must make of them."""

    expected: dict[str, oracle.Floats]


def draw(seed: int) -> RepaChallenge:
    kernels = oracle.draw_kernels(seed)
    return RepaChallenge(
        command=(
            "ghc -O2 -threaded -rtsopts -optl-Wl,-Map=link.map repa_experiment.hs -o repa_experiment && "
            "grep -o '/[^ (]*/libHSrepa-[^ (]*[.]a' link.map | sort -u > libraries.txt && "
            f"for n in {' '.join(map(str, WORKERS))}; do ./repa_experiment result-$n.json +RTS -N$n; done"
        ),
        inputs={"repa_experiment.hs": oracle.program(), "challenge.txt": kernels.as_input()},
        outputs=("libraries.txt", *(f"result-{workers}.json" for workers in WORKERS)),
        expected=kernels.results(),
    )


def test_the_library_was_built_from_the_given_source(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """The one static library of Repa that was linked is 3.4.1.5, of no package, and newer than the hand-over."""
    libraries = experiment.text("libraries.txt").split()
    assert len(libraries) == 1, f"expected one static library of repa to be linked, the linker's map names {libraries}"
    (library,) = libraries
    owner = evidence.package_owner(server, library)
    assert owner is None, f"repa should be built here, but {library} is of the package {owner}"
    assert evidence.changed_after_handover(server, library, agent_run), f"{library} is older than the hand-over"
    unit = oracle.unit_id(library)
    assert unit.startswith(f"repa-{VERSION}"), f"expected repa {VERSION}, {library} is of {unit}"


def test_the_program_runs_the_code_of_that_library(server: Host, experiment: Experiment) -> None:
    """The symbols in the compiled program are those of the very unit that the linker names."""
    unit = oracle.z_encoded(oracle.unit_id(experiment.text("libraries.txt").strip()))
    program = f"{experiment.folder_on_machine}/repa_experiment"
    found = {name for name in evidence.symbols(server, program) if name.startswith(f"{unit}_")}
    assert found, f"expected functions of {unit} in {program}, there is none; see experiment.log"


@pytest.mark.parametrize("kernel", ["product", "relaxed", "rank3", "rank4"])
def test_each_kernel_agrees_with_numpy(experiment: Experiment, challenge: RepaChallenge, kernel: str) -> None:
    """Matrix product, Laplace relaxation, and one function over arrays of rank 3 and of rank 4."""
    expected = challenge.expected[kernel]
    got = _numbers(experiment, WORKERS[0], kernel)
    assert got.shape == expected.shape, f"{kernel}: expected {len(expected)} numbers, got {len(got)}"
    error = float(np.abs(got - expected).max())
    assert error <= TOLERANCE, f"{kernel}: expected at most {TOLERANCE} from numpy, got {error:.3g}; see result-1.json"


@pytest.mark.parametrize("workers", WORKERS)
def test_the_work_is_shared_by_as_many_workers_as_asked_for(experiment: Experiment, workers: int) -> None:
    """With `+RTS -N` the runtime has that many capabilities, and Repa's gang that many workers."""
    result = experiment.json(f"result-{workers}.json")
    got = result["capabilities"], result["gang"]
    assert got == (workers, workers), f"expected {workers} capabilities and as many workers in the gang, got {got}"


@pytest.mark.parametrize("kernel", ["product", "relaxed", "rank3", "rank4"])
def test_two_workers_give_what_one_gives(experiment: Experiment, kernel: str) -> None:
    """Each element is computed by one worker in one order, so results are equal to the last bit."""
    one, two = (_numbers(experiment, workers, kernel) for workers in WORKERS)
    assert np.array_equal(one, two), f"{kernel}: result-1.json and result-2.json differ"


def _numbers(experiment: Experiment, workers: int, kernel: str) -> oracle.Floats:
    """A kernel's result; anything but a list of numbers fails the check that asks."""
    numbers = experiment.json(f"result-{workers}.json").get(kernel)
    assert isinstance(numbers, list), f"result-{workers}.json: expected a list {kernel!r}; see experiment.log"
    return np.array(numbers, dtype=np.float64)
