"""A text by lines, and which part of it is most worth showing.

Promises a reviewer can check: pure; an excerpt says of every gap how much is missing; what stands around a finding and
at the end is kept longest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

LONGEST_LINE = 600
"""Characters of one line that are shown."""


@dataclass(frozen=True)
class Gap:
    """Lines that are left out."""

    first: int
    last: int


@dataclass(frozen=True)
class Line:
    """One line with its number, from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Log:
    """A text by lines: all of it, or the parts that are kept."""

    lines: tuple[Line, ...]
    total: int
    """Lines of the whole text."""

    @property
    def whole(self) -> bool:
        return len(self.lines) == self.total

    @property
    def size(self) -> int:
        """Characters that are shown of it."""
        return sum(min(len(line.text), LONGEST_LINE) + 1 for line in self.lines)

    def excerpt(self, characters: int, marks: Collection[int] = ()) -> Log:
        """At most so many characters of it: the lines nearest to a marked line, to the end and to the beginning."""
        kept, left = set[int](), characters
        for line in sorted(self.lines, key=lambda line: self._distance(line.number, marks)):
            left -= min(len(line.text), LONGEST_LINE) + 1
            if left < 0 and kept:
                break
            kept.add(line.number)
        return Log(tuple(line for line in self.lines if line.number in kept), self.total)

    def pieces(self, marks: Collection[int] = ()) -> Iterator[Line | Gap]:
        """Its lines, and a gap wherever some are missing; lines between two marked ones or gaps are one piece."""
        before, block = 0, list[Line]()
        for line in (*self.lines, None):
            number = self.total + 1 if line is None else line.number
            missing = number > before + 1
            if block and (missing or line is None or number in marks or block[-1].number in marks):
                yield Line(block[0].number, "\n".join(cut(each.text, LONGEST_LINE) for each in block))
                block = []
            if missing:
                yield Gap(before + 1, number - 1)
            if line is not None:
                block.append(line)
            before = number

    def _distance(self, number: int, marks: Collection[int]) -> int:
        return min(number, self.total - number, *(abs(number - mark) for mark in marks))


def cut(text: str, characters: int) -> str:
    """The text, or its beginning and its end with the number of characters between."""
    missing = len(text) - characters
    if missing <= 0:
        return text
    head = characters * 2 // 3
    return f"{text[:head]} … {missing:,} characters left out … {text[len(text) - (characters - head) :]}"
