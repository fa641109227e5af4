"""Draws a campaign with compilers of which two have planted bugs, and says whom a vote must suspect.

No I/O but for `material`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HONEST = (
    "gcc -O0",
    "gcc -O1 -fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,null -fno-sanitize-recover=all",
)
"""The second one makes programs that fail when they meet undefined behaviour."""
ODD = ("./first-cc -O1", "./second-cc -O1")
WRONG = "wrong"
"""A program that prints another checksum; all other plants are called as the result that they bring about."""
PLANTS: tuple[tuple[str | None, str | None], ...] = (
    (None, None),
    (WRONG, None),
    (None, "failed"),
    ("timeout", None),
    (None, "compile error"),
    (WRONG, "failed"),
)
"""What goes wrong with the two odd compilers, a line for each program; in the last there is no majority."""


@dataclass(frozen=True)
class Campaign:
    """Seeds, and for each the plants by place among the compilers."""

    seeds: list[int]
    compilers: list[str]
    options: list[str]
    plants: list[dict[int, str]]

    @property
    def honest(self) -> list[int]:
        """Places of the compilers without plants."""
        return [place for place, compiler in enumerate(self.compilers) if compiler in HONEST]

    def planted(self, compiler: str) -> dict[str, str]:
        """What a compiler of `ODD` does wrong, by seed."""
        place = self.compilers.index(compiler)
        pairs = zip(self.seeds, self.plants, strict=True)
        return {str(seed): plants[place] for seed, plants in pairs if place in plants}


def material(name: str) -> bytes:
    """A file of the experiment that the verifier brings along."""
    return (Path(__file__).parent / name).read_bytes()


def draw_campaign(rng: random.Random) -> Campaign:
    """Small programs, so that compiling them costs little."""
    compilers = [*HONEST, *ODD]
    rng.shuffle(compilers)
    places = [compilers.index(compiler) for compiler in ODD]
    plants = [{place: plant for place, plant in zip(places, pair, strict=True) if plant} for pair in PLANTS]
    rng.shuffle(plants)
    return Campaign(
        seeds=rng.sample(range(1, 2**31), len(plants)),
        compilers=compilers,
        options=["--max-funcs", str(rng.randint(3, 5)), "--max-block-size", "3", "--no-jumps"],
        plants=plants,
    )


def suspects(results: Sequence[str]) -> list[int] | None:
    """Places of the results that differ from that of more than half; None where there is no such majority."""
    ((favourite, votes),) = Counter(results).most_common(1)
    if 2 * votes <= len(results):
        return None
    return [place for place, result in enumerate(results) if result != favourite]


def is_checksum(result: object) -> bool:
    """Whether a result is what a program of Csmith prints when it ran to its end."""
    return isinstance(result, str) and re.fullmatch(r"[0-9A-F]{1,8}", result) is not None
