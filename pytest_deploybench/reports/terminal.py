"""Shows a run on a terminal, readable from 80 columns on.

How text is made harmless, and what else holds for all that is shown on a terminal, says `layout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pytest_deploybench.model import RunRecord
from pytest_deploybench.reports.baseline import ALL, Baseline
from pytest_deploybench.reports.layout import (
    NOTHING,
    amount,
    console,
    dollars,
    duration,
    interval,
    line,
    partly,
    per_cent,
    percent,
    section,
    share,
    table,
    text,
)
from pytest_deploybench.reports.statistics import CONFIDENCE_LEVEL, Tally
from pytest_deploybench.reports.summary import Breakdown, Case, Standing, Summary, summarise

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

_WIDE = 80
_NAME_WIDTH = 14
"""Longer names of contestants are folded where they stand at the top of columns."""
_GROUPS_WIDTH = 24
"""Of the two columns in which a breakdown names its groups."""
_LONG_PHASES = ("machine", "agent", "experiment", "checks", "total")
"""Those that make a difference."""
_MANY = 20
"""Of more cases than these each takes two lines instead of a paragraph."""

_Columns = Mapping[str, Callable[[Standing], "RenderableType"]]


def render(run: RunRecord, width: int, color: bool, baseline: Baseline | None = None, notes: Sequence[str] = ()) -> str:
    """The report of a run as lines of at most `width` columns, or 60 if that is more.

    `baseline` is shown beside the run's own rates, `notes` tell how the run was put together.
    """
    on = console(width, color)
    summary = summarise(run)
    parts = [*_tables(summary, on.width, baseline), *_lists(summary, notes), _totals(summary)] if run.trials else []
    return text(parts or [*_lists(summary, notes), line("No trial was recorded.")], on)


def _tables(summary: Summary, width: int, baseline: Baseline | None) -> Iterator[RenderableType]:
    """The figures of a run that had trials."""
    yield _contestants(summary.standings, _result_columns(summary.standings, width))
    if any(each.repeated for each in summary.standings):
        title = "All attempts: at least one of k passes, all of k pass"
        yield section(title, "", _repeated(summary.standings))
    if effort := _effort_columns(summary.standings, width):
        yield _contestants(summary.standings, effort)
    if baseline is not None:
        yield section(f"Beside {baseline.title}", "", _beside(summary, baseline), line(baseline.caution, "dim"))
    for names in _side_by_side([standing.contestant for standing in summary.standings], width):
        if summary.breakdowns:
            yield _breakdowns(summary.breakdowns, names)
        if len(summary.failed) > _MANY:
            yield _causes(summary.causes, names)
    if summary.trials > _MANY and width >= _WIDE:
        yield section("Wall time of a trial, median", "", _contestants(summary.standings, _phase_columns()))


def _lists(summary: Summary, notes: Sequence[str]) -> Iterator[RenderableType]:
    """What needs a look, one by one."""
    several = len(summary.standings) > 1
    if summary.failed:
        yield section(f"FAILED ({len(summary.failed)})", "red", _cases(summary.failed, several))
    if summary.invalid:
        title = f"INVALID ({len(summary.invalid)}), not counted in the rate"
        yield section(title, "yellow", _cases(summary.invalid, several))
    if summary.swept:
        yield section("Left behind by an earlier session, and destroyed now", "", *map(line, summary.swept))
    if notes:
        yield section("How these runs were put together", "", *map(line, notes))


def _contestants(standings: Sequence[Standing], columns: _Columns) -> Table:
    """One row a contestant."""
    shown = table()
    shown.add_column("", overflow="fold", style="bold", min_width=_NAME_WIDTH)
    for title in columns:
        shown.add_column(title, justify="right", no_wrap=True)
    for standing in standings:
        shown.add_row(line(standing.contestant), *(cell(standing) for cell in columns.values()))
    return shown


def _result_columns(standings: Sequence[Standing], width: int) -> _Columns:
    columns: dict[str, Callable[[Standing], RenderableType]] = {
        "passed\n/valid": lambda each: f"{each.tally.passed}/{each.tally.valid}",
        "\nrate": lambda each: _rate(each.tally),
        f"{CONFIDENCE_LEVEL * 100:.0f} %\ninterval": lambda each: interval(each.interval),
    }
    columns["\nINVALID"] = lambda each: _count(each.tally.invalid)
    if any(each.tally.invalid for each in standings):
        columns["rate with\nINVALID"] = lambda each: percent(each.tally.rate_with_invalid_failed)
    if width >= _WIDE:
        columns["machine\ntime"] = lambda each: duration(each.machine_s)
    return columns


def _repeated(standings: Sequence[Standing]) -> Table:
    shown = table()
    shown.add_column("", overflow="fold", style="bold", min_width=_NAME_WIDTH)
    for title in ("tasks", "k", "pass@k", "pass^k"):
        shown.add_column(title, justify="right", no_wrap=True)
    for standing in standings:
        if found := standing.repeated:
            chances = (percent(found.any_passes), percent(found.all_pass))
            shown.add_row(line(standing.contestant), str(found.tasks), str(found.k), *chances)
    return shown


def _effort_columns(standings: Sequence[Standing], width: int) -> _Columns:
    """What trials took, as far as anybody knows; `(n)` where only n trials know it."""
    columns: dict[str, Callable[[Standing], RenderableType]] = {}
    if any(each.claims.said_done for each in standings):
        columns['"done"\nwas true'] = _claim
    if any(each.tokens.n for each in standings):
        columns["tokens\na trial"] = lambda each: partly(amount(each.tokens.mean), each.tokens, each.tally.total)
        columns["cost\na trial"] = lambda each: partly(dollars(each.cost_usd.mean), each.cost_usd, each.tally.total)
    if any(each.tokens.n for each in standings) and width >= _WIDE:
        columns["cost\nin all"] = lambda each: partly(dollars(each.cost_usd.total), each.cost_usd, each.tally.total)
        columns["agent's\ntime"] = lambda each: duration(each.phases_s["agent"].mean)
    return columns


def _claim(standing: Standing) -> str:
    claims = standing.claims
    return f"{claims.was_done}/{claims.said_done}" if claims.said_done else NOTHING


def _phase_columns() -> _Columns:
    return {phase: partial(_median, phase) for phase in _LONG_PHASES}


def _median(phase: str, standing: Standing) -> str:
    return duration(standing.phases_s[phase].median)


def _beside(summary: Summary, baseline: Baseline) -> Table:
    """Rates of this run and published ones, pair by pair."""
    ours = {ALL: {each.contestant: each.tally for each in summary.standings}}
    ours |= {group.name: dict(group.tallies) for group in summary.domains}
    shown = table()
    shown.add_column("%, here/there", overflow="fold", style="bold", min_width=_NAME_WIDTH)
    for group in baseline.tasks:
        shown.add_column(group, justify="right", no_wrap=True)
    for name in dict.fromkeys([*ours[ALL], *baseline.rates]):
        pairs = (
            (ours.get(group, {}).get(name, Tally()).rate, baseline.rates.get(name, {}).get(group))
            for group in baseline.tasks
        )
        shown.add_row(line(name), *(f"{per_cent(here, 0)}/{per_cent(there, 1):>4}" for here, there in pairs))
    return shown


def _breakdowns(breakdowns: Sequence[Breakdown], contestants: Sequence[str]) -> Table:
    shown = table()
    shown.add_column("passed/\nvalid by", style="dim", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for name in contestants:
        shown.add_column(line(name), justify="right", overflow="fold", max_width=_NAME_WIDTH)
    for breakdown in breakdowns:
        for number, group in enumerate(breakdown.groups):
            last = number == len(breakdown.groups) - 1
            cells = [share(group.tallies.get(name, Tally())) for name in contestants]
            shown.add_row(breakdown.axis if number == 0 else "", line(group.name), *cells, end_section=last)
    return shown


def _causes(causes: Mapping[str, Mapping[str, int]], contestants: Sequence[str]) -> Table:
    shown = table()
    shown.add_column("failed for", style="dim", no_wrap=True, min_width=_GROUPS_WIDTH - 1)
    for name in contestants:
        shown.add_column(line(name), justify="right", overflow="fold", max_width=_NAME_WIDTH)
    for cause, counts in causes.items():
        shown.add_row(cause, *(str(counts.get(name, 0)) for name in contestants))
    return shown


def _side_by_side(contestants: Sequence[str], width: int) -> Iterator[list[str]]:
    """As many contestants at a time as fit beside each other."""
    room = width - _GROUPS_WIDTH
    fitting: list[str] = []
    for name in contestants:
        room -= min(len(name), _NAME_WIDTH) + 1
        if fitting and room < 0:
            yield fitting
            fitting, room = [], width - _GROUPS_WIDTH - min(len(name), _NAME_WIDTH) - 1
        fitting.append(name)
    yield fitting


def _cases(cases: Sequence[Case], several: bool) -> RenderableType:
    return _paragraphs(cases, several) if len(cases) <= _MANY else _entries(cases)


def _entries(cases: Sequence[Case]) -> RenderableType:
    """Two lines a case: its folder, which names task, contestant and attempt, and its cause."""
    from rich.console import Group
    from rich.padding import Padding

    parts: list[RenderableType] = []
    remedy = ""
    for case in sorted(cases, key=lambda each: each.remedy):
        if case.remedy != remedy:
            remedy = case.remedy
            parts.append(line(remedy, "bold"))
        parts.append(line(case.folder, "dim"))
        parts.append(Padding(Group(*map(line, (case.cause, *case.notes))), (0, 0, 0, 2)))
    return Group(*parts)


def _paragraphs(cases: Sequence[Case], several: bool) -> Table:
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
    trials = "1 trial" if summary.trials == 1 else f"{summary.trials} trials"
    machines = f" on {'; '.join(summary.machines)}" if summary.machines else ""
    told = (
        f"{trials} in {duration(summary.wall_s)}{machines}. Machine time {duration(summary.machine_s)}: "
        f"{duration(summary.agent_s)} agents, {duration(summary.experiment_s)} experiments."
    )
    if len(summary.failed) + len(summary.invalid) > _MANY:
        # The tables have scrolled away by now.
        rates = (f"{each.contestant} {percent(each.tally.rate)}" for each in summary.standings)
        told += f" Passed: {', '.join(rates)}."
    return line(told)


def _rate(tally: Tally) -> Text:
    from rich.text import Text

    style = "" if tally.rate is None else "bold green" if tally.rate == 1 else "bold"
    return Text(percent(tally.rate), style=style)


def _count(number: int) -> Text:
    from rich.text import Text

    return Text(str(number), style="bold yellow" if number else "dim")
