"""Puts the page of a comparison together: two contestants, or one in two runs, beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_deploybench.reports.compare import Comparison
from pytest_deploybench.reports.html.templates import environment


def render_comparison(comparisons: Sequence[Comparison], notes: Sequence[str] = ()) -> str:
    """The page of comparisons, one below the other; `notes` stand at the top, such as what could not be read."""
    return environment().get_template("comparison.html.jinja").render(comparisons=comparisons, notes=notes)
