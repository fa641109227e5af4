"""The labelled logs under corpus/, and how well a judgment of them does.

NAME.log is what really came out of a build or a run, with names of hosts and folders replaced; NAME.yaml beside it says

    verdict: fail            or pass
    category: dependency     of a failure: one of model.Category
    root: 12                 of a failure: the line from which the rest follows
    exit_status: 2           of the commands; the reader is not told
    made: |                  the commands that made the log
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from pytest_deploybench.layer1 import Reader, Report

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Labelled:
    """One log and what is true of it."""

    name: str
    log: bytes
    failed: bool
    category: str
    root: int
    made: str

    def report(self) -> Report:
        """What the reader says of the log alone."""
        reader = Reader()
        reader.feed(self.log)
        return reader.close()


@dataclass(frozen=True)
class Score:
    """How a report compares with the label."""

    labelled: Labelled
    verdict: bool
    category: bool
    root: bool


def corpus() -> Iterator[Labelled]:
    """All labelled logs, by name."""
    for file in sorted(CORPUS.glob("*.yaml")):
        label = yaml.safe_load(file.read_text(encoding="utf-8"))
        yield Labelled(
            name=file.stem,
            log=file.with_suffix(".log").read_bytes(),
            failed=label["verdict"] == "fail",
            category=label.get("category", ""),
            root=label.get("root", 0),
            made=label["made"],
        )


def score(labelled: Labelled) -> Score:
    """Judge a log; a wrong verdict has neither category nor root right."""
    report = labelled.report()
    right = report.failed == labelled.failed
    found = report.root if right and labelled.failed else None
    return Score(
        labelled,
        verdict=right,
        category=found is not None and found.category == labelled.category,
        root=found is not None and found.line_number == labelled.root,
    )
