"""`--deploybench-shard=I/N`: this session runs one of N parts of the trials, so that N hosts share a benchmark.

Every process of every host decides on its own and all decide alike: from the selected trials and their expected
durations, which lie in the checkout. Tests that belong to no trial are left alone.
"""

from __future__ import annotations

import pytest

from pytest_deploybench.model import TrialKey
from pytest_deploybench.plugin import settings
from pytest_deploybench.plugin.collection import TaskModule, key_of
from pytest_deploybench.schedule import shards


@pytest.hookimpl(trylast=True)  # after -m and -k, so that the parts are equal shares of what was selected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    shard = settings.required(config).shard
    if shard is None:
        return
    expected = {
        _name(key): module.expected_s(key)
        for item in items
        if (key := key_of(item)) and (module := item.getparent(TaskModule))
    }
    number, count = shard
    own = shards(expected, count)[number - 1]
    elsewhere = [item for item in items if (key := key_of(item)) and _name(key) not in own]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        gone = set(elsewhere)
        items[:] = [item for item in items if item not in gone]


def _name(key: TrialKey) -> str:
    return key.folder.as_posix()
