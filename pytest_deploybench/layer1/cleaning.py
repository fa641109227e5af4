"""Turns the bytes of a log line into the text that a reader would see.

Promises a reviewer can check: pure; every repetition is bounded; no step adds or removes a line feed, so line numbers
stay those of a text editor; a visible line has at most `LINE_LIMIT` characters and a few.
"""

from __future__ import annotations

import re
from functools import cache

from pytest_deploybench.redact import printable

LINE_LIMIT = 2000
"""Bytes of a line that are looked at: half of them from its beginning, half from its end."""

SHOWN_LIMIT = 500
"""Characters of a line that a report shows."""

_WRAPPERS = re.compile(
    r"(?:npm (?:ERR!|error) |gyp ERR! (?:stack )?|\[ERROR\] {1,4}|ERROR: {1,4}|> |remote: |! |- |• |\* )+|# (?=\S)"
)
"""What a tool puts in front of the words of another one that it ran."""

_SYSLOG = r"[^\W\d_]{3,5}\.? [ 0-3]\d \d\d:\d\d:\d\d [\w.-]{1,80} "
"""The month in the language of the machine, day, time and host."""

_OF_A_SYSTEM = re.compile(r"\[ {0,8}\d{1,7}\.\d{3,6}\](?! \[[A-Z])|" + _SYSLOG)

_BLANKS = " \t\ufeff\ufffd"
"""Also what a byte order mark leaves."""

_HALF = LINE_LIMIT // 2
_PREFIXES_AT_MOST = 4

# What log collectors write in front of a tool's own words.
_PREFIXES = (
    # 2024-05-01T12:00:00.1234567Z, [2024/05/01 12:00:00], 2024-05-01 12:00:00,123 +0200
    r"\[?\d{4}[-/.]\d\d[-/.]\d\d[T ,]{1,2}\d\d:\d\d:\d\d"
    r"(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?\]?:?(?=[ \t]|$)",
    r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?=[ \t]|$)",  # 12:00:00, [12:00:00.123]
    r"#\d{1,3} (?:\d{1,5}\.\d{1,3} |(?=ERROR|WARN|DONE))",  # docker build: #12 34.56
    r"\d{1,5}\.\d{2,3} (?=\S)",  # its summary of a failed step
    r"\[ {0,8}\d{1,7}\.\d{3,6}\](?:\[ {0,6}[TC] {0,6}\d{1,7}\])?",  # the kernel's clock
    _SYSLOG + "(?:kernel: )?",
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?=[A-Z]{4,5} )",  # Hadoop and Spark
    r"[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d\.\d{3} \[[^\]]{1,60}\] ",  # Nextflow
    r"(?:DEBUG|INFO|ERROR) util\.py:\d{1,5}: {1,4}",  # mock
    r"[A-Za-z][\w.-]{0,60}[_-]\d{1,3} {1,30}\| ",  # docker compose
    r"\[(?:rank|default|r)\d{1,5}\]:",  # torchrun
    r"\[\d{1,4},\d{1,6}\]<(?:stdout|stderr)>:?",  # mpirun --tag-output
    r"\([A-Za-z]\w{0,60} (?:pid=\d{1,9}|rank=\d{1,6})[^()]{0,80}\)",  # ray
    r"\[(?:stdout|stderr)\]|(?:stdout|stderr): ",
    r"##\[error\](?=\S)|::error(?: [^:]{0,200})?::",  # GitHub Actions
    r"[|│║] ",  # quoted by pip, uv and in boxes
    r"\d{1,6} (?:verbose stack|error) (?=[A-Z]\w|code )",  # npm-debug.log
)


def without_escapes(block: bytes) -> bytes:
    """A block of lines without colours, cursor movements and NUL bytes, also where a copy lost the escape character."""
    if b"\0" in block:  # also what PowerShell writes as UTF-16
        block = block.replace(b"\0", b"")
    if b"\x1b" in block:
        block = _escapes().sub(b"", block)
    if b"[0m" in block or b"[m" in block or b"[39m" in block:
        block = _lost_escapes().sub(b"", block)
    return block


def visible(raw: bytes) -> str:
    """What a terminal would show in the end: a progress bar writes its line again and again."""
    line = raw.rstrip()
    if b"\r" in line:
        line = line.rpartition(b"\r")[2]
    if len(line) > LINE_LIMIT:
        line = line[:_HALF] + b" ... " + line[-_HALF:]
    return line.decode("utf-8", "replace").replace("\b", "")


def shown(line: str) -> str:
    """A visible line as a report may show it: nothing in it moves a cursor, and it is not long."""
    text = printable(line)
    return text if len(text) <= SHOWN_LIMIT else f"{text[: SHOWN_LIMIT - 3]}..."


def own_words(line: str) -> str:
    """A visible line without indentation and without what collectors put in front of it."""
    return without_prefix(line).lstrip(_BLANKS)


def inner_words(line: str) -> str | None:
    """What is left of a line's own words without the tool that only passes them on; None where none does."""
    match = _WRAPPERS.match(line)
    return line[match.end() :].lstrip(_BLANKS) if match else None


def is_of_a_system(line: str) -> bool:
    """Whether a line is one of a kernel's or a system's log, where many things fail that nobody misses."""
    return bool(_OF_A_SYSTEM.match(line))


def without_prefix(line: str) -> str:
    """A visible line without what collectors put in front of it; the indentation that follows stays."""
    for _ in range(_PREFIXES_AT_MOST):
        match = _prefix().match(line.lstrip(_BLANKS))
        if match is None:
            break
        line = line.lstrip(_BLANKS)[match.end() :]
    return line


@cache
def _prefix() -> re.Pattern[str]:
    return re.compile("|".join(_PREFIXES))


@cache
def _escapes() -> re.Pattern[bytes]:
    # As in redact.py: a string without its end is not taken as one, so nothing that follows can be hidden by it.
    return re.compile(
        rb"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
        rb"|\x1b[\]PX^_][^\x07\x1b\n]{0,4000}(?:\x07|\x1b\\)"
        rb"|\x1b[ -/]{0,2}[0-OQ-WYZ\\`-~]"
    )


@cache
def _lost_escapes() -> re.Pattern[bytes]:
    # "[m" ends a colour, but also begins "[main 1a2b3c] message".
    return re.compile(rb"(?:\^\[|\xe2\x90\x9b)?\[(?:\d{1,3}(?:;\d{1,3}){0,5}m|m(?![a-z]))")
