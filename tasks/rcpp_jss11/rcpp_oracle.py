"""Draws vectors and C++ functions for them, and computes in numpy what these must return.

This file performs no I/O but reading the program beside it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_KERNELS = """\
#include <Rcpp.h>
using namespace Rcpp;

// [[Rcpp::export]]
std::string version_cpp() {{
    return RCPP_VERSION_STRING;
}}

// [[Rcpp::export]]
NumericVector convolve_cpp(NumericVector a, NumericVector b) {{
    int na = a.size(), nb = b.size();
    NumericVector ab(na + nb - 1);
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++)
            ab[i + j] += a[i] * b[j];
    return ab;
}}

// [[Rcpp::export]]
NumericVector polynomial_cpp(NumericVector x) {{
    return {polynomial};
}}

// [[Rcpp::export]]
List turn_cpp(List given) {{
    NumericVector numbers = given["first"];
    std::string text = as<std::string>(given["second"]);
    std::reverse(text.begin(), text.end());
    return List::create(Named("reversed") = text, Named("rev_numbers") = rev(numbers));
}}

// [[Rcpp::export]]
double refuse_cpp(double x) {{
    if (x > {limit!r}) throw std::range_error("{complaint}");
    return x;
}}
"""


@dataclass(frozen=True)
class Drawn:
    """Two vectors to convolve, a polynomial with points for it, and a limit with a value on each side of it."""

    a: Floats
    b: Floats
    coefficients: tuple[float, ...]
    """From the constant term upwards."""
    points: Floats
    limit: float
    within: float
    beyond: float
    complaint: str

    def as_input(self) -> bytes:
        """The vectors, one a line."""
        lines = (self.a, self.b, self.points, (self.within, self.beyond))
        return "".join(" ".join(repr(float(number)) for number in line) + "\n" for line in lines).encode()

    def kernels(self) -> bytes:
        """The C++ source that is compiled through Rcpp."""
        first, *rest = reversed(self.coefficients)
        horner = f"NumericVector(x.size(), {first!r})"
        for coefficient in rest:
            horner = f"{coefficient!r} + x * ({horner})"
        return _KERNELS.format(polynomial=horner, limit=self.limit, complaint=self.complaint).encode()

    def convolved(self) -> Floats:
        return np.convolve(self.a, self.b)

    def polynomial(self) -> Floats:
        return np.asarray(np.polynomial.polynomial.polyval(self.points, self.coefficients), dtype=np.float64)


def draw(seed: int) -> Drawn:
    """Everything is drawn anew, the functions as well: none of them can have been compiled before."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    limit = rng.uniform(-100.0, 100.0)
    return Drawn(
        a=numbers.uniform(-1.0, 1.0, rng.randint(200, 300)),
        b=numbers.uniform(-1.0, 1.0, rng.randint(100, 199)),
        coefficients=tuple(rng.uniform(-1.0, 1.0) for _ in range(rng.randint(5, 9))),
        points=numbers.uniform(-1.5, 1.5, 40),
        limit=limit,
        within=limit - rng.uniform(0.001, 1.0),
        beyond=limit + rng.uniform(0.001, 1.0),
        complaint=f"refused by order {rng.randrange(10**12)}",
    )


def program() -> bytes:
    """The experimenter's own program, in R."""
    return Path(__file__).with_name("rcpp_experiment.R").read_bytes()
