"""Layer 1: a rule-based reading of logs. Lines in, findings out.

A rule is data (`catalogue/*.yaml`) with samples of what it hits and what it must pass over: a new rule is a new entry.
"""

from pytest_deploybench.layer1.parser import parse
from pytest_deploybench.layer1.rules import FAILING_CONFIDENCE, Catalogue, CatalogueError, Rule, load_catalogue

__all__ = ["FAILING_CONFIDENCE", "Catalogue", "CatalogueError", "Rule", "load_catalogue", "parse"]
