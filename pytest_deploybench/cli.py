"""`deploybench`: what is done beside a pytest run. Each command is a thin shell around one room of the house."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_deploybench import folders
from pytest_deploybench.commands.agents import agents
from pytest_deploybench.commands.compare import compare
from pytest_deploybench.commands.logcheck import logcheck
from pytest_deploybench.commands.report import report
from pytest_deploybench.commands.show import show
from pytest_deploybench.commands.vms import vms
from pytest_deploybench.errors import DeployBenchError, UsageError

if TYPE_CHECKING:
    from pytest_deploybench.model import RunRecord, Task

SYMBOLS = {"ok": ("✓", "green"), "note": ("!", "yellow"), "missing": ("✗", "red")}


class _Group(click.Group):
    """Turns our own errors into one clear line; anything else is a bug and shows its traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DeployBenchError as error:
            raise click.ClickException(str(error)) from error


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
main.add_command(compare)
main.add_command(logcheck)
main.add_command(report)
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


@main.group()
def sources() -> None:
    """The pinned archives that the tasks deploy."""


@sources.command("fetch")
@click.argument("tasks", nargs=-1)
@click.option("--tasks-dir", type=click.Path(path_type=Path), default="tasks", show_default=True)
@click.option("--store", type=click.Path(path_type=Path), help="Where to keep them; a folder that you may archive.")
def sources_fetch(tasks: tuple[str, ...], tasks_dir: Path, store: Path | None) -> None:
    """Fetch the sources of TASKS (all by default) into the store and check their digests."""
    from pytest_deploybench import sources as room

    for task in _select(tasks_dir, tasks):
        for source in (task.source, *task.extra_sources):
            click.echo(room.fetch(source, store or folders.sources(), click.echo))


@main.command()
@click.argument("tasks", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Certify every task.")
@click.option(
    "--jobs", default=2, show_default=True, help="Trials at a time; the host's memory and cores limit them too."
)
@click.option(
    "--from",
    "earlier",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="RUN",
    help="Take the trials of this earlier run (its folder or its run.json) instead of running any. Repeatable.",
)
@click.option("--tasks-dir", type=click.Path(path_type=Path), default="tasks", show_default=True)
def certify(tasks: tuple[str, ...], every: bool, jobs: int, earlier: tuple[Path, ...], tasks_dir: Path) -> None:
    """Run reference, noop and shallow on TASKS on real machines and write each certification.json.

    A task is certified when `reference` PASSED while `noop` and `shallow` FAILED, all on the task as it is now. Exit
    status 1 if one is not.
    """
    if not tasks and not every:
        raise UsageError("name the tasks to certify, or give --all")
    from pytest_deploybench import certification, taskfile
    from pytest_deploybench import earlier as room

    chosen = _select(tasks_dir, tasks)
    run = certification.merged([room.load(path, "--from") for path in earlier] or [_run_witnesses(chosen, jobs)])
    complaints = []
    for task in chosen:
        digest = taskfile.digest(task.folder)
        problems = certification.shortcomings(task.id, digest, run.trials)
        if not problems:
            path = certification.write(task.folder, certification.certificate(task.id, digest, run))
            click.secho(f"certified: {path}", fg="green")
        complaints += problems
    for complaint in complaints:
        click.secho(f"not certified: {complaint}", fg="red")
    sys.exit(1 if complaints else 0)


def _run_witnesses(tasks: list[Task], jobs: int) -> RunRecord:
    """Run the witnesses of a certificate on these tasks."""
    from pytest_deploybench.certification import WITNESSES
    from pytest_deploybench.reports.json import load_run

    with tempfile.TemporaryDirectory(prefix="deploybench-certify-") as scratch:
        report = Path(scratch) / "run.json"
        agents = [f"--deploybench-agent={agent}" for agent in WITNESSES]
        paths = [str(task.folder) for task in tasks]
        subprocess.run(
            [sys.executable, "-m", "pytest", *paths, *agents, f"-n{jobs}", f"--deploybench-json={report}"],
            check=False,  # two of three witnesses fail on purpose; the records decide
        )
        if not report.exists():
            raise UsageError("the run left no records, so nothing is certified; pytest's own message stands above")
        return load_run(report.read_text(encoding="utf-8"), report)


def _select(root: Path, names: tuple[str, ...]) -> list[Task]:
    from pytest_deploybench import taskfile

    known = {task.id: task for task in taskfile.discover(root)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"no task {', '.join(unknown)} in {root}. Known: {', '.join(sorted(known))}")
    return [known[name] for name in names or known]


def _acceleration() -> str:
    from pytest_deploybench.providers.qemu.acceleration import probe

    found = probe(folders.cache(), click.echo)
    return f"{found.name} ({found.reason})"
