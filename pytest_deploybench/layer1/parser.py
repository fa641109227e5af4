"""Reads a log line by line and names the failures in it.

Promises a reviewer can check: no I/O; one pass over the lines, which may come from a generator; memory is bounded
whatever the log holds (a line is cut, findings of a rule are counted out); a line gives at most one finding, that of
its most confident rule; findings come in the order of the log, the first of each rule always among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pytest_deploybench.layer1.rules import Catalogue, Rule, load_catalogue
from pytest_deploybench.model import Category, Finding
from pytest_deploybench.redact import strip_escapes

LINE_LIMIT = 2000
"""Characters of a line that are looked at: half of them from its beginning, half from its end."""

FINDINGS_PER_RULE = 10
"""The first cause matters; the ten-thousandth repetition of it does not, and must not crowd out another rule."""


def parse(lines: Iterable[str], catalogue: Catalogue | None = None) -> list[Finding]:
    """The failures that a log tells of.

    Those of at least `FAILING_CONFIDENCE` count against the deployment; the others are hints for a reader.

    Raises:
        CatalogueError: no catalogue was given and the one that comes with the package is damaged.
    """
    catalogue = load_catalogue() if catalogue is None else catalogue
    count: Counter[str] = Counter()
    findings = []
    for number, raw in enumerate(lines, start=1):
        line = _visible_part(raw)
        rule = catalogue.speaker(line)
        if rule is None or rule.category is None:
            continue
        count[rule.id] += 1
        if count[rule.id] <= FINDINGS_PER_RULE:
            findings.append(_finding(rule, rule.category, number, line))
    return findings


def _visible_part(raw: str) -> str:
    """What a terminal would show in the end: a progress bar writes its line again and again."""
    line = raw.rstrip("\r\n").rpartition("\r")[2]
    if len(line) > LINE_LIMIT:
        line = f"{line[: LINE_LIMIT // 2]} ... {line[-LINE_LIMIT // 2 :]}"
    return strip_escapes(line).rstrip()


def _finding(rule: Rule, category: Category, number: int, line: str) -> Finding:
    return Finding(
        rule=rule.id,
        category=category,
        line_number=number,
        line=line,
        explanation=rule.explanation,
        remedy=rule.remedy,
        confidence=rule.confidence,
        ecosystem=rule.ecosystem,
        kind=rule.kind,
        role=rule.role,
    )
