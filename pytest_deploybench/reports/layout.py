"""What the reports for a terminal are set in: tables, sections, and numbers as people write them.

Promises a reviewer can check: returns text and writes nothing; without colour there is no escape sequence in it;
whatever comes from a guest or a model passes through `line`, so it can neither act on the terminal nor speak rich's
markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_deploybench.redact import printable
from pytest_deploybench.reports.statistics import Interval, Measured, Tally

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

NARROWEST = 60
NOTHING = "-"
"""Stands where a number is unknown."""


def console(width: int, color: bool) -> Console:
    """A console of `width` columns, or `NARROWEST` if that is more, that takes nothing from the environment."""
    # rich is imported by who reads a report, not by every pytest run.
    from rich.console import Console

    return Console(
        width=max(width, NARROWEST),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def text(parts: Iterable[RenderableType], on: Console) -> str:
    """The parts below each other, an empty line between two of them."""
    with on.capture() as captured:
        for part in parts:
            on.print(part)
            on.print()
    return "\n".join(each.rstrip() for each in captured.get().splitlines()).strip("\n") + "\n"


def table() -> Table:
    """An empty table without a frame."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="dim")


def section(title: str, style: str, *content: RenderableType) -> RenderableType:
    """A title and what stands below it, indented."""
    from rich.console import Group
    from rich.padding import Padding

    return Group(line(title, f"bold {style}"), Padding(Group(*content), (0, 0, 0, 2)))


def line(text: str, style: str = "") -> Text:
    """Text from anywhere as one harmless line."""
    from rich.text import Text

    return Text(" ".join(printable(text).splitlines()), style=style)


def percent(rate: float | None) -> str:
    return NOTHING if rate is None else f"{per_cent(rate)} %"


def per_cent(rate: float | None, digits: int = 0) -> str:
    """The number alone, for where the sign stands elsewhere."""
    return NOTHING if rate is None else f"{rate * 100:.{digits}f}"


def interval(found: Interval | None) -> str:
    return f"{found.low * 100:.0f}-{found.high * 100:.0f} %" if found else NOTHING


def share(tally: Tally) -> Text:
    """Passed of valid trials."""
    if not tally.total:
        return line(NOTHING, "dim")
    return line(f"{tally.passed}/{tally.valid}", "green" if tally.rate == 1 else "")


def duration(seconds: float | None) -> str:
    """In the unit that a person would choose."""
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def amount(number: float | None) -> str:
    """A large number with three digits or fewer: `2.15 M`."""
    if number is None:
        return NOTHING
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def dollars(number: float | None) -> str:
    return NOTHING if number is None else f"${number:,.2f}"


def partly(shown: str, quantity: Measured, of: int) -> str:
    """A figure made of a quantity, with how many trials know it where not all do."""
    return f"{shown} ({quantity.n})" if 0 < quantity.n < of else shown
