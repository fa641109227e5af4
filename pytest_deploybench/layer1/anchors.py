"""Finds text that every match of a regular expression must hold, so that most lines are ruled out without matching.

A log of ten million characters has hundreds of thousands of lines, nearly all of them harmless; looking for a plain
text in them is some fifty times quicker than a regular expression.

Promises a reviewer can check: pure; a line that holds none of a pattern's anchors, in lower case, cannot match it.
"""

from __future__ import annotations

from re import _constants, _parser  # type: ignore[attr-defined]  # private, but the only parser of this syntax there is
from typing import Any


def anchors(pattern: str) -> frozenset[str]:
    """Lower-case texts of which at least one is in every line that the pattern matches; {""} if nothing can be said."""
    return frozenset(_of_sequence(_parser.parse(pattern)))


def _of_sequence(nodes: Any) -> set[str]:
    """The most telling of what each part of a sequence demands; any one of them alone would be right."""
    best, run = {""}, ""
    for operation, argument in nodes:
        if operation is _constants.LITERAL:
            run += chr(argument).lower()
            best = max(best, {run}, key=_telling)
        elif operation is not _constants.AT:  # a border takes up no room, so a run of literals goes on across it
            run = ""
            best = max(best, _of_node(operation, argument), key=_telling)
    return best


def _of_node(operation: Any, argument: Any) -> set[str]:
    if operation is _constants.SUBPATTERN:
        return _of_sequence(argument[-1])
    if operation is _constants.ATOMIC_GROUP:
        return _of_sequence(argument)
    if operation is _constants.BRANCH:
        return set().union(*map(_of_sequence, argument[1]))
    if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT) and argument[0] > 0:
        return _of_sequence(argument[2])
    return {""}  # a class, a look-around, something optional


def _telling(texts: set[str]) -> int:
    """A set is as good as its shortest text."""
    return min(map(len, texts))
