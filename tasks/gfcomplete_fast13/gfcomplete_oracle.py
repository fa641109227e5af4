"""Draws the GF-Complete challenge and multiplies in GF(2^w) by the definition: carry-less, modulo the polynomial.

No table, no library, no I/O but for `driver`.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

POLYNOMIALS = {
    4: 0x13,
    8: 0x11D,
    16: 0x1100B,
    32: 0x100400007,
    64: 0x1000000000000001B,
}
"""The library's defaults, as its manual documents them; the leading bit stands for x^w."""
WIDTHS = (8, 16, 32)
"""Words whose regions are multiplied."""
REGION_BYTES = 256 * 1024


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "gf_experiment.py").read_bytes()


def multiply(left: int, right: int, width: int) -> int:
    """Product of two elements of GF(2^width)."""
    product = 0
    while right:
        if right & 1:
            product ^= left
        right >>= 1
        left <<= 1
        if left >> width:
            left ^= POLYNOMIALS[width]
    return product


def multiply_region(region: bytes, constant: int, width: int) -> bytes:
    """Each little-endian word of a region times a constant."""
    words: NDArray[np.uint64] = np.frombuffer(region, dtype=f"<u{width // 8}").astype(np.uint64)
    products = np.zeros_like(words)
    for bit in range(width):  # a word is the sum of its bits, and multiplication distributes over it
        factor = np.uint64(multiply(1 << bit, constant, width))
        products ^= ((words >> np.uint64(bit)) & np.uint64(1)) * factor
    return products.astype(f"<u{width // 8}").tobytes()


def draw_pairs(rng: random.Random, width: int) -> list[tuple[int, int]]:
    """Operands of single operations: random ones, and those at the ends of the field; the second is never 0."""
    top = (1 << width) - 1
    ends = [(0, 1), (1, 1), (top, 1), (1, top), (top, top), (top, 1 << (width - 1))]
    return ends + [(rng.randint(0, top), rng.randint(1, top)) for _ in range(100)]
