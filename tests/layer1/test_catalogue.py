"""Lints the rules: each has samples of both kinds that behave, and no pattern can be made to run for hours."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

import pytest
import yaml

from pytest_deploybench.layer1 import FAILING_CONFIDENCE, Rule, load_catalogue
from pytest_deploybench.layer1.anchors import anchors
from pytest_deploybench.layer1.cleaning import LINE_LIMIT, own_words
from pytest_deploybench.layer1.index import index_of
from pytest_deploybench.layer1.rules import ASKED_ROLES, FINDING_ROLES
from pytest_deploybench.model import Category, Role
from tests.regexes import HOSTILE_LINES, beyond_re2, loose_repetitions, nested_quantifiers

RULES = load_catalogue().rules
INDEX = index_of(load_catalogue())
HITS = Counter(line for rule in RULES for line in rule.hits)
PATTERNS = [(rule, pattern) for rule in RULES for pattern in (*rule.patterns, *rule.unless)]
FILES = sorted((files("pytest_deploybench.layer1") / "catalogue").iterdir(), key=lambda file: file.name)
REMEDIES = re.compile(r"(?:add|build|change|check|fix|install|rebuild|remove|run|set|try|update|upgrade|use)-")
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
every_pattern = pytest.mark.parametrize(("rule", "pattern"), PATTERNS, ids=lambda value: getattr(value, "id", None))


def speaker(line: str) -> Rule | None:
    """The rule that speaks for a line as the reader hands it over; None also where a benign one silences it."""
    return INDEX.speaker(own_words(line))


def asked(rule: Rule, line: str) -> Rule | None:
    """The rule of a line among those of the same sort: general words are looked for only where they are asked for."""
    return INDEX.words(own_words(line)) if rule.role is Role.WORDS else speaker(line)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_an_ecosystem_and_begins_with_what_it_is(file: object) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.yaml", file.name)  # type: ignore[attr-defined]  # a Traversable
    text = file.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert re.match(r"# [A-Za-z\d].*\.\n", text)
    assert yaml.safe_load(text)


def test_every_category_has_causes_in_several_ecosystems() -> None:
    where = {(rule.category, rule.ecosystem) for rule in RULES if rule.role is Role.CAUSE}
    count = Counter(category for category, _ in where)
    assert {category for category, ecosystems in count.items() if ecosystems > 1} >= {*Category} - {Category.CONTAINER}


@every_rule
def test_the_id_names_the_finding_and_not_the_remedy(rule: Rule) -> None:
    assert not REMEDIES.match(rule.id)


@every_rule
def test_a_hit_gives_exactly_this_rule(rule: Rule) -> None:
    for line in rule.hits:
        assert rule.matches(own_words(line)), line
        assert asked(rule, line) is (None if rule.role is Role.BENIGN else rule), line


@every_rule
def test_a_near_miss_is_harmless_or_what_another_rule_looks_for(rule: Rule) -> None:
    for line in rule.near_misses:
        assert not rule.matches(own_words(line)), line
        found = speaker(line)
        looks_failed = found and found.role in FINDING_ROLES and found.confidence >= FAILING_CONFIDENCE
        assert not looks_failed or HITS[line] or rule.role not in FINDING_ROLES, (line, found and found.id)


@every_rule
def test_every_pattern_is_shown_to_be_of_use(rule: Rule) -> None:
    """A pattern that no sample hits has never been tried."""
    hits = [own_words(line) for line in rule.hits]
    assert [pattern.pattern for pattern in rule.patterns if not any(map(pattern.search, hits))] == []


@every_rule
def test_every_veto_is_shown_to_be_of_use(rule: Rule) -> None:
    wanted = [own_words(line) for line in rule.near_misses]
    wanted = [line for line in wanted if any(pattern.search(line) for pattern in rule.patterns)]
    assert [veto.pattern for veto in rule.unless if not any(map(veto.search, wanted))] == []


@every_rule
def test_explanation_and_remedy_are_sentences(rule: Rule) -> None:
    for text in (rule.explanation, rule.remedy) if rule.role in FINDING_ROLES else (rule.explanation,):
        assert text[0].isupper()
        assert text.endswith(".")
        assert "\n" not in text


@every_pattern
def test_no_pattern_can_explode_and_every_engine_knows_its_syntax(rule: Rule, pattern: re.Pattern[str]) -> None:
    assert nested_quantifiers(pattern.pattern) == []
    assert beyond_re2(pattern.pattern) == []
    # A line has at most LINE_LIMIT characters, so a quadratic pattern stays under some million steps.
    assert loose_repetitions(pattern.pattern) <= 2, pattern.pattern


@every_rule
def test_a_line_need_not_be_matched_to_be_ruled_out(rule: Rule) -> None:
    if rule.role not in ASKED_ROLES:  # those have a say only in lines of which another rule speaks
        assert all(min(map(len, anchors(pattern.pattern))) >= 3 for pattern in rule.patterns)


@pytest.mark.timeout(120)  # a guard: what does not backtrack needs a few seconds
@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: repr(line[:12]))
def test_hostile_lines_come_through(line: str) -> None:
    cut = line[: LINE_LIMIT + 5]
    for _, pattern in PATTERNS:
        pattern.search(cut)
        pattern.search(pattern.pattern[:20] + cut)


def test_no_two_rules_share_a_hit() -> None:
    assert [line for line, times in HITS.items() if times > 1] == []
