"""Finds the few lines of a log that a rule could speak for, so that all others cost next to nothing.

A line is a candidate when it holds one of the needles: texts that `anchors.py` took from the rules' patterns. All
needles are looked for at once, by Hyperscan where it is installed and by their first bytes elsewhere. Which of the two
is at work changes the speed and nothing else.

Promises a reviewer can check: pure; both sieves give the same candidates for the same block; letters of ASCII are
compared without regard to case, all other bytes as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

_START = 3
"""Bytes at the beginning of a needle, by which most places of a line are ruled out."""
_END = -1
"""Key of a node of the tree at which a needle ends."""
_NOTHING: dict[int, Any] = {}

Candidate = tuple[int, int, Sequence[int]]
"""Where a line begins and ends in its block (the line end excluded), and which needles it holds."""


class Sieve(Protocol):
    """Looks through a block of whole lines."""

    def candidates(self, block: bytes) -> Iterator[Candidate]:
        """The lines that hold a needle, in their order."""
        ...


class Needles:
    """All needles of a line at once: common beginnings are walked once, and most places of a line begin none."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._tree: dict[int, Any] = {}
        for number, needle in enumerate(needles):
            node = self._tree
            for byte in needle:
                node = node.setdefault(byte, {})
            node[_END] = number
        self._starts = frozenset(needle[:_START] for needle in needles)

    def within(self, lowered: bytes) -> list[int]:
        """The numbers of the needles that a line in lower case holds, in order."""
        found: set[int] = set()
        for place in range(len(lowered)):
            if lowered[place : place + _START] not in self._starts:
                continue
            node = self._tree
            for byte in lowered[place:]:
                node = node.get(byte, _NOTHING)
                if _END in node:
                    found.add(node[_END])
                if not node:
                    break
        return sorted(found)


class PlainSieve:
    """The standard library alone: some megabytes a second."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._needles = Needles(needles)

    def candidates(self, block: bytes) -> Iterator[Candidate]:
        start = 0
        for line in block.lower().split(b"\n"):
            if held := self._needles.within(line):
                yield start, start + len(line), held
            start += len(line) + 1


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
