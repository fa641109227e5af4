"""Ends a trial with its last check.

All fixtures of a trial follow from `deployment`, whose scope is the task's module. Where the next trial is of the same
task, as with a second agent, pytest would end them only in that one's setup: the machine would be held longer than
needed, what ending it does (such as keeping it) would come too late for the record, and an error of it would be laid at
the next trial's door.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest

from pytest_deploybench.plugin.collection import TaskModule, key_of

_ROOT = "deployment"
"""The fixture that the others of a trial follow from."""

_ENDINGS = pytest.StashKey[Callable[[], None]]()


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    module = request.node.getparent(TaskModule)
    if fixturedef.argname == _ROOT and module:
        module.stash[_ENDINGS] = partial(fixturedef.finish, request)  # type: ignore[arg-type] # a SubRequest, not exported


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    try:
        yield
    finally:
        module, key = item.getparent(TaskModule), key_of(item)
        if module and key and not (nextitem and key_of(nextitem) == key):
            module.stash.get(_ENDINGS, lambda: None)()
