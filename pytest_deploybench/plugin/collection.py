"""Turns a task folder into checks: the task module's own and the shared ones of Layer 1, once for each trial.

- Only `test_<id>.py` beside a `task.yaml` is a task module; every other module is left alone.
- Labels of the task are markers of the module, and all checks of a trial stand together.
- A broken task folder is a collection error of one sentence; the other tasks are collected all the same.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import pytest

from pytest_deploybench import certification, schedule, taskfile
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.layer2.challenge import trial_seed
from pytest_deploybench.model import Task, TrialKey
from pytest_deploybench.plugin import LABELS, layer1_checks, settings
from pytest_deploybench.plugin.lineup import is_task_module
from pytest_deploybench.plugin.resume import KeptCheck

TRIAL_KEY = "trial_key"
"""Name of the parameter from which all fixtures of a trial follow; its value is a `TrialKey`."""

_KNOWN_TASKS = pytest.StashKey[dict[str, Path]]()


def task_module(module_path: Path, parent: pytest.Collector) -> TaskModule | None:
    """The collector of a task's test module; None for another module beside a task.yaml."""
    if not is_task_module(module_path):
        return None
    plugins = parent.config.pluginmanager
    if not plugins.has_plugin(__name__):  # only now, so that projects without a task never pay for the hooks below
        plugins.register(sys.modules[__name__], __name__)
    module: TaskModule = TaskModule.from_parent(parent, path=module_path)
    return module


class TaskModule(pytest.Module):
    """The test module of a task."""

    task: Task
    checks: Counter[TrialKey]
    """How many checks each trial of this task has, selected or not."""

    def expected_s(self, key: TrialKey) -> float:
        """Native seconds that a trial of this task is expected to take."""
        return schedule.expected_s(self.task, certification.observed_s(self._certificate, key.agent))

    @cached_property
    def _certificate(self) -> certification.Certificate | None:
        return certification.read(self.task.folder)

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        self.task = self._load()
        self._mark()
        vars(self.obj).update(layer1_checks.CHECKS)
        items = sorted(super().collect(), key=_own_check)
        self.checks = Counter(key for item in items if (key := self._prepare(item)))
        return [self._kept(item) or item for item in items]

    def _load(self) -> Task:
        try:
            task = taskfile.load(self.path.parent)
        except TaskFileError as error:
            raise self.CollectError(str(error)) from None
        first = self.config.stash.setdefault(_KNOWN_TASKS, {}).setdefault(task.id, task.folder)
        if first != task.folder:
            raise self.CollectError(str(taskfile.duplicate(task.folder, first)))
        return task

    def _mark(self) -> None:
        for label in self.task.labels:
            if label not in LABELS:
                self.config.addinivalue_line("markers", f"{label}: deploybench: tasks by programming language")
            self.add_marker(label)
        self.add_marker(pytest.mark.usefixtures(TRIAL_KEY))
        if self.config.pluginmanager.has_plugin("timeout"):
            self.add_marker(time_limit(self.task.check_budget_s))

    def _kept(self, item: pytest.Item | pytest.Collector) -> KeptCheck | None:
        """What stands for a check of a trial whose verdict an earlier run reached."""
        key = key_of(item)
        kept = settings.required(self.config).kept.get(key) if key else None
        if kept is None or not isinstance(item, pytest.Function):
            return None
        check = kept.check(settings.required(self.config).lineup.check_name(item.nodeid))
        made: KeptCheck = KeptCheck.from_parent(self, name=item.name, original=item, kept=kept, check=check)
        return made

    def _prepare(self, item: pytest.Item | pytest.Collector) -> TrialKey | None:
        """Let the item's reports say to which trial they belong."""
        if not isinstance(item, pytest.Function):
            raise self.CollectError(
                f"{self.path}: {item.name}: the checks of a task are plain functions, so that its module reads as a "
                "specification. Move them out of the class."
            )
        key = key_of(item)
        if key:
            run_seed = settings.required(self.config).run_seed
            item.user_properties += [
                ("task", key.task),
                ("agent", key.agent),
                ("model", key.model or ""),
                ("attempt", key.attempt),
                ("seed", trial_seed(run_seed, key.task, key.attempt)),
                ("run_seed", run_seed),
            ]
        return key


def key_of(item: pytest.Item | pytest.Collector) -> TrialKey | None:
    """The trial of an item; None where it is no check of a task, or nobody was named to deploy."""
    callspec = getattr(item, "callspec", None)
    key: TrialKey | None = callspec.params.get(TRIAL_KEY) if callspec else None
    return key


def time_limit(seconds: float) -> pytest.MarkDecorator:
    """The time limit of one check."""
    return pytest.mark.timeout(seconds, method="signal", func_only=True)


@pytest.hookimpl(tryfirst=True)  # so that the trial comes first in the ids, whatever a task parametrises
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.definition.getparent(TaskModule)
    chosen = settings.of(metafunc.config)
    if module is None or chosen is None:
        return
    keys = chosen.lineup.keys(module.task.id)
    metafunc.parametrize(TRIAL_KEY, list(keys.values()), ids=list(keys), scope="module")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Kept trials come last: nobody waits for them, and -x must not stop at a failure that was known before.
    items.sort(key=lambda item: isinstance(item, KeptCheck))
    if hasattr(config, "workerinput"):
        # The longest trials start first, so that none of them is left over when the workers run out of others.
        items.sort(key=_expected_s, reverse=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    # Under xdist only the controller can end the session with one clear message; see the plugin's door.
    if not hasattr(session.config, "workerinput") and any(item.getparent(TaskModule) for item in session.items):
        settings.require_lineup(session.config)


def _own_check(item: pytest.Item | pytest.Collector) -> bool:
    """Sorts Layer 1 first: what it finds is mostly the cause of what the task's own checks then miss."""
    return getattr(item, "originalname", None) not in layer1_checks.CHECKS


def _expected_s(item: pytest.Item) -> float:
    module, key = item.getparent(TaskModule), key_of(item)
    return module.expected_s(key) if module and key and not isinstance(item, KeptCheck) else 0.0
