"""`deploybench report`: the report of runs that are over, made from their records alone."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pytest_deploybench.commands.gathering import PART_READ, Gathered, color, gather_or_exit, relative_to, width, write


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--json", "json_file", metavar="FILE", type=click.Path(path_type=Path), help="Write all trials as one run.json."
)
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write all of it, with what each trial left, as one page that needs nothing else.",
)
@click.option("--baseline", type=click.Choice(["paper"]), help="Show the paper's published pass rates beside these.")
def report(runs: tuple[Path, ...], json_file: Path | None, html_file: Path | None, baseline: str | None) -> None:
    """Show the report of RUN..., each a run's folder or its JSON file. Several become one, as the parts of shards do.

    A trial that several RUNs hold counts once, and the report says whose verdict was taken. What cannot be read is told
    and left out. In a job of GitHub Actions the report is also added to the job's summary. Exit status 0 if all was
    read, 1 if the report lacks something, 2 if there is none.
    """
    from pytest_deploybench import stepsummary
    from pytest_deploybench.reports.baseline import BASELINES
    from pytest_deploybench.reports.json import dump_run
    from pytest_deploybench.reports.terminal import render

    gathered = gather_or_exit(runs)
    chosen = BASELINES.get(baseline or "")
    click.echo(render(gathered.run, width(), color(), chosen, gathered.notes), nl=False)
    if problem := stepsummary.append(gathered.run, chosen):
        click.secho(problem, fg="yellow", err=True)
    if json_file is not None:
        write(json_file, dump_run(relative_to(json_file, gathered)))
    if html_file is not None:
        write(html_file, _page(gathered, html_file))
    sys.exit(PART_READ if gathered.problems else 0)


def _page(gathered: Gathered, file: Path) -> str:
    from pytest_deploybench.commands.evidence import read_evidence
    from pytest_deploybench.reports.html import render

    notes = [*gathered.problems, *(f"merged: {note}" for note in gathered.notes)]
    return render(relative_to(file, gathered), read_evidence(gathered), notes)
