"""Shows a run on a terminal, readable from 80 columns on.

Promises a reviewer can check: returns text and writes nothing; without colour there is no escape sequence in it;
whatever comes from a guest or a model passes through `_line`, so it can neither act on the terminal nor speak rich's
markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_deploybench.model import RunRecord
from pytest_deploybench.redact import printable
from pytest_deploybench.reports.statistics import CONFIDENCE_LEVEL, Tally
from pytest_deploybench.reports.summary import Breakdown, Case, Summary, summarise

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

_NARROWEST = 60
_WIDE = 80
_GROUP_WIDTH = 14
_NOTHING = "-"


def render(run: RunRecord, width: int, color: bool) -> str:
    """The report of a run as lines of at most `width` columns, or 60 if that is more."""
    # rich is imported by who reads a report, not by every pytest run.
    from rich.console import Console

    # Every setting is given, so that nothing is taken from the environment.
    console = Console(
        width=max(width, _NARROWEST),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as captured:
        for part in _parts(summarise(run), console.width):
            console.print(part)
            console.print()
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n") + "\n"


def _parts(summary: Summary, width: int) -> Iterator[RenderableType]:
    if summary.trials:
        yield _standings(summary, width)
    for names in _columns([standing.contestant for standing in summary.standings], width):
        if summary.breakdowns:
            yield _breakdowns(summary.breakdowns, names)
    several = len(summary.standings) > 1
    if summary.failed:
        yield _section(f"FAILED ({len(summary.failed)})", "red", _cases(summary.failed, several))
    if summary.invalid:
        title = f"INVALID ({len(summary.invalid)}), not counted in the rate"
        yield _section(title, "yellow", _cases(summary.invalid, several))
    if summary.swept:
        yield _section("Left behind by an earlier session, and destroyed now", "", *map(_line, summary.swept))
    yield _totals(summary)


def _standings(summary: Summary, width: int) -> Table:
    tallies = [standing.tally for standing in summary.standings]
    columns: list[tuple[str, Iterable[RenderableType]]] = [
        ("passed\n/valid", (f"{tally.passed}/{tally.valid}" for tally in tallies)),
        ("\nrate", map(_rate, tallies)),
        (f"{CONFIDENCE_LEVEL * 100:.0f} %\ninterval", map(_interval, tallies)),
        ("\nINVALID", (_count(tally.invalid) for tally in tallies)),
    ]
    if any(tally.invalid for tally in tallies):
        columns.append(("rate with\nINVALID", (_percent(tally.rate_with_invalid_failed) for tally in tallies)))
    if width >= _WIDE:
        columns.append(("machine\ntime", (_duration(standing.machine_s) for standing in summary.standings)))
    table = _table()
    table.add_column("", overflow="fold", style="bold", min_width=_GROUP_WIDTH)
    for title, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    names = [_line(standing.contestant) for standing in summary.standings]
    for row in zip(names, *(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    return table


def _breakdowns(breakdowns: Sequence[Breakdown], contestants: Sequence[str]) -> Table:
    table = _table()
    table.add_column("passed/valid by", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in contestants:
        table.add_column(_line(name), justify="right", overflow="fold")
    for breakdown in breakdowns:
        for number, group in enumerate(breakdown.groups):
            last = number == len(breakdown.groups) - 1
            cells = [_share(group.tallies.get(name, Tally())) for name in contestants]
            table.add_row(breakdown.axis if number == 0 else "", _line(group.name), *cells, end_section=last)
    return table


def _columns(contestants: list[str], width: int) -> Iterator[list[str]]:
    """As many contestants side by side as fit."""
    count = max(1, (width - 2 * _GROUP_WIDTH) // _GROUP_WIDTH)
    for start in range(0, len(contestants), count):
        yield contestants[start : start + count]


def _section(title: str, style: str, *content: RenderableType) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    return Group(Text(title, style=f"bold {style}"), Padding(Group(*content), (0, 0, 0, 2)))


def _cases(cases: Sequence[Case], several: bool) -> Table:
    from rich.text import Text

    table = _table()
    table.show_header = False
    table.add_column(overflow="fold", ratio=1)
    table.add_column(overflow="fold", ratio=3)
    for case in cases:
        who = [_line(case.task), *([_line(case.contestant, "dim")] if several else [])]
        notes = [*case.notes, f"evidence: {case.folder}"]
        what = [_line(case.cause), *(_line(note, "dim") for note in notes)]
        if case.remedy:
            what.insert(1, _line(case.remedy, "bold"))
        table.add_row(Text("\n").join(who), Text("\n").join(what), end_section=True)
    return table


def _totals(summary: Summary) -> Text:
    if not summary.trials:
        return _line("No trial was recorded.")
    trials = "1 trial" if summary.trials == 1 else f"{summary.trials} trials"
    machines = f" on {'; '.join(summary.machines)}" if summary.machines else ""
    return _line(
        f"{trials} in {_duration(summary.wall_s)}{machines}. Machine time {_duration(summary.machine_s)}: "
        f"{_duration(summary.agent_s)} agents, {_duration(summary.experiment_s)} experiments."
    )


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="dim")


def _line(text: str, style: str = "") -> Text:
    """Text from anywhere as one harmless line."""
    from rich.text import Text

    return Text(" ".join(printable(text).splitlines()), style=style)


def _rate(tally: Tally) -> Text:
    from rich.text import Text

    style = "" if tally.rate is None else "bold green" if tally.rate == 1 else "bold"
    return Text(_percent(tally.rate), style=style)


def _percent(rate: float | None) -> str:
    return _NOTHING if rate is None else f"{rate * 100:.0f} %"


def _interval(tally: Tally) -> str:
    found = tally.interval
    return f"{found.low * 100:.0f}-{found.high * 100:.0f} %" if found else _NOTHING


def _share(tally: Tally) -> Text:
    from rich.text import Text

    if not tally.total:
        return Text(_NOTHING, style="dim")
    return Text(f"{tally.passed}/{tally.valid}", style="green" if tally.rate == 1 else "")


def _count(number: int) -> Text:
    from rich.text import Text

    return Text(str(number), style="bold yellow" if number else "dim")


def _duration(seconds: float) -> str:
    """In the unit that a person would choose."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
