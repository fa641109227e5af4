"""Gives every check a time limit, through pytest-timeout: a check that hangs is FAILED, and the machine still goes.

Only the check itself is timed, by a signal: agent and experiment run in fixtures and have budgets of their own, and the
method `thread` would end the whole process. Limits are for native speed and grow with the machine's speed factor, which
is known only when the machine is there.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_deploybench.plugin import recording
from pytest_deploybench.plugin.collection import TaskModule, time_limit


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before pytest-timeout, which reads the marker at the same moment
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    module = item.getparent(TaskModule)
    facts = (diary := recording.diary_of(item)) and diary.facts
    if module is not None and facts is not None and item.config.pluginmanager.has_plugin("timeout"):
        item.add_marker(time_limit(module.task.check_budget_s * facts.speed_factor), append=False)
    return (yield)
