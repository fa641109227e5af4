"""`deploybench compare`: two contestants on the tasks that both were judged on."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pytest_deploybench.commands.gathering import PART_READ, color, gather_or_exit, width, write


@click.command()
@click.argument("run_a", metavar="RUN_A", type=click.Path(path_type=Path))
@click.argument("run_b", metavar="[RUN_B]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--of",
    "names",
    multiple=True,
    metavar="NAME",
    help="Whom to compare: a model, or an agent that needs none. Given twice: the first in RUN_A with the second in "
    "RUN_B, or in RUN_A if that is all.",
)
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the comparison as one page that needs nothing else.",
)
def compare(run_a: Path, run_b: Path | None, names: tuple[str, ...], html_file: Path | None) -> None:
    """Compare two runs, or two contestants of one run, on the tasks that they share.

    Without --of, everybody is compared who took part in both runs, or the only two there are. Exit status 0 if all was
    read, 1 if the comparison lacks what could not be read, 2 if there is none.
    """
    from pytest_deploybench.reports.compare import compare as compared
    from pytest_deploybench.reports.compare import pairs
    from pytest_deploybench.reports.terminal_comparison import render_comparison

    a = gather_or_exit([run_a])
    b = gather_or_exit([run_b]) if run_b else a
    comparisons = [compared(left, right) for left, right in pairs(a.run, b.run, names)]
    for comparison in comparisons:
        click.echo(render_comparison(comparison, width(), color()), nl=False)
    if html_file is not None:
        from pytest_deploybench.reports import html

        write(html_file, html.render_comparison(comparisons, list(dict.fromkeys(a.problems + b.problems))))
    sys.exit(PART_READ if a.problems or b.problems else 0)
