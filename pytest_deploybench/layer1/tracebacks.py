"""Understands Python's tracebacks: where one ends, and whether the next belongs to it.

Promises a reviewer can check: pure; no more than `LINES_AT_MOST` lines of a traceback are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HEADER = "Traceback (most recent call last):"
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
"""What stands between two tracebacks of one failure."""

LINES_AT_MOST = 400
_FOREIGN_AT_MOST = 20
"""Lines of another process that may stand between, before the traceback counts as cut off."""

_EXCEPTION = re.compile(r"(?![A-Z]{2,}:)(?:[A-Za-z_][\w]{0,80}\.){0,8}[A-Za-z_]\w{1,80}(?::(?: |$)|$)")
_HARMLESS = re.compile(
    r"(?i)^exception ignored (?:in|on|while)|^--- logging error ---|^expecting:$|\bignor|\bskipp|\bretry"
)
_WARNING = re.compile(r"(?i)^(?:[\w.:,/-]{1,60} ){0,4}[\[(<|]?warn(?:ing)?(?:[\])>|:]|\s|$)")
"""A level of a logger, not a call of warn()."""


def last_line(header: str, following: Iterable[str]) -> int | None:
    """How many lines after its header a traceback names its exception.

    0 where it never does, None where `following` ended before that is known.

    `following` are the lines after the header; all without what collectors put in front of them.
    """
    indent = header.index(HEADER)
    prefix, foreign = header[:indent], 0
    for distance, line in enumerate(following, start=1):
        if distance > LINES_AT_MOST or foreign > _FOREIGN_AT_MOST:
            return 0
        own = line[indent:] if line.startswith(prefix) else line
        if not own.strip() or own[0] in " \t|+":
            continue
        if _EXCEPTION.match(own):
            return distance
        foreign += 1
    return None


def is_harmless(line_before: str) -> bool:
    """Whether the line in front of a traceback says that the program went on."""
    return _says(_HARMLESS, line_before)


def is_warning(line_before: str) -> bool:
    """Whether the line in front of a traceback is a logger's warning: then the program went on, if the log does."""
    return _says(_WARNING, line_before)


def _says(pattern: re.Pattern[str], line_before: str) -> bool:
    """Whether a line does; a quoted line of source says nothing."""
    return not line_before.startswith((" ", "\t")) and bool(pattern.search(line_before.rstrip()))
