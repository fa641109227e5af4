"""Draws the LIBSVM challenge and says, in float64 numpy and without any SVM library, what must come back.

Nothing here trusts the solver: a dual point is judged by feasibility and duality gap, a prediction by the votes that
follow from the exported coefficients, an accuracy by labels that never leave the host. No I/O but for `driver`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLASSES = 10
SIDE = 8
HANDS = 4
"""Ways to write each digit: with several a class is no single blob, and a linear rule does badly."""
TRAIN, TEST, BINARY = 800, 500, 300


@dataclass(frozen=True)
class Kernel:
    """Parameters of one C-SVC problem with kernel exp(-gamma |u-v|^2)."""

    cost: float
    gamma: float
    eps: float

    @property
    def options(self) -> str:
        """The same in LIBSVM's own words; `-q` silences the solver."""
        return f"-s 0 -t 2 -c {self.cost!r} -g {self.gamma!r} -e {self.eps!r} -q"


@dataclass(frozen=True)
class Problem:
    """One drawn challenge with its truth."""

    train: Floats
    train_digits: Ints
    test: Floats
    test_digits: Ints
    """Stays on the host."""
    digits: Kernel
    halves: Floats
    """The labelling of the first `BINARY` training images by +1 and -1."""
    binary: Kernel

    def as_input(self) -> bytes:
        """What the machine is given."""
        few = slice(0, len(self.halves))
        return json.dumps(
            {
                "digits": {
                    "x": self.train.tolist(),
                    "y": self.train_digits.tolist(),
                    "test": self.test.tolist(),
                    "options": self.digits.options,
                },
                "binary": {
                    "x": self.train[few].tolist(),
                    "y": self.halves.astype(int).tolist(),
                    "options": self.binary.options,
                },
            }
        ).encode()


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "svm_experiment.py").read_bytes()


def draw_problem(seed: int) -> Problem:
    """Hand-written digits of an alphabet that nobody has seen, and a random question about half of them."""
    rng = np.random.default_rng(seed)
    alphabet = rng.normal(size=(CLASSES, HANDS, SIDE, SIDE))
    for axis in (2, 3):  # a stroke is wider than a pixel
        alphabet = (np.roll(alphabet, 1, axis) + 2 * alphabet + np.roll(alphabet, -1, axis)) / 4
    alphabet = alphabet.reshape(CLASSES, HANDS, -1)
    alphabet -= alphabet.mean(axis=-1, keepdims=True)
    alphabet /= alphabet.std(axis=-1, keepdims=True)
    digits = rng.integers(CLASSES, size=TRAIN + TEST)
    ink = alphabet[digits, rng.integers(HANDS, size=TRAIN + TEST)] * rng.uniform(0.7, 1.3, (TRAIN + TEST, 1))
    grey = np.clip(np.rint(8 + 3 * ink + 2 * rng.normal(size=ink.shape)), 0, 16) / 16  # sixteenths: exact in text
    upper = np.isin(digits[:BINARY], rng.permutation(CLASSES)[: CLASSES // 2])
    flipped = rng.random(BINARY) < 0.05  # label noise, so that some coefficients must end at the bound C
    return Problem(
        train=grey[:TRAIN],
        train_digits=digits[:TRAIN],
        test=grey[TRAIN:],
        test_digits=digits[TRAIN:],
        digits=Kernel(cost=float(rng.choice([2.0, 4.0, 8.0])), gamma=float(rng.uniform(0.03, 0.06)), eps=1e-3),
        halves=np.where(upper ^ flipped, 1.0, -1.0),
        binary=Kernel(cost=float(rng.choice([2.0, 4.0, 8.0])), gamma=float(rng.uniform(0.03, 0.06)), eps=1e-6),
    )


def rbf(left: Floats, right: Floats, gamma: float) -> Floats:
    """Kernel matrix by the definition."""
    squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
    return np.asarray(np.exp(-gamma * np.maximum(squares, 0)))


@dataclass(frozen=True)
class DualPoint:
    """A C-SVC solution over all training points, as the paper writes it: alpha, the labels +-1, and rho."""

    alpha: Floats
    signs: Floats
    rho: float

    def balance(self) -> float:
        """y'alpha, which the dual's equality constraint wants to be 0."""
        return float(self.signs @ self.alpha)

    def relative_gap(self, points: Floats, kernel: Kernel) -> float:
        """(primal - dual) / primal: 0 exactly at the optimum, whatever solver came there, and above 0 elsewhere."""
        coefficients = self.signs * self.alpha
        scores = rbf(points, points, kernel.gamma) @ coefficients
        norm = float(coefficients @ scores)
        hinge = np.maximum(0, 1 - self.signs * (scores - self.rho)).sum()
        primal, dual = norm / 2 + kernel.cost * float(hinge), float(self.alpha.sum()) - norm / 2
        return (primal - dual) / primal


def dual_point(model: dict[str, Any], labels: Floats) -> DualPoint:
    """The dual point that a two-class model stands for.

    LIBSVM stores y*alpha of the support vectors alone, by 1-based index, y counted from the model's first label.
    """
    signs = np.where(labels == model["labels"][0], 1.0, -1.0)
    alpha = np.zeros(len(labels))
    chosen = np.asarray(model["sv_indices"], dtype=int) - 1
    alpha[chosen] = signs[chosen] * np.asarray(model["sv_coef"], dtype=float)[:, 0]
    return DualPoint(alpha, signs, float(model["rho"][0]))


def votes(model: dict[str, Any], train: Floats, train_labels: Ints, test: Floats, gamma: float) -> Ints:
    """What one-against-one voting predicts from the exported coefficients; the earlier label wins a tie."""
    chosen = np.asarray(model["sv_indices"], dtype=int) - 1
    coefficients = np.asarray(model["sv_coef"], dtype=float)
    owner = train_labels[chosen]
    kernel = rbf(test, train[chosen], gamma)
    labels = np.asarray(model["labels"], dtype=np.int64)
    ballots = np.zeros((len(test), len(labels)))
    for (i, j), rho in zip(combinations(range(len(labels)), 2), model["rho"], strict=True):
        weights = np.where(owner == labels[i], coefficients[:, j - 1], 0) + np.where(
            owner == labels[j], coefficients[:, i], 0
        )
        first = kernel @ weights > rho
        ballots[first, i] += 1
        ballots[~first, j] += 1
    winners: Ints = labels[ballots.argmax(1)]
    return winners


def ridge_accuracy(problem: Problem) -> float:
    """Test accuracy of kernel ridge regression on one-hot labels: a baseline by plain linear algebra, same kernel."""
    gamma = problem.digits.gamma
    targets = np.where(problem.train_digits[:, None] == np.arange(CLASSES), 1.0, -1.0)
    system = rbf(problem.train, problem.train, gamma) + 0.1 * np.eye(len(problem.train))
    scores = rbf(problem.test, problem.train, gamma) @ np.linalg.solve(system, targets)
    return float((scores.argmax(1) == problem.test_digits).mean())


def centroid_accuracy(problem: Problem) -> float:
    """Test accuracy of the nearest class mean: what a rule without kernel gets."""
    means = np.stack([problem.train[problem.train_digits == digit].mean(0) for digit in range(CLASSES)])
    nearest = ((problem.test[:, None, :] - means) ** 2).sum(2).argmin(1)
    return float((nearest == problem.test_digits).mean())
