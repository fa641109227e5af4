"""The pytest plugin: the only package that imports pytest.

    options     the command line                 settings       the options as one value
    lineup      who competes; ids of trials      session        which room takes part in which process
    collection  task folder -> checks            layer1_checks  the checks that all tasks share
    fixtures    task, machine, experiment, ...   guard          the time limit of each check
    ending      a trial ends with its last check
    scheduling  one trial, one worker            machines       the fleet's life within the session
    models      the gateway's life within it, and who asks through it
    ahead       the next machine, made early     again          an earlier run, verified again
    sharding    one part of the trials           resume         verdicts of an earlier run, kept
    recording   reports -> records               folding        the pure part of it
    output      header, lines, summary           listing        the table of tasks
    gates       what CI asks for; exit status    progress       what the trials are at, while they run
    status      a running trial's file           board, screen  what of it is known, and where it is shown

This file is the door. Every pytest run on this Python passes it, most of them in projects without a task, so it imports
pytest only, and a room is entered when somebody is named to deploy (`pytest_configure`) or a task is collected.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_deploybench.plugin.options import pytest_addoption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdist.workermanage import WorkerController

__all__ = [
    "pytest_addoption",
    "pytest_cmdline_main",
    "pytest_configure",
    "pytest_pycollect_makemodule",
    "pytest_xdist_node_collection_finished",
]

TASK_FILE = "task.yaml"

LABELS = {
    "ai": "AI and machine learning",
    "systems": "systems",
    "scientific": "scientific computing",
    "easy": "easy deployments",
    "medium": "deployments of medium difficulty",
    "hard": "hard deployments",
    "gpu": "tasks that need a GPU",
    "qemu": "tasks that boot a custom Linux kernel in QEMU",
    "legacy": "papers of 2011 to 2018 whose source needs repair against modern toolchains",
    "smoke": "a small choice of tasks that is quick to run",
}
"""Markers of tasks beside `lang_*`, which are registered as languages come up."""

ASKS_FOR_TRIALS = ("agent", "model", "command", "reverify", "resume", "min_pass_rate", "max_invalid_rate", "expect")
"""Options of which one is enough to ask for trials."""


def pytest_configure(config: pytest.Config) -> None:
    for label, meaning in LABELS.items():
        config.addinivalue_line("markers", f"{label}: deploybench: {meaning}")
    if any(config.getoption(f"deploybench_{name}") not in (None, []) for name in ASKS_FOR_TRIALS):
        from pytest_deploybench.plugin import session

        session.begin(config)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if not config.getoption("deploybench_list"):
        return None
    from pytest_deploybench.plugin import listing

    return listing.show(config)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if not (module_path.parent / TASK_FILE).is_file():
        return None
    from pytest_deploybench.plugin import collection

    return collection.task_module(module_path, parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: WorkerController, ids: Sequence[str]) -> None:
    # Only workers collect under xdist, but only the controller can end the session with one clear message.
    modules = {nodeid.partition("::")[0] for nodeid in ids}
    if any((node.config.rootpath / module).with_name(TASK_FILE).is_file() for module in modules):
        from pytest_deploybench.plugin import settings

        settings.require_lineup(node.config)
