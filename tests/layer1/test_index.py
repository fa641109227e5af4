"""The index finds the rule that trying all rules in turn would find."""

from __future__ import annotations

import re

import pytest

from pytest_deploybench.layer1 import Catalogue, Rule, load_catalogue
from pytest_deploybench.layer1.index import index_of
from pytest_deploybench.model import Category, Role

INDEX = index_of(load_catalogue())


def in_turn(line: str) -> Rule | None:
    """The first rule of the catalogue that matches, unless it is benign; general words do not count."""
    rules = (rule for rule in INDEX.catalogue.rules if rule.role is not Role.WORDS)
    found = next((rule for rule in rules if rule.matches(line)), None)
    return None if found and found.role is Role.BENIGN else found


@pytest.mark.parametrize("rule", INDEX.catalogue.rules, ids=lambda rule: rule.id)
def test_no_needle_hides_a_rule(rule: Rule) -> None:
    for line in (*rule.hits, *rule.near_misses):
        assert INDEX.speaker(line) is in_turn(line), line


def test_a_benign_rule_silences_what_it_is_at_least_as_sure_about() -> None:
    def rule(name: str, pattern: str, confidence: float, role: Role = Role.CAUSE) -> Rule:
        return Rule(name, "make", (re.compile(pattern),), Category.BUILD, role, confidence=confidence)

    index = index_of(
        Catalogue(
            (
                rule("surest", "crash", 0.9),
                rule("benign", "expected", 0.8, Role.BENIGN),
                rule("equal", "abort", 0.8),
                rule("unsure", "error", 0.5),
            )
        )
    )
    spoken = {line: index.speaker(line) for line in ("expected crash", "expected abort", "expected error", "error")}
    assert {line: found and found.id for line, found in spoken.items()} == {
        "expected crash": "surest",
        "expected abort": None,
        "expected error": None,
        "error": "unsure",
    }
    assert index.needles.count(b"expected") == 0  # looked at only where another rule speaks


def test_a_rule_is_known_by_its_id() -> None:
    assert INDEX.by_id("no-such-rule") is None
    first = INDEX.catalogue.rules[0]
    assert INDEX.by_id(first.id) is first


def test_the_index_of_a_catalogue_is_made_once() -> None:
    assert index_of(load_catalogue()) is INDEX
