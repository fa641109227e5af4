"""`deploybench report`: the report of runs that are over, made from their records alone."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pytest_deploybench.commands.gathering import PART_READ, color, gather_or_exit, relative_to, width, write


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--json", "json_file", metavar="FILE", type=click.Path(path_type=Path), help="Write all trials as one run.json."
)
def report(runs: tuple[Path, ...], json_file: Path | None) -> None:
    """Show the report of RUN..., each a run's folder or its JSON file. Several become one, as the parts of shards do.

    A trial that several RUNs hold counts once, and the report says whose verdict was taken. What cannot be read is told
    and left out. Exit status 0 if all was read, 1 if the report lacks something, 2 if there is none.
    """
    from pytest_deploybench.reports.json import dump_run
    from pytest_deploybench.reports.terminal import render

    gathered = gather_or_exit(runs)
    click.echo(render(gathered.run, width(), color()), nl=False)
    for note in gathered.notes:
        click.echo(f"merged: {note}")
    if json_file is not None:
        write(json_file, dump_run(relative_to(json_file, gathered)))
    sys.exit(PART_READ if gathered.problems else 0)
