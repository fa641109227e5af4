"""The table of tasks that `--deploybench-list` prints, narrowed by paths, `-m` and `-k` as a run would be."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

# pytest has no public way to evaluate a -m or -k expression; this class has kept its form since pytest 5.4.
from _pytest.mark.expression import Expression
from rich.console import Console
from rich.table import Table

from pytest_deploybench import taskfile
from pytest_deploybench.errors import DeployBenchError
from pytest_deploybench.model import Task

_PIPED_WIDTH = 160
"""Columns where no terminal sets a limit, so that a row stays one line for `grep`."""


def show(config: pytest.Config) -> int:
    """Print the tasks under the given paths and return the exit status.

    Raises:
        pytest.UsageError: a task folder is broken, or an expression cannot be read.
    """
    try:
        tasks = select(_discover(config), config.option.markexpr, config.option.keyword)
    except DeployBenchError as error:
        raise pytest.UsageError(str(error)) from None
    except SyntaxError as error:
        raise pytest.UsageError(f"-m or -k: {error}. Write for example -m 'legacy and not gpu'") from None
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    console.print(table(tasks))
    console.print(f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}")
    return pytest.ExitCode.OK


def select(tasks: Iterable[Task], labels: str, keywords: str) -> list[Task]:
    """The tasks that a label expression (`-m`) and a keyword expression (`-k`) leave over."""
    by_label = Expression.compile(labels) if labels else None
    by_keyword = Expression.compile(keywords) if keywords else None
    return [
        task
        for task in tasks
        if (by_label is None or by_label.evaluate(_Named(task.labels)))
        and (by_keyword is None or by_keyword.evaluate(_Mentioned((task.id, *task.labels))))
    ]


@dataclass(frozen=True)
class _Named:
    """As -m looks at markers."""

    names: Collection[str]

    def __call__(self, word: str, /, **_: str | int | bool | None) -> bool:
        return word in self.names


class _Mentioned(_Named):
    """As -k looks at names: in any case, and any part of them."""

    def __call__(self, word: str, /, **_: str | int | bool | None) -> bool:
        return any(word.lower() in name.lower() for name in self.names)


def table(tasks: Iterable[Task]) -> Table:
    """One row a task."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("task", "title", "domain", "difficulty", "languages", "labels"):
        grid.add_column(heading, overflow="fold", no_wrap=heading in ("task", "domain", "difficulty"))
    for task in tasks:
        flags = [label for label in ("gpu", "qemu", "legacy", "smoke") if label in task.labels]
        grid.add_row(task.id, task.title, task.domain, task.difficulty, ", ".join(task.languages), ", ".join(flags))
    return grid


def _discover(config: pytest.Config) -> list[Task]:
    roots = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    found = {task.id: task for root in roots for task in taskfile.discover(_folder(root))}
    return [found[name] for name in sorted(found)]


def _folder(path: Path) -> Path:
    return path.parent if path.is_file() else path
