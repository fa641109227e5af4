"""Reads lines that are at hand as text.

Promises a reviewer can check: no I/O; one pass over the lines, which may come from a generator; findings come in the
order of the log, the first of each rule always among them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pytest_deploybench.layer1.reader import Reader
from pytest_deploybench.layer1.rules import Catalogue
from pytest_deploybench.model import Finding


def parse(lines: Iterable[str], catalogue: Catalogue | None = None) -> list[Finding]:
    """All failures that a log tells of, settled ones too: no success in the log can talk them away.

    Those of at least `FAILING_CONFIDENCE` count against the deployment; the others are hints for a reader.

    Raises:
        CatalogueError: no catalogue was given and the one that comes with the package is damaged.
    """
    reader = Reader(catalogue)
    for line in lines:
        reader.feed(line.rstrip("\r\n").encode("utf-8", "replace") + b"\n")
    reader.close()
    return reader.findings()
