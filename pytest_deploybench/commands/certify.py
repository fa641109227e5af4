"""`deploybench certify`: lets the three witnesses of each task testify on real machines and writes the certificates.

Each certification is one or a few pytest sessions, whose records stay under `deploybench-runs/certify-*`. A witness
that has testified on the task as it is now, in whichever of them, is not asked again: so an interrupted certification
goes on where it was.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_deploybench import certification, registry, taskfile
from pytest_deploybench.certification import WITNESSES, State
from pytest_deploybench.commands.selection import select, tasks_dir
from pytest_deploybench.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from pytest_deploybench.model import RunRecord, Task

RUNS = Path("deploybench-runs")
INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ended, as shells give it."""


@click.command()
@click.argument("tasks", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Certify every task.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Trials at a time; the host's memory and cores limit them too.",
)
@click.option("--force", is_flag=True, help="Ask all witnesses again, whatever was certified or recorded before.")
@click.option("--provider", default="qemu", show_default=True, help="Where the machines come from.")
@click.option(
    "--from",
    "earlier",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="RUN",
    help="Take the trials of this earlier run (its folder or its run.json) instead of running any. Repeatable.",
)
@tasks_dir
def certify(
    *,
    tasks: tuple[str, ...],
    every: bool,
    jobs: int,
    force: bool,
    provider: str,
    earlier: tuple[Path, ...],
    tasks_dir: Path,
) -> None:
    """Run reference, noop and shallow on TASKS on real machines and write each certification.json.

    A task is certified when `reference` PASSED while `noop` and `shallow` FAILED, all on the task as it is now. Tasks
    whose certificate is fresh are left alone, and an interrupted certification goes on where it was. Exit status 1 if
    a task is not certified in the end.
    """
    if not tasks and not every:
        raise UsageError("name the tasks to certify, or give --all")
    if why := getattr(registry.load(registry.PROVIDERS, provider), "no_benchmark", ""):
        raise UsageError(f"--provider={provider} certifies nothing: {why}. Try the task there, and certify it on qemu")
    chosen = select(tasks_dir, tasks)
    open_tasks = [
        task for task in chosen if force or earlier or certification.state(task.folder) is not State.CERTIFIED
    ]
    if earlier:
        runs = [_loaded(path) for path in earlier]
    else:
        heard = [] if force else list(_testimonies(open_tasks))
        runs = [*heard, *_hear(open_tasks, heard, jobs, provider)]
    results = [_certified(task, runs) if task in open_tasks else Result(task, "fresh") for task in chosen]
    _show(results)
    sys.exit(0 if all(result.certified for result in results) else 1)


@dataclass(frozen=True)
class Result:
    """How the certification of one task ended."""

    task: Task
    outcome: str
    """`fresh`, `written`, or why there is no certificate."""
    run: RunRecord | None = None
    """The trials that were looked at; None where the certificate was fresh."""

    @property
    def certified(self) -> bool:
        return self.outcome in ("fresh", "written")


def _certified(task: Task, runs: Sequence[RunRecord]) -> Result:
    """Write the certificate of a task, if these runs support it."""
    if not runs:
        return Result(task, "the run left no records; pytest's own message stands above")
    run, digest = certification.merged(runs), taskfile.digest(task.folder)
    problems = certification.shortcomings(task.id, digest, run.trials)
    if not problems:
        certification.write(task.folder, certification.certificate(task.id, digest, run))
    return Result(task, "; ".join(problem.removeprefix(f"{task.id}: ") for problem in problems) or "written", run)


def _testimonies(tasks: Sequence[Task]) -> Iterator[RunRecord]:
    """What witnesses of these tasks, as they are now, have said in earlier certifications, each run with only that."""
    digests = {task.id: taskfile.digest(task.folder) for task in tasks}
    for folder in sorted(RUNS.glob("certify-*")):
        try:
            run = _loaded(folder)
        except UsageError:
            continue  # it was interrupted before any trial had ended
        trials = [trial for trial in run.trials if certification.testifies(trial, digests.get(trial.task, ""))]
        if trials:
            yield replace(run, trials=tuple(trials))


def _hear(tasks: Sequence[Task], heard: Sequence[RunRecord], jobs: int, provider: str) -> Iterator[RunRecord]:
    """Run the witnesses that are still to be heard: one session for all tasks that lack the same ones."""
    testified = {(trial.task, trial.agent) for run in heard for trial in run.trials}
    sessions: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        lacking = tuple(agent for agent in WITNESSES if (task.id, agent) not in testified)
        if lacking:
            sessions.setdefault(lacking, []).append(task)
    trials = sum(len(agents) * len(group) for agents, group in sessions.items())
    if tasks:
        before = f", {len(testified)} have been heard before" if testified else ""
        click.echo(f"{len(tasks)} tasks to certify: {trials} witnesses to hear, {jobs} at a time{before}")
    for agents, group in sessions.items():
        yield from _session(group, agents, jobs, provider)


def _session(tasks: Sequence[Task], agents: Sequence[str], jobs: int, provider: str) -> Iterator[RunRecord]:
    """Run these agents on these tasks; the run, unless it left no record."""
    folder = RUNS / f"certify-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    command = [sys.executable, "-m", "pytest", *(str(task.folder) for task in tasks)]
    command += [*(f"--deploybench-agent={agent}" for agent in agents), f"--deploybench-provider={provider}"]
    # Two of three witnesses fail on purpose: the records decide, and no exit status.
    process = subprocess.Popen([*command, f"-n{jobs}", f"--deploybench-run-dir={folder}"])
    try:
        process.wait()
    except KeyboardInterrupt:  # the session has got it too, and gives its machines back before it ends
        process.wait()
        click.echo("\nInterrupted. The same command goes on where this one was; finished witnesses are kept.")
        sys.exit(INTERRUPTED)
    try:
        yield _loaded(folder)
    except UsageError:
        return  # nothing was judged, and pytest said why


def _loaded(path: Path) -> RunRecord:
    """A run, whether or not its session lived to put its records together.

    Raises:
        UsageError: it left none that can be read.
    """
    from pytest_deploybench.commands.gathering import gather

    return gather([path]).run


def _show(results: Sequence[Result]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160  # where no terminal sets a limit, a row stays one line for grep
    console.print(_table(results))
    certified = sum(result.certified for result in results)
    console.print(f"{certified} of {len(results)} tasks certified")


def _table(results: Sequence[Result]) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("task", *WITNESSES, "certificate"):
        grid.add_column(heading, overflow="fold", no_wrap=heading != "certificate")
    for result in results:
        said = _said(result)
        cells = [Text("-") if agent not in said else _cell(agent, *said[agent]) for agent in WITNESSES]
        style = "green" if result.certified else "red"
        grid.add_row(result.task.id, *cells, Text(result.outcome, style=style))
    return grid


def _said(result: Result) -> dict[str, tuple[str, float]]:
    """Verdict and seconds of each witness of a result."""
    if result.run is not None:
        trials = [trial for trial in result.run.trials if trial.task == result.task.id]
        return {trial.agent: (trial.verdict, trial.durations.get("total", 0.0)) for trial in trials}
    certificate = certification.read(result.task.folder)
    witnesses = certificate.witnesses if certificate else {}
    return {agent: (each.verdict, each.durations.get("total", 0.0)) for agent, each in witnesses.items()}


def _cell(agent: str, verdict: str, seconds: float) -> Text:
    from rich.text import Text

    from pytest_deploybench.reports.layout import duration

    return Text(f"{verdict} {duration(seconds)}", style="green" if verdict == WITNESSES[agent] else "red")
