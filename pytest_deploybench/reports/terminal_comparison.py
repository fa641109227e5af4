"""Shows a comparison on a terminal, readable from 80 columns on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_deploybench.reports.compare import Comparison
from pytest_deploybench.reports.layout import NOTHING, console, interval, line, percent, section, share, table, text
from pytest_deploybench.reports.statistics import CONFIDENCE_LEVEL, Paired

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def render_comparison(comparison: Comparison, width: int, color: bool) -> str:
    """The comparison as lines of at most `width` columns, or 60 if that is more."""
    return text(_parts(comparison), console(width, color))


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield _sides(comparison)
    yield line(outcome(comparison.paired), "" if comparison.paired else "bold")
    if comparison.contrasts:
        yield section(f"Tasks on which they differ ({len(comparison.contrasts)})", "", _contrasts(comparison))
    if comparison.settings:
        yield section("Not the same on both sides", "yellow", _settings(comparison))
    if comparison.left_out:
        lines = (f"{why} ({len(tasks)}): {', '.join(tasks)}" for why, tasks in comparison.left_out.items())
        yield section("Tasks that are not compared", "yellow", *map(line, lines))


def _sides(comparison: Comparison) -> Table:
    shown = table()
    shown.add_column("")
    shown.add_column("", overflow="fold", style="bold")
    shown.add_column("run", overflow="fold")
    for title in ("passed\n/valid", "\nrate", f"{CONFIDENCE_LEVEL * 100:.0f} %\ninterval", "\nINVALID"):
        shown.add_column(title, justify="right", no_wrap=True)
    sides = (
        ("A", comparison.a, comparison.tally_a, comparison.interval_a),
        ("B", comparison.b, comparison.tally_b, comparison.interval_b),
    )
    for letter, side, tally, found in sides:
        cells = (share(tally), percent(tally.rate), interval(found), str(tally.invalid))
        shown.add_row(letter, line(side.contestant), line(side.run.run_id), *cells)
    return shown


def outcome(paired: Paired | None) -> str:
    """What a paired comparison says, in a few sentences."""
    if paired is None:
        return "They share no task on which both were judged, so nothing can be said of their difference."
    low, high = paired.interval or (None, None)
    between = (
        f" ({_points(low)} to {_points(high)} with {CONFIDENCE_LEVEL * 100:.0f} % confidence)"
        if paired.interval
        else ""
    )
    alike = paired.tasks - paired.a_better - paired.b_better
    return (
        f"B less A: {_points(paired.difference)} points{between}, p = {_p_value(paired.p_value)}. "
        f"Of {paired.tasks} shared tasks A did better on {paired.a_better}, B on {paired.b_better}, "
        f"both alike on {alike}. {paired.method}."
    )


def _points(difference: float | None) -> str:
    return NOTHING if difference is None else f"{difference * 100:+.0f}"


def _p_value(value: float) -> str:
    return f"{value:.2g}" if value >= 0.0001 else "less than 0.0001"


def _contrasts(comparison: Comparison) -> Table:
    shown = table()
    shown.add_column("", overflow="fold", ratio=2)
    shown.add_column("A", justify="right", no_wrap=True)
    shown.add_column("B", justify="right", no_wrap=True)
    shown.add_column("why the weaker one failed", overflow="fold", ratio=5)
    for contrast in comparison.contrasts:
        shown.add_row(line(contrast.task), share(contrast.a), share(contrast.b), line(contrast.cause))
    return shown


def _settings(comparison: Comparison) -> Table:
    shown = table()
    shown.add_column("")
    shown.add_column("A", overflow="fold", ratio=1)
    shown.add_column("B", overflow="fold", ratio=1)
    for setting in comparison.settings:
        shown.add_row(setting.name, line(setting.a), line(setting.b))
    return shown
