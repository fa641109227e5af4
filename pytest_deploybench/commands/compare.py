"""`deploybench compare`: two contestants on the tasks that both were judged on."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pytest_deploybench.commands.gathering import PART_READ, color, gather_or_exit, width


@click.command()
@click.argument("run_a", metavar="RUN_A", type=click.Path(path_type=Path))
@click.argument("run_b", metavar="[RUN_B]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--of",
    "names",
    multiple=True,
    metavar="NAME",
    help="Whom to compare: a model, or an agent without one. Given twice, the first of RUN_A with the second of RUN_B, or of RUN_A where it is the only one.",
)
def compare(run_a: Path, run_b: Path | None, names: tuple[str, ...]) -> None:
    """Compare two runs, or two contestants of one run, on the tasks that they share.

    Without --of, everybody is compared who took part in both runs, or the only two there are. Exit status 0 if all was
    read, 1 if the comparison lacks what could not be read, 2 if there is none.
    """
    from pytest_deploybench.reports.compare import compare as compared
    from pytest_deploybench.reports.compare import pairs
    from pytest_deploybench.reports.terminal_comparison import render_comparison

    a = gather_or_exit([run_a])
    b = gather_or_exit([run_b]) if run_b else a
    for left, right in pairs(a.run, b.run, names):
        click.echo(render_comparison(compared(left, right), width(), color()), nl=False)
    sys.exit(PART_READ if a.problems or b.problems else 0)
