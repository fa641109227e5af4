"""Has the next trial's machine made while the present trial is verified, where there is room for it.

A trial whose first check was set up has its agent and its experiment behind it. Which trial comes next is known to the
scheduler of xdist, and without xdist from the order of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

from pytest_deploybench import taskfile
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.model import Task
from pytest_deploybench.plugin import settings
from pytest_deploybench.plugin.machines import Machines
from pytest_deploybench.trial import lifetime_s

PENDING = pytest.StashKey[Callable[[], Iterable[Sequence[str]]]]()
"""Where a scheduler says which units nobody has begun, in their order: the node ids of each."""


class Ahead:
    """Listens for verified trials and orders machines."""

    def __init__(self, config: pytest.Config, machines: Machines) -> None:
        self._config, self._machines = config, machines
        self._lineup = settings.required(config).lineup
        self._kept = settings.required(config).kept
        self._verified: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        units: dict[str, list[str]] = {}
        for item in session.items:
            units.setdefault(self._lineup.unit(item.nodeid), []).append(item.nodeid)
        if units:  # in this process; a controller of workers collects nothing
            self._config.stash[PENDING] = lambda: [ids for unit, ids in units.items() if unit not in self._verified]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        unit = self._lineup.unit(report.nodeid)
        if report.when == "setup" and report.passed and unit not in self._verified:
            self._verified.add(unit)
            if self._lineup.key(report.nodeid, self._config.rootpath) not in self._kept:
                self._prepare()

    def _prepare(self) -> None:
        pending = self._config.stash.get(PENDING, list)()
        root = self._config.rootpath
        following = next((ids for ids in pending if self._lineup.key(ids[0], root) not in self._kept), None)
        key = self._lineup.key(following[0], root) if following else None
        if following is None or key is None:
            return
        try:
            task = _task((root / following[0].partition("::")[0]).parent)
        except TaskFileError:
            return  # the trial itself will say so
        lifetime = lifetime_s(task, len(following), asks_model=key.model is not None)
        self._machines.prepare(task.machine, lifetime)


@cache  # a controller of many trials would spend more on reading the same files than on anything else
def _task(folder: Path) -> Task:
    return taskfile.load(folder)
