"""Shows a run on a terminal, readable from 80 columns on.

How text is made harmless, and what else holds for all that is shown on a terminal, says `layout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_deploybench.model import RunRecord
from pytest_deploybench.reports.layout import console, duration, interval, line, percent, section, share, table, text
from pytest_deploybench.reports.statistics import CONFIDENCE_LEVEL, Tally
from pytest_deploybench.reports.summary import Breakdown, Case, Summary, summarise

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

_WIDE = 80
_GROUP_WIDTH = 14


def render(run: RunRecord, width: int, color: bool) -> str:
    """The report of a run as lines of at most `width` columns, or 60 if that is more."""
    on = console(width, color)
    return text(_parts(summarise(run), on.width), on)


def _parts(summary: Summary, width: int) -> Iterator[RenderableType]:
    if summary.trials:
        yield _standings(summary, width)
    for names in _columns([standing.contestant for standing in summary.standings], width):
        if summary.breakdowns:
            yield _breakdowns(summary.breakdowns, names)
    several = len(summary.standings) > 1
    if summary.failed:
        yield section(f"FAILED ({len(summary.failed)})", "red", _cases(summary.failed, several))
    if summary.invalid:
        title = f"INVALID ({len(summary.invalid)}), not counted in the rate"
        yield section(title, "yellow", _cases(summary.invalid, several))
    if summary.swept:
        yield section("Left behind by an earlier session, and destroyed now", "", *map(line, summary.swept))
    yield _totals(summary)


def _standings(summary: Summary, width: int) -> Table:
    tallies = [standing.tally for standing in summary.standings]
    columns: list[tuple[str, Iterable[RenderableType]]] = [
        ("passed\n/valid", (f"{tally.passed}/{tally.valid}" for tally in tallies)),
        ("\nrate", map(_rate, tallies)),
        (f"{CONFIDENCE_LEVEL * 100:.0f} %\ninterval", (interval(tally.interval) for tally in tallies)),
        ("\nINVALID", (_count(tally.invalid) for tally in tallies)),
    ]
    if any(tally.invalid for tally in tallies):
        columns.append(("rate with\nINVALID", (percent(tally.rate_with_invalid_failed) for tally in tallies)))
    if width >= _WIDE:
        columns.append(("machine\ntime", (duration(standing.machine_s) for standing in summary.standings)))
    shown = table()
    shown.add_column("", overflow="fold", style="bold", min_width=_GROUP_WIDTH)
    for title, _ in columns:
        shown.add_column(title, justify="right", no_wrap=True)
    names = [line(standing.contestant) for standing in summary.standings]
    for row in zip(names, *(cells for _, cells in columns), strict=True):
        shown.add_row(*row)
    return shown


def _breakdowns(breakdowns: Sequence[Breakdown], contestants: Sequence[str]) -> Table:
    shown = table()
    shown.add_column("passed/valid by", style="dim", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for name in contestants:
        shown.add_column(line(name), justify="right", overflow="fold")
    for breakdown in breakdowns:
        for number, group in enumerate(breakdown.groups):
            last = number == len(breakdown.groups) - 1
            cells = [share(group.tallies.get(name, Tally())) for name in contestants]
            shown.add_row(breakdown.axis if number == 0 else "", line(group.name), *cells, end_section=last)
    return shown


def _columns(contestants: list[str], width: int) -> Iterator[list[str]]:
    """As many contestants side by side as fit."""
    count = max(1, (width - 2 * _GROUP_WIDTH) // _GROUP_WIDTH)
    for start in range(0, len(contestants), count):
        yield contestants[start : start + count]


def _cases(cases: Sequence[Case], several: bool) -> Table:
    from rich.text import Text

    shown = table()
    shown.show_header = False
    shown.add_column(overflow="fold", ratio=1)
    shown.add_column(overflow="fold", ratio=3)
    for case in cases:
        who = [line(case.task), *([line(case.contestant, "dim")] if several else [])]
        notes = [*case.notes, f"evidence: {case.folder}"]
        what = [line(case.cause), *(line(note, "dim") for note in notes)]
        if case.remedy:
            what.insert(1, line(case.remedy, "bold"))
        shown.add_row(Text("\n").join(who), Text("\n").join(what), end_section=True)
    return shown


def _totals(summary: Summary) -> Text:
    if not summary.trials:
        return line("No trial was recorded.")
    trials = "1 trial" if summary.trials == 1 else f"{summary.trials} trials"
    machines = f" on {'; '.join(summary.machines)}" if summary.machines else ""
    return line(
        f"{trials} in {duration(summary.wall_s)}{machines}. Machine time {duration(summary.machine_s)}: "
        f"{duration(summary.agent_s)} agents, {duration(summary.experiment_s)} experiments."
    )


def _rate(tally: Tally) -> Text:
    from rich.text import Text

    style = "" if tally.rate is None else "bold green" if tally.rate == 1 else "bold"
    return Text(percent(tally.rate), style=style)


def _count(number: int) -> Text:
    from rich.text import Text

    return Text(str(number), style="bold yellow" if number else "dim")
