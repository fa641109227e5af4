"""Places what is drawn: numbers in, coordinates out; the templates turn them into SVG.

Coordinates are in the units of the drawing's viewBox, from the upper left corner.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_deploybench.model import TrialRecord
from pytest_deploybench.reports.html.log import cut
from pytest_deploybench.reports.statistics import Interval

_LONGEST_LABEL = 30
"""Characters of a name beside its point."""

PHASES = (
    ("waiting", "waiting for a machine", ("machine",)),
    ("agent", "agent at work", ("seed", "agent")),
    ("verifying", "verification", ("evidence", "experiment", "checks")),
)
"""What is told apart in the timeline: name, legend, and the phases of a record that belong to it."""


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


# --- success against what it took -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """One contestant."""

    name: str
    effort: float
    rate: float
    interval: Interval


@dataclass(frozen=True)
class Dot:
    """A point where it is drawn, with its whisker and its name."""

    name: str
    x: float
    y: float
    low: float
    high: float
    label_x: float
    label_y: float


@dataclass(frozen=True)
class Scatter:
    """Pass rate against effort."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    dots: tuple[Dot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def scatter(points: Sequence[Point]) -> Scatter:
    """Place the points; the axis of effort begins at 0."""
    width, height, left, right, top, bottom = 640, 320, 44.0, 500.0, 14.0, 284.0
    step = _nice_step(max((point.effort for point in points), default=1.0))
    most = step * math.ceil(max((point.effort for point in points), default=1.0) / step or 1)
    across = (right - left) / most
    up = bottom - top

    dots: list[Dot] = []
    for point in sorted(points, key=lambda point: -point.rate):
        x, y = left + point.effort * across, bottom - point.rate * up
        label_y = y + 4
        while any(abs(dot.label_y - label_y) < 14 and abs(dot.x - x) < 190 for dot in dots):
            label_y += 14
        dots.append(
            Dot(
                name=cut(point.name, _LONGEST_LABEL),
                x=round(x, 1),
                y=round(y, 1),
                low=round(bottom - point.interval.low * up, 1),
                high=round(bottom - point.interval.high * up, 1),
                label_x=round(x + 10, 1),
                label_y=round(label_y, 1),
            )
        )
    return Scatter(
        *(width, height, left, right, top, bottom),
        dots=tuple(dots),
        x_ticks=tuple(
            Tick(round(left + number * step * across, 1), f"{number * step:g}")
            for number in range(round(most / step) + 1)
        ),
        y_ticks=tuple(Tick(round(bottom - part / 4 * up, 1), f"{part * 25} %") for part in range(5)),
    )


def _nice_step(most: float) -> float:
    """1, 2 or 5 times a power of ten, so that an axis up to `most` has three to six steps."""
    if most <= 0:
        return 1.0
    rough = most / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next((power * factor for factor in (1, 2, 5) if power * factor >= rough), power * 10)


# --- machines over time -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One phase of one trial."""

    phase: str
    x: float
    width: float


@dataclass(frozen=True)
class Row:
    """One trial in the timeline."""

    trial: int
    """Its place among the trials given."""
    y: float
    end: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Timeline:
    """When which trials ran, as many beside each other as ran at once."""

    width: int
    height: float
    row_height: float
    lanes: int
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]


def timeline(trials: Sequence[TrialRecord]) -> Timeline:
    """Place the trials in as few lanes as hold them without overlap."""
    width = 1000
    spans = [(_start(trial), _start(trial) + _length(trial)) for trial in trials]
    begin = min((start for start, _ in spans), default=0.0)
    length = max((end for _, end in spans), default=1.0) - begin or 1.0
    scale = width / length
    lanes: list[float] = []
    places = {}
    for number in sorted(range(len(trials)), key=lambda number: spans[number]):
        start, end = spans[number]
        # A second's grace: starts are recorded in whole seconds.
        lane = next((lane for lane, free_from in enumerate(lanes) if free_from <= start + 1), len(lanes))
        lanes[lane : lane + 1] = [end]
        places[number] = lane
    row_height = min(16.0, max(5.0, 420 / max(len(lanes), 1)))
    return Timeline(
        width=width,
        height=round(row_height * len(lanes), 1),
        row_height=round(row_height, 1),
        lanes=len(lanes),
        rows=tuple(
            Row(
                number,
                round(places[number] * row_height, 1),
                round((spans[number][1] - begin) * scale, 1),
                tuple(_bars(trial, (spans[number][0] - begin) * scale, scale)),
            )
            for number, trial in enumerate(trials)
        ),
        ticks=tuple(_time_ticks(length, scale)),
    )


def _bars(trial: TrialRecord, x: float, scale: float) -> Iterable[Bar]:
    for name, _, phases in PHASES:
        across = sum(trial.durations.get(phase, 0.0) for phase in phases) * scale
        if across > 0:
            yield Bar(name, round(x, 1), round(max(across, 0.3), 1))
        x += across


def _start(trial: TrialRecord) -> float:
    return datetime.fromisoformat(trial.started_at).timestamp()


def _length(trial: TrialRecord) -> float:
    return sum(trial.durations.get(phase, 0.0) for _, _, phases in PHASES for phase in phases)


def _time_ticks(length_s: float, scale: float) -> Iterable[Tick]:
    unit, name = next(
        (unit, name) for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s")) if length_s > 2 * unit or unit == 1.0
    )
    step = _nice_step(length_s / unit)
    for number in range(int(length_s / unit / step) + 1):
        yield Tick(round(number * step * unit * scale, 1), f"{number * step:g} {name}")
