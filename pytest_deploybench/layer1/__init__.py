"""Layer 1: a rule-based reading of logs. Bytes or lines in, findings and a judgment out.

rules      the catalogue (`catalogue/*.yaml`), one file an ecosystem: a new rule is a new entry with samples
anchors, index, sieve     which few lines a rule could speak for
cleaning, tracebacks      what a line or a traceback says
reader     the stream of bytes, with bounded memory
judgment   whether the run failed, and from which line the rest follows
report     the result, also as JSON
"""

from pytest_deploybench.layer1.parser import parse
from pytest_deploybench.layer1.reader import Reader
from pytest_deploybench.layer1.report import Report
from pytest_deploybench.layer1.rules import FAILING_CONFIDENCE, Catalogue, CatalogueError, Rule, load_catalogue

__all__ = [
    "FAILING_CONFIDENCE",
    "Catalogue",
    "CatalogueError",
    "Reader",
    "Report",
    "Rule",
    "load_catalogue",
    "parse",
]
