"""What a run is at while it runs, as lines for people: how its trials stand, and how long the rest will take.

Pure: the clock, the files of running trials and the terminal are the caller's. Promises a reviewer can check: a line is
one line of at most the width that was asked for; what comes from a guest or a model is harmless to show and free of
keys; no time left is claimed where nothing is known of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_deploybench.model import TrialRecord, Verdict
from pytest_deploybench.redact import printable, redact
from pytest_deploybench.reports.layout import amount, duration

QUEUED, AT_WORK = "waiting for a machine", "agent"

_ACTIVITIES: Mapping[str, str] = {
    "": "starting",
    "sources": "starting",
    "machine": "machine booting",
    "seed": "machine booting",
    "agent": AT_WORK,
    "evidence": "verifying",
    "freeze": "verifying",
    "reboot": "verifying",
    "experiment": "verifying",
    "keep": "verifying",
}
"""What people call the phases of a trial (`trial.Diary.phase`)."""
_COUNTED = (
    ("agent", "at work"),
    ("machine booting", "booting"),
    (QUEUED, "waiting for a machine"),
    ("starting", "starting"),
    ("verifying", "verifying"),
)
"""Activities in the order in which they are counted."""

_SAID_LIMIT = 160
_VERDICT_LIMIT = 400
_SHORTEST_ESTIMATE_S = 30.0


@dataclass(frozen=True)
class Running:
    """One trial that has begun."""

    name: str
    phase: str = ""
    queued: bool = False
    """Whether it waits for room for its machine."""
    seconds: float = 0.0
    """In this phase; of an agent, without what its model's provider made it wait."""
    total_s: float = 0.0
    """Since it began."""
    budget_s: float | None = None
    """Of the agent, on its machine."""
    tokens: int | None = None
    doing: str = ""
    """Its last command, or the last line of its log; from a guest or a model."""
    tries: int = 1
    expected: Expected | None = None

    @property
    def activity(self) -> str:
        """One of the words in `_COUNTED`."""
        return QUEUED if self.queued and self.phase == "machine" else _ACTIVITIES.get(self.phase, "verifying")


@dataclass(frozen=True)
class Expected:
    """How long a trial is expected to take."""

    seconds: float
    observed: bool
    """Whether such a trial was seen to take so long; else it is what the task allows."""


@dataclass(frozen=True)
class Left:
    """How long the rest will take."""

    seconds: float
    at_most: bool
    """Whether it rests on what tasks allow; agents mostly end earlier."""

    def __str__(self) -> str:
        return f"{'at most' if self.at_most else 'about'} {duration(self.seconds)} left"


@dataclass(frozen=True)
class Board:
    """A run at one moment."""

    verdicts: Mapping[Verdict, int] = field(default_factory=dict)
    running: Sequence[Running] = ()
    waiting: int = 0
    """Trials that have not begun."""
    left: Left | None = None


def headline(board: Board) -> str:
    """The whole run in one line."""
    words = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.INVALID: "INVALID"}
    done = [f"{board.verdicts.get(verdict, 0)} {word}" for verdict, word in words.items()]
    activities = [running.activity for running in board.running]
    present = [f"{number} {words}" for name, words in _COUNTED if (number := activities.count(name))]
    to_come = [f"{board.waiting} to come"] if board.waiting else []
    left = [str(board.left)] if board.left else []
    return "; ".join(filter(None, (", ".join(done), ", ".join(present), *to_come, *left)))


def running_line(running: Running) -> str:
    """One running trial: who, what it is at, since when, and what was heard of it last."""
    parts = [running.activity]
    if running.tries > 1:
        parts.append(f"try {running.tries}")
    if running.activity == AT_WORK and running.budget_s:
        parts.append(f"{duration(running.seconds)} of {duration(running.budget_s)}")
    else:
        parts.append(duration(running.seconds))
    if running.tokens:
        parts.append(f"{amount(running.tokens)} tokens")
    doing = _said(running.doing) if running.activity == AT_WORK else ""
    return f"{running.name}: {', '.join(parts)}{f'  {doing}' if doing else ''}"


def region(board: Board, width: int, height: int) -> list[str]:
    """The run as at most `height` lines of at most `width` columns: the whole, and the running trials under it."""
    room = height - 1
    fitting = len(board.running) if len(board.running) <= room else max(0, room - 1)
    lines = [headline(board), *(f"  {running_line(running)}" for running in board.running[:fitting])]
    if fitting < len(board.running):
        lines.append(f"  and {len(board.running) - fitting} more")
    return [_cut(line, width) for line in lines[: max(0, height)]]


def minute_line(board: Board, number: int) -> str:
    """The run in one line for a log; the running trials take turns in being told of, by the line's number."""
    trial = f"; {running_line(board.running[number % len(board.running)])}" if board.running else ""
    return f"{headline(board)}{trial}"


def verdict_line(record: TrialRecord, name: str) -> str:
    """A trial that is over: its verdict, how long it took, and why it did not pass."""
    why = "" if record.verdict is Verdict.PASSED else f": {_one_line(record.reason)}"
    line = f"{name} {record.verdict} after {duration(record.durations.get('total', 0.0))}{why}"
    return line if len(line) <= _VERDICT_LIMIT else f"{line[: _VERDICT_LIMIT - 3]}..."


def time_left(running: Sequence[Running], waiting: Sequence[Expected | None], hands: int) -> Left | None:
    """How long the rest will take if each free hand takes the longest trial; None where that is unknown.

    Args:
        running: trials that have begun.
        waiting: what is expected of those that have not.
        hands: how many trials run at once.
    """
    expected = [trial.expected for trial in running] + list(waiting)
    known = [each for each in expected if each is not None]
    if not known or len(known) < len(expected):
        return None
    at_most = not all(each.observed for each in known)
    loads = sorted((max(0.0, each.expected.seconds - each.total_s) for each in running if each.expected), reverse=True)
    hands = max(1, hands, len(loads))
    loads += [0.0] * (hands - len(loads))
    heapq.heapify(loads)
    for each in sorted((each.seconds for each in waiting if each), reverse=True):
        heapq.heappush(loads, heapq.heappop(loads) + each)
    seconds = max(loads)
    return Left(seconds, at_most) if seconds >= _SHORTEST_ESTIMATE_S else None


def paced(expected: Expected, actual: Sequence[tuple[float, float]]) -> Expected:
    """What is expected of a trial, by how others of the same contestant kept to what was expected of them.

    Args:
        expected: by its task.
        actual: seconds expected and seconds taken, for each trial of this contestant that is over.
    """
    planned = sum(plan for plan, _ in actual)
    if not planned:
        return expected
    return Expected(expected.seconds * sum(taken for _, taken in actual) / planned, observed=True)


def _said(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= _SAID_LIMIT else f"{line[: _SAID_LIMIT - 3]}..."


def _one_line(text: str) -> str:
    """Text from a guest or a model as one harmless line."""
    return " ".join(printable(redact(text)).split())


def _cut(line: str, width: int) -> str:
    from rich.cells import chop_cells

    return next(iter(chop_cells(line, max(1, width))), "")
