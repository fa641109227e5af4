"""Finds text that every match of a regular expression must hold, so that most lines are ruled out without matching.

A log of ten million characters has hundreds of thousands of lines, nearly all of them harmless; looking for a plain
text in them is some fifty times quicker than a regular expression.

Promises a reviewer can check: pure; a line that holds none of a pattern's anchors, in lower case, cannot match it.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from re import _constants, _parser  # type: ignore[attr-defined]  # private, but the only parser of this syntax there is
from typing import Any

_TEXTS_AT_MOST = 64
"""How many alternatives are spelled out before a pattern is taken apart at that place."""

_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


@cache
def anchors(pattern: str) -> frozenset[str]:
    """Lower-case texts of which at least one is in every line that the pattern matches; {""} if nothing can be said."""
    texts = sorted(_needed(_parser.parse(pattern)), key=len)
    # A text that holds another of them says nothing more.
    return frozenset(text for place, text in enumerate(texts) if not any(other in text for other in texts[:place]))


def _needed(nodes: Any) -> set[str]:
    """The most telling of what the parts of a sequence demand; any one of them alone would be right."""
    best, run = {""}, {""}
    for node in nodes:
        texts = _spelled(*node)
        longer = texts and {head + tail for head, tail in product(run, texts)}
        if longer and len(longer) <= _TEXTS_AT_MOST:
            run = longer
            best = max(best, run, key=_telling)
        else:
            run = texts if texts and len(texts) <= _TEXTS_AT_MOST else {""}
            best = max(best, run, _demanded(*node), key=_telling)
    return best


def _spelled(operation: Any, argument: Any) -> set[str] | None:
    """All texts that a node can match, in lower case; None where they are too many or hang on what is around."""
    texts: set[str] | None = None
    if operation is _constants.LITERAL:
        texts = {chr(argument).lower()}
    elif operation is _constants.AT:  # a border takes up no room
        texts = {""}
    elif operation is _constants.IN and all(kind is _constants.LITERAL for kind, _ in argument):
        texts = {chr(code).lower() for _, code in argument}
    elif operation in (_constants.SUBPATTERN, _constants.ATOMIC_GROUP):
        texts = _spelled_in_sequence(argument[-1] if operation is _constants.SUBPATTERN else argument)
    elif operation is _constants.BRANCH:
        parts = [_spelled_in_sequence(branch) for branch in argument[1]]
        texts = None if None in parts else {text for part in parts for text in part or ()}
    elif operation in _REPEATS and argument[1] == 1:
        texts = _spelled_in_sequence(argument[2])
        texts = {"", *texts} if texts and not argument[0] else texts
    return texts


def _spelled_in_sequence(nodes: Any) -> set[str] | None:
    run = {""}
    for node in nodes:
        texts = _spelled(*node)
        if texts is None:
            return None
        run = {head + tail for head, tail in product(run, texts)}
        if len(run) > _TEXTS_AT_MOST:
            return None
    return run


def _demanded(operation: Any, argument: Any) -> set[str]:
    """What a node demands that cannot be spelled out."""
    if operation in (_constants.SUBPATTERN, _constants.ATOMIC_GROUP):
        return _needed(argument[-1] if operation is _constants.SUBPATTERN else argument)
    if operation is _constants.BRANCH:
        return set().union(*map(_needed, argument[1]))
    if operation in _REPEATS and argument[0] > 0:
        return _needed(argument[2])
    return {""}  # a class, a look-around, something optional


def _telling(texts: set[str]) -> tuple[int, int]:
    """A set is as good as its shortest text; of equals, the smaller set."""
    return min(map(len, texts)), -len(texts)
