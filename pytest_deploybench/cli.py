"""`deploybench`: what is done beside a pytest run. Each command is a thin shell around one room of the house."""

from __future__ import annotations

import sys
from typing import Any

import click

from pytest_deploybench import folders
from pytest_deploybench.commands.agents import agents
from pytest_deploybench.commands.certify import certify
from pytest_deploybench.commands.check_task import check_task
from pytest_deploybench.commands.compare import compare
from pytest_deploybench.commands.logcheck import logcheck
from pytest_deploybench.commands.new_task import new_task
from pytest_deploybench.commands.report import report
from pytest_deploybench.commands.show import show
from pytest_deploybench.commands.sources import sources
from pytest_deploybench.commands.tasks import tasks
from pytest_deploybench.commands.vms import vms
from pytest_deploybench.errors import DeployBenchError, UsageError

SYMBOLS = {"ok": ("✓", "green"), "note": ("!", "yellow"), "missing": ("✗", "red")}


class _Group(click.Group):
    """Turns our own errors into one clear line; anything else is a bug and shows its traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DeployBenchError as error:
            kind = click.UsageError if isinstance(error, UsageError) else click.ClickException
            raise kind(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest_deploybench")
def main() -> None:
    """Measure whether an LLM agent can deploy the artifact of a published paper on a fresh Linux machine.

    The benchmark itself runs under pytest:

    \b
        pytest --deploybench-agent=reference -m smoke     no LLM needed
        pytest --deploybench-list                         all tasks as a table
        pytest --help                                     the options, under "deploybench"

    A newcomer starts with `deploybench doctor --fix`.
    """


main.add_command(agents)
main.add_command(certify)
main.add_command(check_task)
main.add_command(compare)
main.add_command(logcheck)
main.add_command(new_task)
main.add_command(report)
main.add_command(sources)
main.add_command(tasks)
main.add_command(show)
main.add_command(vms)


@main.command()
@click.option("--fix", is_flag=True, help="Install what is missing through apt (asks sudo when not root).")
@click.option("--tests", "for_tests", is_flag=True, help="Look also for what only this project's own tests need.")
def doctor(fix: bool, for_tests: bool) -> None:
    """Say what this host lacks for local machines, and how to get it. Exit status 1 if something is missing."""
    from pytest_deploybench import doctor as room

    diagnoses = room.examine(folders.cache(), for_tests)
    if fix and (installed := room.fix(diagnoses)):
        click.echo(f"installed: {' '.join(installed)}")
        diagnoses = room.examine(folders.cache(), for_tests)
    for diagnosis in diagnoses:
        symbol, color = SYMBOLS[diagnosis.state]
        click.echo(f"{click.style(symbol, fg=color)} {diagnosis.name}: {diagnosis.detail}")
    missing = [diagnosis for diagnosis in diagnoses if diagnosis.state is room.State.MISSING]
    if missing:
        click.echo("`deploybench doctor --fix` installs what is missing." if not fix else "Still missing: see above.")
        sys.exit(1)
    click.echo(f"acceleration: {_acceleration()}")


@main.group()
def image() -> None:
    """The Debian image from which local machines are made."""


@image.command("build")
def image_build() -> None:
    """Build the image now instead of at the first run; does nothing when it is there already."""
    from pytest_deploybench.providers.qemu.image import build

    built = build(folders.cache(), click.echo)
    click.echo(f"image {built.digest[:12]} at {built.disk.parent}")


def _acceleration() -> str:
    from pytest_deploybench.providers.qemu.acceleration import probe

    found = probe(folders.cache(), click.echo)
    return f"{found.name} ({found.reason})"
