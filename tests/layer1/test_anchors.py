"""An anchor is in every line that its pattern matches."""

from __future__ import annotations

import pytest

from pytest_deploybench.layer1 import Rule, load_catalogue
from pytest_deploybench.layer1.anchors import anchors
from pytest_deploybench.model import Role


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Killed", {"killed"}),
        ("^Killed$", {"killed"}),
        (r"ab\d+cdef", {"cdef"}),
        (r"\bout of memory\b: x?", {"out of memory: "}),
        ("(?:first|second) x", {"first x", "second x"}),
        (r"(?:first|\d) longer tail", {" longer tail"}),
        (r"(?:first|second)\d", {"first", "second"}),
        ("[Ee]rror[:!] x?y", {"error: y", "error! y", "error: xy", "error! xy"}),
        ("(?:ab[cd]){2}x", {"abc", "abd"}),
        ("(?:abc)?", {""}),
        ("(?:abc)+d", {"abc"}),
        ("(?:abc){0,3}xy", {"xy"}),
        ("(?=abc)xy", {"xy"}),
        ("(?!abcdef)xy", {"xy"}),
        ("(?i)Timed Out", {"timed out"}),
        ("[ab]", {"a", "b"}),
        ("[^ab]", {""}),
        ("(?>abc)d", {"abcd"}),
        ("abc|", {""}),
        ("", {""}),
    ],
)
def test_what_every_match_must_hold(pattern: str, expected: set[str]) -> None:
    assert anchors(pattern) == expected


def test_alternatives_are_not_multiplied_without_end() -> None:
    assert len(anchors("[abcdefgh][abcdefgh][abcdefgh][abcdefgh]")) == 64


@pytest.mark.parametrize("rule", load_catalogue().rules, ids=lambda rule: rule.id)
def test_every_pattern_of_the_catalogue_has_telling_anchors_that_hold(rule: Rule) -> None:
    for pattern in rule.patterns if rule.role is not Role.BENIGN else ():
        found = anchors(pattern.pattern)
        assert min(map(len, found)) >= 3, pattern.pattern
        for line in rule.hits:
            if pattern.search(line):
                assert any(anchor in line.lower() for anchor in found)
