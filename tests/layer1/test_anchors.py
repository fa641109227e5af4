"""An anchor is in every line that its pattern matches."""

from __future__ import annotations

import pytest

from pytest_deploybench.layer1 import Rule, load_catalogue
from pytest_deploybench.layer1.anchors import anchors


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Killed", {"killed"}),
        ("^Killed$", {"killed"}),
        (r"ab\d+cdef", {"cdef"}),
        (r"\bout of memory\b: x?", {"out of memory: "}),
        ("(?:first|second) x", {"first", "second"}),
        ("(?:first|a) longer tail", {" longer tail"}),
        ("(?:abc)?", {""}),
        ("(?:abc)+d", {"abc"}),
        ("(?:abc){0,3}xy", {"xy"}),
        ("(?=abc)xy", {"xy"}),
        ("(?!abcdef)xy", {"xy"}),
        ("(?i)Timed Out", {"timed out"}),
        ("[ab]", {""}),
        ("(?>abc)d", {"abc"}),
        ("abc|", {""}),
        ("", {""}),
    ],
)
def test_what_every_match_must_hold(pattern: str, expected: set[str]) -> None:
    assert anchors(pattern) == expected


@pytest.mark.parametrize("rule", load_catalogue().rules, ids=lambda rule: rule.id)
def test_every_pattern_of_the_catalogue_has_telling_anchors_that_hold(rule: Rule) -> None:
    for pattern in rule.patterns:
        found = anchors(pattern.pattern)
        assert min(map(len, found)) >= 3, pattern.pattern
        for line in rule.hits:
            if pattern.search(line):
                assert any(anchor in line.lower() for anchor in found)
