"""Draws arrays for the paper's kernels and computes in numpy what must come of them.

This file performs no I/O but reading the program beside it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_Z_ENCODING = {".": "zi", "-": "zm", "z": "zz", "Z": "ZZ"}


@dataclass(frozen=True)
class Kernels:
    """Input of the experiment: two matrices, a relaxation, and arrays of rank 3 and 4."""

    left: Floats
    right: Floats
    mask: Floats
    """1 where the plane relaxes, 0 where its value is fixed."""
    fixed: Floats
    start: Floats
    steps: int
    rank3: Floats
    rank4: Floats

    def as_input(self) -> bytes:
        """The challenge: a line of sizes, then a line for each array."""
        (n, k), (_, m) = self.left.shape, self.right.shape
        sizes = [n, k, m, *self.mask.shape, self.steps, *self.rank4.shape]
        arrays = (self.left, self.right, self.mask, self.fixed, self.start, self.rank3, self.rank4)
        lines = [" ".join(map(str, sizes)), *(" ".join(map(_decimal, array.ravel())) for array in arrays)]
        return ("\n".join(lines) + "\n").encode()

    def results(self) -> dict[str, Floats]:
        """What the kernels must give, flat."""
        found = {
            "product": self.left @ self.right,
            "relaxed": self._relaxed(),
            "rank3": _moments(self.rank3),
            "rank4": _moments(self.rank4),
        }
        return {name: array.ravel() for name, array in found.items()}

    def _relaxed(self) -> Floats:
        u = self.start
        for _ in range(self.steps):
            padded = np.pad(u, 1)
            mean = (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]) / 4
            u = self.fixed + self.mask * mean
        return u


def draw_kernels(seed: int) -> Kernels:
    """Sizes that no two workers divide evenly and that differ in every direction, so that no transposition hides."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    n, k, m = rng.sample(range(21, 60, 2), 3)
    height, width = rng.sample(range(31, 60, 2), 2)
    d1, d2, d3, d4 = rng.sample(range(3, 9), 4)

    def uniform(*shape: int) -> Floats:
        return numbers.uniform(-1.0, 1.0, shape)

    mask = (numbers.random((height, width)) < 0.9).astype(np.float64)
    return Kernels(
        left=uniform(n, k),
        right=uniform(k, m),
        mask=mask,
        fixed=uniform(height, width) * (1.0 - mask),
        start=uniform(height, width),
        steps=rng.randint(20, 40),
        rank3=uniform(d1, d2, d3),
        rank4=uniform(d1, d2, d3, d4),
    )


def program() -> bytes:
    """The experimenter's own program, in Haskell."""
    return Path(__file__).with_name("repa_experiment.hs").read_bytes()


def unit_id(archive: str) -> str:
    """The unit of a static library: `repa-3.4.1.5-AbC` of `.../libHSrepa-3.4.1.5-AbC.a`."""
    return archive.rpartition("/")[2].removeprefix("libHS").removesuffix(".a")


def z_encoded(unit: str) -> str:
    """How GHC spells a unit in the names of its symbols."""
    return "".join(_Z_ENCODING.get(character, character) for character in unit)


def _moments(array: Floats) -> Floats:
    places = np.arange(1, array.shape[-1] + 1)
    moments: Floats = (array * places).sum(axis=-1)
    return moments


def _decimal(number: np.float64) -> str:
    """The shortest text that both Python and Haskell read as this very number."""
    return repr(float(number))
