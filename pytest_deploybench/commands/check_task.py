"""`deploybench check-task`: what the rules of hygiene say of a task folder, without any machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pytest_deploybench import hygiene
from pytest_deploybench.commands.selection import tasks_dir
from pytest_deploybench.errors import UsageError


@click.command("check-task")
@click.argument("tasks", nargs=-1, required=True)
@tasks_dir
def check_task(tasks: tuple[str, ...], tasks_dir: Path) -> None:
    """Say what TASKS (names or folders) still lack before a machine is spent on them, and how to mend it.

    Draws a few challenges, boots nothing. Exit status 1 if something is to be mended; a certificate that is still to
    be made is no fault.
    """
    folders = [Path(name) if Path(name).is_dir() else tasks_dir / name for name in tasks]
    absent = [folder for folder in folders if not folder.is_dir()]
    if absent:
        raise UsageError(f"there is no folder {absent[0]}; `deploybench new-task {absent[0].name}` makes one")
    sys.exit(max(show(folder) for folder in folders))


def show(folder: Path) -> int:
    """Print what each rule says of a folder; 1 if something is to be mended, else 0."""
    found = hygiene.examine(folder)
    faults = found.keys() - hygiene.NOTES
    click.secho(folder.name, bold=True)
    for rule, complaints in found.items():
        symbol, color = ("!", "yellow") if rule in hygiene.NOTES else ("✗", "red")
        for complaint in complaints:
            click.echo(f"{click.style(symbol, fg=color)} {rule}: {complaint}")
    passed = len(hygiene.RULES) - len(found)
    click.echo(f"{click.style('✓', fg='green')} {passed} of {len(hygiene.RULES)} rules have nothing to say")
    return 1 if faults else 0
