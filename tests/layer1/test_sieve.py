"""Both sieves let the same lines through, and every line that holds a needle."""

from __future__ import annotations

import random
import sys

import pytest

from pytest_deploybench.layer1 import load_catalogue
from pytest_deploybench.layer1.index import index_of
from pytest_deploybench.layer1.sieve import HyperscanSieve, PlainSieve, best_sieve

NEEDLES = (b"error", b"error: ", b"fatal error: ", b"killed", b"no such file", "»x«".encode())


def by_hand(block: bytes) -> list[tuple[int, int, list[int]]]:
    """What a sieve must give, line by line."""
    found, start = [], 0
    for line in block.split(b"\n"):
        held = [number for number, needle in enumerate(NEEDLES) if needle in line.lower()]
        if held:
            found.append((start, start + len(line), held))
        start += len(line) + 1
    return found


def sieves() -> list[PlainSieve | HyperscanSieve]:
    hyperscan = pytest.importorskip("hyperscan")
    return [PlainSieve(NEEDLES), HyperscanSieve(NEEDLES, hyperscan)]


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\n\n",
        b"error",
        b"fine\nERROR: x\nfine\nfatal error: y",
        b"a fatal error: b error: c\n",
        b"error\nerror\n\nerror",
        "sagt »x« und Error\nnichts\n".encode(),
        b"\xff\xfe error \x80\nkilled\r\n",
        b"x" * 5000 + b"killed" + b"y" * 5000 + b"error\nno such file",
    ],
)
def test_a_line_comes_through_when_it_holds_a_needle(block: bytes) -> None:
    for sieve in sieves():
        assert [(start, end, list(held)) for start, end, held in sieve.candidates(block)] == by_hand(block)


def test_both_agree_on_random_logs() -> None:
    dice = random.Random(5)
    words = [*NEEDLES, b"Error", b"\n", b"\n", b"err", b"fatal ", b" ", b"KILLED", b"or: "]
    for _ in range(300):
        block = b"".join(dice.choices(words, k=40))
        plain, quick = (list(sieve.candidates(block)) for sieve in sieves())
        assert plain == quick


def test_without_needles_nothing_comes_through() -> None:
    assert list(best_sieve(()).candidates(b"error\n")) == []


def test_without_hyperscan_the_plain_sieve_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert isinstance(best_sieve(NEEDLES), PlainSieve)


def test_the_catalogue_fits_both() -> None:
    index, hyperscan = index_of(load_catalogue()), pytest.importorskip("hyperscan")
    block = "\n".join(hit for rule in index.catalogue.rules for hit in (*rule.hits, *rule.near_misses)).encode()
    quick = HyperscanSieve(index.needles, hyperscan)
    assert list(PlainSieve(index.needles).candidates(block)) == list(quick.candidates(block))
