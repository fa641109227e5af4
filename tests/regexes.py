"""Looks into a regular expression for shapes that can backtrack without end."""

from __future__ import annotations

from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # private, but the only parser there is
from typing import Any

_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}
_NOT_REGULAR = {
    _constants.ASSERT,
    _constants.ASSERT_NOT,
    _constants.GROUPREF,
    _constants.GROUPREF_EXISTS,
    _constants.ATOMIC_GROUP,
    _constants.POSSESSIVE_REPEAT,
}
_MANY = 500


def nested_quantifiers(pattern: str) -> list[str]:
    """Repetitions without a useful bound that stand inside another repetition and can be split in many ways.

    A possessive repetition or an atomic group never gives back what it took, so it and all inside it is safe.
    """
    return list(_nested(_parser.parse(pattern), within=False))


def _nested(node: Any, *, within: bool) -> Iterator[str]:
    for operation, argument in node:
        if operation in _REPEATS:
            low, high, inner = argument
            loose = high == _constants.MAXREPEAT or high - low >= _MANY
            if loose and within:
                yield f"repetition {{{low},{high}}} inside another one"
            yield from _nested(inner, within=within or loose)
        elif operation is not _constants.ATOMIC_GROUP and operation is not _constants.POSSESSIVE_REPEAT:
            for inner in _subpatterns(argument):
                yield from _nested(inner, within=within)


def _subpatterns(argument: Any) -> Iterator[Any]:
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from _subpatterns(part)


def loose_repetitions(pattern: str) -> int:
    """How many repetitions without a useful bound a match can juggle with: the degree of its worst running time.

    A search that is not tied to the beginning of the line is one more, as it starts anew at every character.
    """
    parsed = _parser.parse(pattern)
    tied = bool(parsed) and tuple(parsed[0]) == (_constants.AT, _constants.AT_BEGINNING)
    return _loose(parsed) + (not tied)


def _loose(node: Any) -> int:
    count = 0
    for operation, argument in node:
        if operation in _REPEATS:
            low, high, inner = argument
            count += (high == _constants.MAXREPEAT or high - low >= _MANY) + _loose(inner)
        elif operation is _constants.BRANCH:
            count += max(_loose(branch) for branch in argument[1])
        elif operation is not _constants.ATOMIC_GROUP and operation is not _constants.POSSESSIVE_REPEAT:
            count += sum(_loose(inner) for inner in _subpatterns(argument))
    return count


def beyond_re2(pattern: str) -> list[str]:
    """What an automaton cannot do: look around, refer back, never give back. Without it any engine can be used."""
    return list(_beyond(_parser.parse(pattern)))


def _beyond(node: Any) -> Iterator[str]:
    for operation, argument in node:
        if operation in _NOT_REGULAR:
            yield str(operation)
        for inner in _subpatterns(argument):
            yield from _beyond(inner)


HOSTILE_LINES = [
    unit * (60_000 // len(unit))
    for unit in (
        "a",
        "A",
        "0",
        " ",
        "-",
        "\t ",
        "a ",
        "a-",
        "a:",
        "/a",
        "a.",
        "sk-",
        "aA0",
        "::",
        "://",
        "a://b:",
        "error: ",
        "No module named ",
        "TOKEN",
        "TOKEN=",
        "A_",
        "-----BEGIN PRIVATE KEY-----",
        "\x1b",
        "\x1b[",
        "\x1b]",
        "'",
        '"',
        "Bearer ",
        "file.c:1: ",
    )
]
"""Long lines at which a pattern that backtracks would sit for hours."""
