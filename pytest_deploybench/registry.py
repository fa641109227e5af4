"""Finds providers and agents by name through entry points: one path for ours and for foreign ones."""

from __future__ import annotations

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pytest_deploybench.errors import UsageError

PROVIDERS = "pytest_deploybench.providers"
AGENTS = "pytest_deploybench.agents"


def names(group: str) -> list[str]:
    """All names registered in an entry-point group, sorted."""
    return sorted(point.name for point in entry_points(group=group))


def load(group: str, name: str) -> Any:
    """The class registered under `name`.

    Raises:
        UsageError: no such name; the message lists the known ones and the nearest.
    """
    return _find(group, name).load()


def require(group: str, name: str) -> None:
    """Make sure that `name` is registered, without importing anything.

    Raises:
        UsageError: as `load`.
    """
    _find(group, name)


def _find(group: str, name: str) -> EntryPoint:
    for point in entry_points(group=group):
        if point.name == name:
            return point
    kind = group.rpartition(".")[2].removesuffix("s")
    known = names(group)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(
        f"unknown {kind} {name!r}.{hint} Known: {', '.join(known)}. "
        "A newly added entry point is seen only after reinstalling the package that declares it (pip install -e .)."
    )
