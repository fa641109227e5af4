"""What a log was found to say, as a value and as JSON.

`report.schema.json` beside this file is the promise to programs that read the JSON form.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from pytest_deploybench.model import Finding


@dataclass(frozen=True)
class JsonFinding:
    """A finding in the JSON form."""

    category: Literal["dependency", "gpu", "build", "artifact", "system", "network", "oom", "timeout", "crash"]
    root_cause: Literal["dependency", "gpu", "build", "artifact", "system"]
    kind: str | None
    line: int
    text: str
    rule: str
    role: Literal["cause", "consequence", "context"]
    ecosystem: str
    confidence: float
    explanation: str
    remedy: str


@dataclass(frozen=True)
class JsonReport:
    """The whole JSON form."""

    verdict: Literal["fail", "pass"]
    root: JsonFinding | None
    findings: list[JsonFinding]
    counts: dict[str, int]
    lines: int


@dataclass(frozen=True)
class Report:
    """The judgment on one log."""

    failed: bool
    root: Finding | None
    """What the rest follows from; None where nothing failed."""
    findings: tuple[Finding, ...]
    """All that stands against the run, in the order of the log, hints included; at most a few of each rule."""
    counts: dict[str, int]
    """How often each rule of `findings` spoke, also where its lines were no longer kept."""
    lines: int
    """Lines of the log."""
    context: tuple[tuple[int, str], ...] = ()
    """The lines around the root with their numbers, the root's own included."""

    def as_json(self) -> dict[str, Any]:
        """The report in the form that `report.schema.json` describes."""
        return asdict(
            JsonReport(
                verdict="fail" if self.failed else "pass",
                root=_finding(self.root) if self.root else None,
                findings=[_finding(finding) for finding in self.findings],
                counts=self.counts,
                lines=self.lines,
            )
        )


def _finding(finding: Finding) -> JsonFinding:
    # The enumerations of the model are wider than what a judgment reports.
    return JsonFinding(
        category=cast(Any, finding.category.value),
        root_cause=cast(Any, finding.category.root_cause.value),
        kind=finding.kind or None,
        line=finding.line_number,
        text=finding.line,
        rule=finding.rule,
        role=cast(Any, finding.role.value),
        ecosystem=finding.ecosystem,
        confidence=finding.confidence,
        explanation=finding.explanation,
        remedy=finding.remedy,
    )
