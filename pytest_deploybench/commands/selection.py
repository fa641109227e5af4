"""Which tasks a command is about: arguments TASK... and the option --tasks-dir, the same for all commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from pytest_deploybench import taskfile
from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import Task

tasks_dir = click.option(
    "--tasks-dir",
    type=click.Path(path_type=Path),
    default="tasks",
    show_default=True,
    help="Folder with the tasks' folders.",
)


def select(root: Path, names: Iterable[str]) -> list[Task]:
    """The named tasks under a folder, or all of them where none is named.

    Raises:
        UsageError: there is no such task.
        TaskFileError: the folder of one is broken. What else is under `root` may be unfinished.
    """
    known = taskfile.folders(root)
    wanted = [Path(name).name for name in names]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"no task {', '.join(unknown)} in {root}. Known: {', '.join(known)}")
    return [taskfile.load(known[name]) for name in dict.fromkeys(wanted) or known]
