"""Draws a recurrent net with its data, and trains it in numpy by hand-written rules. No I/O but for `driver`.

No automatic differentiation has a part in the truth: the gradient is back-propagation through time written out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _sigmoid(a: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-a)))


ACTIVATIONS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "tanh": (np.tanh, lambda a: 1 - np.tanh(a) ** 2),
    "sigmoid": (_sigmoid, lambda a: _sigmoid(a) * (1 - _sigmoid(a))),
}
"""A unit's function with its slope."""


@dataclass(frozen=True)
class Net:
    """h[t] = activation(sequence[t] inward + h[t-1] around), from `start`; the loss sums up |h[t] - target[t]|^2."""

    activation: str
    sequence: Floats
    start: Floats
    target: Floats
    inward: Floats
    around: Floats
    rate: float
    steps: int

    def as_input(self) -> bytes:
        """What the machine is given."""
        parts = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}
        return json.dumps(parts).encode()


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "theano_experiment.py").read_bytes()


def draw_net(seed: int) -> Net:
    """A net of a few units; its targets are what the same net with other weights would do, so that it can learn."""
    rng = np.random.default_rng(seed)
    units, inputs, length = (int(rng.integers(low, high)) for low, high in ((4, 9), (2, 6), (6, 12)))
    drawn: dict[str, Any] = {
        "activation": str(rng.choice(sorted(ACTIVATIONS))),
        "sequence": rng.normal(size=(length, inputs)),
        "start": rng.uniform(-0.8, 0.8, units),
        "rate": float(rng.uniform(0.004, 0.008)),
        "steps": int(rng.integers(25, 40)),
    }
    teacher, pupil = (
        {
            "inward": rng.normal(size=(inputs, units)) / np.sqrt(inputs),
            "around": rng.normal(size=(units, units)) / np.sqrt(units),
        }
        for _ in range(2)
    )
    target = run(Net(**drawn, **teacher, target=np.empty(0)), **teacher)[1]
    return Net(**drawn, **pupil, target=target)


def run(net: Net, inward: Floats, around: Floats) -> tuple[Floats, Floats]:
    """What goes into the units at each element of the sequence, and what comes out."""
    function, _ = ACTIVATIONS[net.activation]
    state, into, out = net.start, [], []
    for x in net.sequence:
        into.append(x @ inward + state @ around)
        state = function(into[-1])
        out.append(state)
    return np.array(into), np.array(out)


def loss_and_slopes(net: Net, inward: Floats, around: Floats) -> tuple[float, Floats, Floats]:
    """Back-propagation through time."""
    _, slope = ACTIVATIONS[net.activation]
    into, out = run(net, inward, around)
    error = out - net.target
    before = np.vstack([net.start, out[:-1]])
    by_inward, by_around, back = np.zeros_like(inward), np.zeros_like(around), np.zeros_like(net.start)
    for t in reversed(range(len(net.sequence))):
        inner = (back + 2 * error[t]) * slope(into[t])
        by_inward += np.outer(net.sequence[t], inner)
        by_around += np.outer(before[t], inner)
        back = around @ inner
    return float((error**2).sum()), by_inward, by_around


def train(net: Net) -> tuple[list[float], Floats, Floats]:
    """The loss before each step of gradient descent, and the weights after the last."""
    inward, around, losses = net.inward, net.around, []
    for _ in range(net.steps):
        loss, by_inward, by_around = loss_and_slopes(net, inward, around)
        losses.append(loss)
        inward, around = inward - net.rate * by_inward, around - net.rate * by_around
    return losses, inward, around
