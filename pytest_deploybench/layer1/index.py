"""Knows which rules could speak for a line, by the needles that the line holds.

Promises a reviewer can check: pure; which rule speaks for a line is the same as if all rules were tried in turn.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

from pytest_deploybench.layer1 import tracebacks
from pytest_deploybench.layer1.anchors import anchors
from pytest_deploybench.layer1.rules import ASKED_ROLES, Catalogue, Rule
from pytest_deploybench.layer1.sieve import Needles, PlainSieve, Sieve, best_sieve
from pytest_deploybench.model import Role

_MARKS = tuple(text.lower() for text in (tracebacks.HEADER, *tracebacks.CHAINED))
"""Lines that the reader itself must see."""


_Ranked = tuple[int, re.Pattern[str]]
"""The place of a rule in its catalogue, and one of its patterns."""

_COMBINATIONS = 10_000
"""Combinations of needles that are remembered; the same few come up again and again."""


@dataclass(frozen=True, eq=False)
class RuleIndex:
    """A catalogue made ready for reading."""

    catalogue: Catalogue

    @cached_property
    def needles(self) -> tuple[bytes, ...]:
        """Texts of which every line that matters holds at least one; letters of ASCII in lower case."""
        return tuple(needle.encode() for needle in self._patterns)

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
            needles = self._needles.within(line.encode().lower())
        return self._unless_benign(self._first(line, needles), line)

    def words(self, line: str) -> Rule | None:
        """What general words in a line mean, None where they mean nothing or a benign rule speaks."""
        return self._unless_benign(next((rule for rule in self._words if rule.matches(line)), None), line)

    def _unless_benign(self, spoken: Rule | None, line: str) -> Rule | None:
        if spoken and any(rule.confidence >= spoken.confidence and rule.matches(line) for rule in self._benign):
            return None
        return spoken

    def _first(self, line: str, needles: Sequence[int]) -> Rule | None:
        rules = self.catalogue.rules
        for rank, pattern in self._called(tuple(needles)):
            if pattern.search(line) and not any(veto.search(line) for veto in rules[rank].unless):
                return rules[rank]
        return None

    def is_mark(self, needles: Sequence[int]) -> bool:
        """Whether a line with these needles belongs to the frame of a traceback."""
        return bool(needles) and needles[0] < len(_MARKS)

    def by_id(self, name: str) -> Rule | None:
        """The rule of this id, if the catalogue has it."""
        return self._by_id.get(name)

    @cached_property
    def _needles(self) -> Needles:
        return Needles(self.needles)

    @cached_property
    def _by_id(self) -> dict[str, Rule]:
        return {rule.id: rule for rule in self.catalogue.rules}

    def _called(self, needles: tuple[int, ...]) -> tuple[_Ranked, ...]:
        """The patterns that these needles call, those of the first rule to speak first."""
        known = self._called_by_needles.get(needles)
        if known is None:
            called = {ranked for needle in needles for ranked in self._patterns_by_needle[needle]}
            known = tuple(sorted(called, key=itemgetter(0)))
            if len(self._called_by_needles) < _COMBINATIONS:
                self._called_by_needles[needles] = known
        return known

    @cached_property
    def _benign(self) -> tuple[Rule, ...]:
        # They have a say only in lines of which another rule speaks, so they need no needles.
        return tuple(rule for rule in self.catalogue.rules if rule.role is Role.BENIGN)

    @cached_property
    def _words(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.catalogue.rules if rule.role is Role.WORDS)

    @cached_property
    def _called_by_needles(self) -> dict[tuple[int, ...], tuple[_Ranked, ...]]:
        return {}

    @cached_property
    def _patterns_by_needle(self) -> tuple[tuple[_Ranked, ...], ...]:
        return tuple(map(tuple, self._patterns.values()))

    @cached_property
    def _patterns(self) -> dict[str, list[_Ranked]]:
        found: defaultdict[str, list[_Ranked]] = defaultdict(list, {mark: [] for mark in _MARKS})
        for rank, rule in enumerate(self.catalogue.rules):
            for pattern in rule.patterns if rule.role not in ASKED_ROLES else ():
                for text in anchors(pattern.pattern):
                    found[text].append((rank, pattern))
        return dict(found)


@cache
def index_of(catalogue: Catalogue) -> RuleIndex:
    """The index of a catalogue, made once."""
    return RuleIndex(catalogue)
