"""Finds the few lines of a log that a rule could speak for, so that all others cost next to nothing.

A line is a candidate when it holds one of the needles: texts that `anchors.py` took from the rules' patterns. All
needles are looked for at once, by Hyperscan where it is installed and by one regular expression of the standard library
elsewhere. Which one is at work changes the speed and nothing else.

Promises a reviewer can check: pure; both sieves give the same candidates for the same block; letters of ASCII are
compared without regard to case, all other bytes as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

Candidate = tuple[int, int, Sequence[int]]
"""Where a line begins and ends in its block (the line end excluded), and which needles it holds."""


class Sieve(Protocol):
    """Looks through a block of whole lines."""

    def candidates(self, block: bytes) -> Iterator[Candidate]:
        """The lines that hold a needle, in their order."""
        ...


class PlainSieve:
    """The standard library alone."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._needles = list(enumerate(needles))
        self._any = re.compile(_alternatives(needles)) if needles else None

    def candidates(self, block: bytes) -> Iterator[Candidate]:
        if self._any is None:
            return
        lowered, position = block.lower(), 0
        while match := self._any.search(lowered, position):
            start = lowered.rfind(b"\n", position, match.start()) + 1 or position
            end = _line_end(lowered, match.end())
            line = lowered[start:end]
            yield start, end, [index for index, needle in self._needles if needle in line]
            position = end


class HyperscanSieve:
    """Hyperscan's literal matcher: a gigabyte in a second or two."""

    def __init__(self, needles: Sequence[bytes], hyperscan: Any) -> None:
        count = len(needles)
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=list(needles),
            ids=list(range(count)),
            flags=[hyperscan.HS_FLAG_CASELESS] * count,
            elements=count,
            literal=True,
        )

    def candidates(self, block: bytes) -> Iterator[Candidate]:
        hits: list[tuple[int, int]] = []

        def note(needle: int, _start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((end, needle))

        self._database.scan(block, match_event_handler=note)
        hits.sort()
        start = end = 0
        found: dict[int, None] = {}
        for position, needle in hits:
            if found and position > end:
                yield start, end, sorted(found)
                found = {}
            if not found:
                start, end = block.rfind(b"\n", end, position) + 1 or end, _line_end(block, position)
            found[needle] = None
        if found:
            yield start, end, sorted(found)


def best_sieve(needles: Sequence[bytes]) -> Sieve:
    """The quickest sieve that this interpreter offers."""
    try:
        import hyperscan
    except ImportError:  # no wheel for this platform
        return PlainSieve(needles)
    return HyperscanSieve(needles, hyperscan) if needles else PlainSieve(needles)


def _line_end(block: bytes, position: int) -> int:
    end = block.find(b"\n", position)
    return len(block) if end < 0 else end


def _alternatives(needles: Iterable[bytes]) -> bytes:
    """One regular expression for all needles, in which common beginnings are written once.

    A plain `a|b|c` would try hundreds of needles at every character.
    """
    tree: dict[int, Any] = {}
    for needle in needles:
        node = tree
        for byte in needle:
            node = node.setdefault(byte, {})
        node[-1] = {}
    return _branch(tree)


def _branch(node: dict[int, Any]) -> bytes:
    if -1 in node:  # a needle ends here; longer ones are found in the same line anyway
        return b""
    branches = [re.escape(bytes([byte])) + _branch(below) for byte, below in sorted(node.items())]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"
