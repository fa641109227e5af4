"""Rules on the task's Python: a module that reads as a specification, draws from its seed and never waits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_deploybench.hygiene import drawing
from pytest_deploybench.hygiene.folder import Complaint, Folder

LEAST_TESTS = 3
_TIME = re.compile(r"(^|_)(seconds|secs|elapsed|duration|minutes|milliseconds|wall)(_|$)")
"""Names that hold a time; speeds such as `words_per_s` are not meant."""
_CLOCKS = {"time", "datetime"}


def tests(folder: Folder) -> Iterator[Complaint]:
    """The test module parses and promises something, and so does each of its checks."""
    if not folder.test_tree.body:
        if folder.text(folder.module):
            yield Complaint(folder.module, "it is not Python", "Run python3 on it, which shows where.")
        return
    found = list(folder.tests())
    if not ast.get_docstring(folder.test_tree):
        yield Complaint(folder.module, "it has no docstring", "Begin with one sentence: what the deployment can do.")
    if len(found) < LEAST_TESTS:
        yield Complaint(
            folder.module,
            f"it has {len(found)} checks",
            f"Write at least {LEAST_TESTS}: where the build comes from, and what the paper claims.",
        )
    for test in found:
        if not ast.get_docstring(test):
            yield Complaint(
                f"{folder.module}:{test.lineno}", f"{test.name} has no docstring", "Say in one sentence what it claims."
            )


def asserts_explain(folder: Folder) -> Iterator[Complaint]:
    """Each assert of the test module says what was expected and what came."""
    for node in ast.walk(folder.test_tree):
        if isinstance(node, ast.Assert) and node.msg is None:
            yield Complaint(
                f"{folder.module}:{node.lineno}",
                f"`assert {ast.unparse(node.test)}` has no message",
                "Say what was expected, what came, and which file shows it.",
            )


def seed(folder: Folder) -> Iterator[Complaint]:
    """draw(seed) is there, gives the same for the same seed, and something else for another."""
    drawers = [node for node in folder.test_tree.body if isinstance(node, ast.FunctionDef) and node.name == "draw"]
    if not drawers:
        yield Complaint(folder.module, "it has no draw(seed)", "Write it: it returns the Challenge of a seed.")
        return
    drawn, where = folder.drawn, f"{folder.module}:{drawers[0].lineno}"
    if drawn is None:
        yield Complaint(
            where,
            "draw(1) raises or does not end",
            f"This shows why: python3 -m {drawing.__name__} {folder.path / folder.module} .",
        )
    elif not drawn.varies:
        yield Complaint(
            where,
            "draw gives the same challenge for different seeds",
            "Draw the input from random.Random(seed) or numpy's default_rng(seed), so that no answer can be known.",
        )
    elif not drawn.repeats:
        yield Complaint(
            where,
            "draw gives different challenges for one seed",
            "Take all chance from the seed: no clock, no hash(), no order of a set, no generator without a seed.",
        )


def no_sleep(folder: Folder) -> Iterator[Complaint]:
    """No Python file of the task waits for time to pass."""
    for file, tree in folder.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep":
                yield Complaint(
                    f"{file}:{node.lineno}",
                    "it sleeps, which is too short on a slow machine and wasted on a fast one",
                    "Wait for what you need: a file, a port, the end of a process.",
                )


def no_absolute_time(folder: Folder) -> Iterator[Complaint]:
    """No check compares a time with a constant: machines differ tenfold."""
    remedy = "Compare with a baseline that is measured in the same run on the same machine."
    for node in ast.walk(folder.test_tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {node.module} if isinstance(node, ast.ImportFrom) else {alias.name for alias in node.names}
            for clock in sorted(_CLOCKS & {str(name) for name in names}):
                yield Complaint(f"{folder.module}:{node.lineno}", f"it imports {clock}", remedy)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_is_time(side) for side in sides) and any(_is_limit(side) for side in sides):
                yield Complaint(
                    f"{folder.module}:{node.lineno}", f"`{ast.unparse(node)}` is an absolute time limit", remedy
                )


def _is_time(node: ast.expr) -> bool:
    name = {ast.Name: "id", ast.Attribute: "attr"}.get(type(node))
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and bool(_TIME.search(str(node.slice.value)))
    return name is not None and bool(_TIME.search(getattr(node, name).lower()))


def _is_limit(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and node.value > 0
    return isinstance(node, ast.Name) and node.id.isupper()
