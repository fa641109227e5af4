"""Knows which rules could speak for a line, by the needles that the line holds.

Promises a reviewer can check: pure; which rule speaks for a line is the same as if all rules were tried in turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from pytest_deploybench.layer1 import tracebacks
from pytest_deploybench.layer1.anchors import anchors
from pytest_deploybench.layer1.rules import Catalogue, Rule
from pytest_deploybench.layer1.sieve import PlainSieve, Sieve, best_sieve
from pytest_deploybench.model import Role

_MARKS = tuple(text.lower() for text in (tracebacks.HEADER, *tracebacks.CHAINED))
"""Lines that the reader itself must see."""


_COMBINATIONS = 10_000
"""Combinations of needles that are remembered; the same few come up again and again."""


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

    def speaker(self, line: str, needles: Sequence[int] | None = None) -> Rule | None:
        """The rule that speaks for a line, None where it is a benign one.

        `needles` are those that the line holds, in their order, where the caller knows them.
        """
        if needles is None:
            lowered = line.encode().lower()
            needles = [number for number, needle in enumerate(self.needles) if needle in lowered]
        spoken = next((rule for rule in self._rules(tuple(needles)) if rule.matches(line)), None)
        if spoken and any(rule.confidence >= spoken.confidence and rule.matches(line) for rule in self._benign):
            return None
        return spoken

    def is_mark(self, needles: Sequence[int]) -> bool:
        """Whether a line with these needles belongs to the frame of a traceback."""
        return bool(needles) and needles[0] < len(_MARKS)

    def by_id(self, name: str) -> Rule | None:
        """The rule of this id, if the catalogue has it."""
        return next((rule for rule in self.catalogue.rules if rule.id == name), None)

    def _rules(self, needles: tuple[int, ...]) -> tuple[Rule, ...]:
        """The rules that these needles call, the first to speak first."""
        known = self._rules_by_needles.get(needles)
        if known is None:
            ranks = {rank for needle in needles for rank in self._ranks_by_needle[needle]}
            known = tuple(self.catalogue.rules[rank] for rank in sorted(ranks))
            if len(self._rules_by_needles) < _COMBINATIONS:
                self._rules_by_needles[needles] = known
        return known

    @cached_property
    def _benign(self) -> tuple[Rule, ...]:
        # They have a say only in lines of which another rule speaks, so they need no needles.
        return tuple(rule for rule in self.catalogue.rules if rule.role is Role.BENIGN)

    @cached_property
    def _rules_by_needles(self) -> dict[tuple[int, ...], tuple[Rule, ...]]:
        return {}

    @cached_property
    def _ranks_by_needle(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(tuple, self._ranks.values()))

    @cached_property
    def _ranks(self) -> dict[str, list[int]]:
        ranks: defaultdict[str, list[int]] = defaultdict(list, {mark: [] for mark in _MARKS})
        for rank, rule in enumerate(self.catalogue.rules):
            if rule.role is Role.BENIGN:
                continue
            for text in set().union(*(anchors(pattern.pattern) for pattern in rule.patterns)):
                ranks[text].append(rank)
        return dict(ranks)


@cache
def index_of(catalogue: Catalogue) -> RuleIndex:
    """The index of a catalogue, made once."""
    return RuleIndex(catalogue)
