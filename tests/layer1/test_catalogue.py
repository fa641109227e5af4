"""Lints the rules: each has samples of both kinds that behave, and no pattern can be made to run for hours."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

import pytest
import yaml

from pytest_deploybench.layer1 import FAILING_CONFIDENCE, Rule, load_catalogue, parse
from pytest_deploybench.layer1.cleaning import LINE_LIMIT
from pytest_deploybench.model import Category
from tests.regexes import HOSTILE_LINES, loose_repetitions, nested_quantifiers

RULES = load_catalogue().rules
PATTERNS = [(rule, pattern) for rule in RULES for pattern in (*rule.patterns, *rule.unless)]
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)


def test_every_category_has_rules_in_a_file_of_its_name() -> None:
    by_file = {
        file.name: {entry["category"] for entry in yaml.safe_load(file.read_text(encoding="utf-8"))}
        for file in (files("pytest_deploybench.layer1") / "catalogue").iterdir()
    }
    assert by_file == {f"{category}.yaml": {category.value} for category in Category}


@every_rule
def test_a_hit_gives_this_finding_and_no_other(rule: Rule) -> None:
    for line in rule.hits:
        assert [finding.rule for finding in parse([line])] == [rule.id], line


@every_rule
def test_a_near_miss_is_no_failure_of_any_kind(rule: Rule) -> None:
    for line in rule.near_misses:
        assert not rule.matches(line), line
        found = [finding.rule for finding in parse([line]) if finding.confidence >= FAILING_CONFIDENCE]
        assert found == [], line


@every_rule
def test_every_pattern_is_shown_to_be_of_use(rule: Rule) -> None:
    """A pattern that no sample hits has never been tried."""
    idle = [pattern.pattern for pattern in rule.patterns if not any(pattern.search(line) for line in rule.hits)]
    assert not idle


@every_rule
def test_every_veto_is_shown_to_be_of_use(rule: Rule) -> None:
    for veto in rule.unless:
        needed = [line for line in rule.near_misses if veto.search(line) and any(p.search(line) for p in rule.patterns)]
        assert needed, veto.pattern


@every_rule
def test_explanation_and_remedy_are_sentences(rule: Rule) -> None:
    for text in (rule.explanation, rule.remedy):
        assert text[0].isupper()
        assert text.endswith(".")
        assert "\n" not in text


@pytest.mark.parametrize(("rule", "pattern"), PATTERNS, ids=lambda value: getattr(value, "id", None))
def test_no_pattern_can_explode(rule: Rule, pattern: re.Pattern[str]) -> None:
    assert nested_quantifiers(pattern.pattern) == []
    # A line has at most LINE_LIMIT characters, so a quadratic pattern stays under some million steps.
    assert loose_repetitions(pattern.pattern) <= 2, pattern.pattern


@pytest.mark.timeout(60)  # a guard: what does not backtrack needs well under a second
@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: repr(line[:12]))
def test_hostile_lines_come_through(line: str) -> None:
    cut = line[: LINE_LIMIT + 5]
    for _, pattern in PATTERNS:
        pattern.search(cut)
        pattern.search(pattern.pattern[:20] + cut)


def test_no_two_rules_share_a_hit() -> None:
    count = Counter(line for rule in RULES for line in rule.hits)
    assert [line for line, times in count.items() if times > 1] == []
