"""What a log was found to say, as a value and as JSON.

`report.schema.json` beside this file is the promise to programs that read the JSON form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_deploybench.model import Finding


@dataclass(frozen=True)
class Report:
    """The judgment on one log."""

    failed: bool
    root: Finding | None
    """What the rest follows from; None where nothing failed."""
    findings: tuple[Finding, ...]
    """All that stands against the run, in the order of the log, hints included; at most a few of each rule."""
    counts: dict[str, int]
    """How often each rule of `findings` spoke, also where it was no longer kept."""
    lines: int
    """Lines of the log."""
    context: tuple[tuple[int, str], ...] = ()
    """The lines around the root with their numbers, the root's own included."""

    @property
    def verdict(self) -> str:
        return "fail" if self.failed else "pass"

    def as_json(self) -> dict[str, Any]:
        """The report in the form that `report.schema.json` describes."""
        return {
            "verdict": self.verdict,
            "root": _finding(self.root) if self.root else None,
            "findings": [_finding(finding) for finding in self.findings],
            "counts": self.counts,
            "lines": self.lines,
        }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "category": finding.category.value,
        "root_cause": finding.category.root_cause.value,
        "kind": finding.kind or None,
        "line": finding.line_number,
        "text": finding.line,
        "rule": finding.rule,
        "role": finding.role.value,
        "ecosystem": finding.ecosystem,
        "confidence": finding.confidence,
        "explanation": finding.explanation,
        "remedy": finding.remedy,
    }
