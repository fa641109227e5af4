"""Rcpp, built from the given source, compiles fresh C++ into R: right in value, in types, in errors, and faster than R.

The program and the C++ functions are the experimenter's, drawn anew. The host computes the same in numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.rcpp_jss11 import rcpp_oracle as oracle

VERSION = "1.0.10"
SYMBOLS = {"R_init_Rcpp", "sourceCppContext", "compileAttributes"}
TOLERANCE = 1e-11
"""Sums of at most 200 products below 1, and polynomials below 200: rounding stays under 1e-12."""
SPEEDUP = 3.0
"""Measured natively, where R compiles its loops to byte code: 116 times. Emulation may narrow that, but not to this."""


@dataclass(frozen=True)
class RcppChallenge(Challenge):
    """What was drawn; it knows its own results."""

    drawn: oracle.Drawn


def draw(seed: int) -> RcppChallenge:
    drawn = oracle.draw(seed)
    return RcppChallenge(
        command="Rscript rcpp_experiment.R",
        inputs={
            "rcpp_experiment.R": oracle.program(),
            "kernels.cpp": drawn.kernels(),
            "challenge.txt": drawn.as_input(),
        },
        outputs=("library.json", "result.json"),
        drawn=drawn,
    )


def test_the_library_was_built_from_the_given_source(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """The Rcpp.so that R mapped is of no package, newer than the hand-over, and that of Rcpp 1.0.10."""
    library = experiment.json("library.json")
    assert len(library["mapped"]) == 1, f"expected R to map one Rcpp.so, it maps {library['mapped']}"
    (path,) = library["mapped"]
    owner = evidence.package_owner(server, path)
    assert owner is None, f"Rcpp should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    missing = SYMBOLS - evidence.symbols(server, path)
    assert not missing, f"expected {path} to be Rcpp's library, it lacks the functions {sorted(missing)}"
    assert library["version"] == [VERSION], f"expected Rcpp {VERSION}, R loaded {library['version']}"


def test_fresh_cpp_is_compiled_against_the_headers_of_this_version(experiment: Experiment) -> None:
    """sourceCpp compiled functions that were not there before, and their headers say 1.0.10."""
    headers = _result(experiment)["headers"]
    assert headers == [VERSION], f"expected headers of Rcpp {VERSION}, the compiled code says {headers}"


@pytest.mark.parametrize("language", ["r", "cpp"])
def test_convolution_agrees_with_numpy(experiment: Experiment, challenge: RcppChallenge, language: str) -> None:
    """The paper's running example, as loops in R and as compiled C++."""
    _assert_close(experiment, f"convolved_{language}", challenge.drawn.convolved())


def test_vectorised_expressions_agree_with_numpy(experiment: Experiment, challenge: RcppChallenge) -> None:
    """A random polynomial written over whole vectors in C++."""
    _assert_close(experiment, "polynomial", challenge.drawn.polynomial())


def test_lists_pass_both_ways_with_their_names_and_types(experiment: Experiment, challenge: RcppChallenge) -> None:
    """A list of numbers and text goes in, another with both reversed comes out."""
    expected = {"reversed": ["txet"], "rev_numbers": challenge.drawn.points[::-1].tolist()}
    got = _result(experiment)["turned"]
    assert got == expected, f"expected the reversed parts under their names, got {str(got)[:300]}; see result.json"


def test_exceptions_of_cpp_become_errors_of_r(experiment: Experiment, challenge: RcppChallenge) -> None:
    """A value beyond the limit ends in an R error with the exception's text; one within comes back."""
    drawn, result = challenge.drawn, _result(experiment)
    assert result["allowed"] == [drawn.within], f"expected {drawn.within} to come back, got {result['allowed']}"
    expected = {"error": [drawn.complaint]}
    assert result["refused"] == expected, f"expected {expected}, got {result['refused']}; see result.json"


def test_compiled_convolution_is_faster_than_loops_in_r(experiment: Experiment) -> None:
    """The paper's claim, by CPU time in the same process."""
    result = _result(experiment)
    (in_r,), (in_cpp,) = result["cpu_seconds_r"], result["cpu_seconds_cpp"]
    assert in_r >= SPEEDUP * in_cpp, f"expected C++ to be {SPEEDUP:g} times faster than R, got {in_cpp} s and {in_r} s"


def _result(experiment: Experiment) -> dict[str, Any]:
    result = experiment.json("result.json")
    assert isinstance(result, dict), "result.json: expected an object; see experiment.log"
    return result


def _assert_close(experiment: Experiment, name: str, expected: oracle.Floats) -> None:
    got = np.array(_result(experiment)[name], dtype=np.float64)
    assert got.shape == expected.shape, f"{name}: expected {len(expected)} numbers, got {len(got)}; see result.json"
    error = float(np.abs(got - expected).max())
    assert error <= TOLERANCE, f"{name}: expected at most {TOLERANCE} from numpy, got {error:.3g}; see result.json"
