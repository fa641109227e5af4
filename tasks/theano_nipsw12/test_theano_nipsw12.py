"""Theano 1.0.3, from the given source on today's Python, compiles a fresh recurrent net with its gradient to right C.

The net and its data are drawn anew. It is trained on the host in numpy as well; what was compiled and loaded is read
from the process that ran the experiment, and from the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.theano_nipsw12 import theano_oracle as oracle

VERSION, SCAN_VERSION = "1.0.3", 0.296
"""The second is that of scan_perform.c, as the release has it."""
MENDED = "scan_module/c_code/scan_perform.c"
"""Of the package. Nobody's Python of today compiles it as it was handed over."""
PYTHON = [3, 11]
LEAST_LIBRARIES = 8
"""A run maps 36, of which Theano deletes a few at its end; without a compiler it is 0."""
CLOSE = 1e-8
"""Both sides compute in double precision, in another order of operations. In the least stable of a hundred draws
training makes a relative error of the weights 5,000 times larger, and so 1e-12 of rounding; single precision misses by
1e-7.
"""


@dataclass(frozen=True)
class TheanoChallenge(Challenge):
    """The drawn net."""

    net: oracle.Net


def draw(seed: int) -> TheanoChallenge:
    net = oracle.draw_net(seed)
    return TheanoChallenge(
        command="OMP_NUM_THREADS=1 python3 theano_experiment.py",
        inputs={"theano_experiment.py": oracle.driver(), "challenge.json": net.as_input()},
        outputs=("result.json",),
        net=net,
    )


def assert_close(what: str, got: Any, expected: Any) -> None:
    """Compare numbers.

    Raises:
        AssertionError: they differ in shape or value.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: expected shape {expected.shape}, got {got.shape}; see experiment.log"
    far = float(np.abs(got - expected).max())
    assert np.allclose(got, expected, rtol=CLOSE, atol=CLOSE), (
        f"{what}: differs from the truth by up to {far:.3g}; see experiment.log"
    )


def test_it_is_the_given_theano_on_a_python_of_today(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """Version 1.0.3, its scan loop too, deployed after the hand-over, under Python 3.11 or later."""
    result = experiment.json("result.json")
    assert result["version"] == VERSION, f"expected Theano {VERSION}, got {result['version']}"
    assert result["scan_version"] == SCAN_VERSION, f"expected scan loop {SCAN_VERSION}, got {result['scan_version']}"
    assert result["python"] >= PYTHON, f"expected Python 3.11 or later, got {result['python']}"
    folder = PurePosixPath(result["package"]).parent
    owner = evidence.package_owner(server, result["package"])
    assert owner is None, f"Theano should be deployed from ~/artifact, but {folder} is of the package {owner}"
    mended = f"{folder}/{MENDED}"
    assert evidence.changed_after_handover(server, mended, agent_run), f"{mended} was not touched since the hand-over"


def test_functions_were_compiled_in_this_run(server: Host, experiment: Experiment) -> None:
    """A C++ compiler is in use, and the process mapped libraries that it has just made in an empty folder."""
    result = experiment.json("result.json")
    config, compiled = result["config"], result["compiled"]
    assert config["cxx"], "expected a C++ compiler in theano.config.cxx, it is empty: everything ran in Python"
    assert config["linker"] in ("cvm", "cvm_nogc", "c|py", "c"), f"expected the C linker, got {config['linker']!r}"
    found = list(islice((path for path in compiled if evidence.symbols(server, path)), LEAST_LIBRARIES))
    assert len(found) == LEAST_LIBRARIES, (
        f"expected at least {LEAST_LIBRARIES} libraries compiled in this run, found {found} of {compiled} there"
    )


def test_linker_and_scan_run_in_compiled_c(server: Host, experiment: Experiment) -> None:
    """The lazy linker and scan's loop, which have slow stand-ins in Python, are among the libraries of this run."""
    compiled = experiment.json("result.json")["compiled"]
    for name in ("lazylinker_ext", "scan_perform"):
        found = [path for path in compiled if PurePosixPath(path).parent.name == name]
        assert found, f"expected {name} to be compiled and loaded in this run, got {compiled}; see experiment.log"
        assert f"PyInit_{name}" in evidence.symbols(server, found[0]), f"{found[0]} is no module {name}"


def test_a_recurrent_net_is_trained_through_scan(experiment: Experiment, challenge: TheanoChallenge) -> None:
    """The loss before each step of gradient descent, and the weights at its end, are those of the same net in numpy."""
    got = experiment.json("result.json")["net"]
    losses, inward, around = oracle.train(challenge.net)
    assert_close("the losses", got["losses"], losses)
    assert_close("the trained inward weights", got["inward"], inward)
    assert_close("the trained recurrent weights", got["around"], around)
