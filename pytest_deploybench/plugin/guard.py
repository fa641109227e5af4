"""Gives every check a time limit, through pytest-timeout: a check that hangs is FAILED, and the machine still goes.

Only the check itself is timed, by a signal: agent and experiment run in fixtures and have budgets of their own, and the
method `thread` would end the whole process. Limits are for native speed and grow with the machine's speed factor, which
is known only when the machine is there.

It also tells whose fault it is when the machine goes away under a check: a machine that still runs, or that switched
itself off, was broken by the agent.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_deploybench.errors import MachineLostError
from pytest_deploybench.model import MachineState
from pytest_deploybench.plugin import machines, recording
from pytest_deploybench.plugin.collection import TaskModule, time_limit


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before pytest-timeout, which reads the marker at the same moment
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    module, diary = item.getparent(TaskModule), recording.diary_of(item)
    if module is None or diary is None:
        return (yield)
    if diary.facts is not None and item.config.pluginmanager.has_plugin("timeout"):
        item.add_marker(time_limit(module.task.check_budget_s * diary.facts.speed_factor), append=False)
    try:
        return (yield)
    except MachineLostError as error:
        if diary.machine_id is None or _lost(item.config, diary.machine_id):
            raise
        message = f"the agent left a machine that breaks off while it is checked: {error}"
        raise pytest.fail.Exception(message, pytrace=False) from None


def _lost(config: pytest.Config, machine_id: str) -> bool:
    with machines.client(config) as fleet:
        return fleet.state(machine_id) is MachineState.LOST
