"""Knows which rules could speak for a line, by the needles that the line holds.

Promises a reviewer can check: pure; which rule speaks for a line is the same as if all rules were tried in turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from pytest_deploybench.layer1 import tracebacks
from pytest_deploybench.layer1.anchors import anchors
from pytest_deploybench.layer1.rules import Catalogue, Rule
from pytest_deploybench.layer1.sieve import PlainSieve, Sieve, best_sieve

_MARKS = tuple(text.lower() for text in (tracebacks.HEADER, *tracebacks.CHAINED))
"""Lines that the reader itself must see."""


@dataclass(frozen=True, eq=False)
class RuleIndex:
    """A catalogue made ready for reading."""

    catalogue: Catalogue

    @cached_property
    def needles(self) -> tuple[bytes, ...]:
        """Texts of which every line that matters holds at least one; letters of ASCII in lower case."""
        return tuple(needle.encode() for needle in self._ranks)

    @cached_property
    def plain_sieve(self) -> Sieve:
        return PlainSieve(self.needles)

    @cached_property
    def best_sieve(self) -> Sieve:
        return best_sieve(self.needles)

    def speaker(self, line: str, needles: Iterable[int] | None = None) -> Rule | None:
        """The rule that speaks for a line; `needles` are those that it holds, where the caller knows them."""
        if needles is None:
            lowered = line.encode().lower()
            needles = [number for number, needle in enumerate(self.needles) if needle in lowered]
        ranks = {rank for needle in needles for rank in self._ranks_by_needle[needle]}
        rules = self.catalogue.rules
        return next((rules[rank] for rank in sorted(ranks) if rules[rank].matches(line)), None)

    def by_id(self, name: str) -> Rule | None:
        """The rule of this id, if the catalogue has it."""
        return next((rule for rule in self.catalogue.rules if rule.id == name), None)

    @cached_property
    def _ranks_by_needle(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(tuple, self._ranks.values()))

    @cached_property
    def _ranks(self) -> dict[str, list[int]]:
        ranks: defaultdict[str, list[int]] = defaultdict(list, {mark: [] for mark in _MARKS})
        for rank, rule in enumerate(self.catalogue.rules):
            for text in set().union(*(anchors(pattern.pattern) for pattern in rule.patterns)):
                ranks[text].append(rank)
        return dict(ranks)


@cache
def index_of(catalogue: Catalogue) -> RuleIndex:
    """The index of a catalogue, made once."""
    return RuleIndex(catalogue)
