"""A task folder as the rules look at it: texts, syntax trees and drawn challenges, each read at most once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_deploybench import taskfile
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.hygiene import drawing
from pytest_deploybench.model import Task

PLACEHOLDER = "FILL IN"
"""What `deploybench new-task` leaves for the author to write; nothing honest holds these words."""


@dataclass(frozen=True)
class Complaint:
    """One thing that is not as it should be, and how to mend it."""

    file: str
    """Name within the task's folder."""
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}. {self.remedy}"


class Folder:
    """The folder at `path`; whatever is missing or broken reads as empty, and one rule says so."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def module(self) -> str:
        """File name of the test module."""
        return f"test_{self.id}.py"

    @cached_property
    def task(self) -> Task | TaskFileError:
        """The task, or why its folder is none."""
        try:
            return taskfile.load(self.path)
        except TaskFileError as error:
            return error

    @cached_property
    def files(self) -> list[str]:
        """Names of all files that belong to the task, relative to the folder."""
        return sorted(path.relative_to(self.path).as_posix() for path in taskfile.files(self.path))

    def text(self, name: str) -> str:
        """Content of a text file; empty where there is none."""
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Syntax trees of the Python files by name; a file that does not parse has an empty one."""
        return {name: _parse(self.text(name)) for name in self.files if name.endswith(".py")}

    @property
    def test_tree(self) -> ast.Module:
        """The test module's syntax tree."""
        return self.trees.get(self.module, ast.Module([], []))

    def tests(self) -> Iterator[ast.FunctionDef]:
        """The checks of the test module."""
        for node in self.test_tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node

    @cached_property
    def drawn(self) -> drawing.Drawn | None:
        """Challenges drawn from a few seeds; None where the module cannot draw any."""
        return drawing.draw(self.path / self.module)


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])
