"""How trials are spread over xdist workers: one trial is one unit on one worker, and a worker asks for one at a time.

Workers collect the longest trials first (`collection`), and units are handed out in the order of collection.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from pytest_deploybench.plugin import ahead, settings


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TrialScheduling:
    return TrialScheduling(config, log)


class TrialScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not marked as typed
    """Keeps the checks of a trial together, whatever `--dist` says: they share one machine."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._lineup = settings.required(config).lineup
        config.stash[ahead.PENDING] = lambda: [list(unit) for unit in self.workqueue.values()]

    def _split_scope(self, nodeid: str) -> str:
        return self._lineup.unit(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        # Every worker sends all node ids anew, and hundreds of copies would be most of the controller's memory.
        known = next(iter(self.registered_collections.values()), collection)
        super().add_node_collection(node, known if known == collection else collection)

    def _reschedule(self, node: WorkerController) -> None:
        # A worker keeps its last test until it knows the next one. Only then it gets the next trial: handed out
        # earlier, it would wait behind a long trial while another worker is idle.
        if self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        # The machine of a crashed worker's trial is gone. The rest of its checks would silently become another trial,
        # so they are dropped; only what has not begun goes to the other workers.
        work = self.assigned_work[node]
        crashed = next((nodeid for unit in work.values() for nodeid, done in unit.items() if not done), None)
        self.assigned_work[node] = {
            scope: unit
            for scope, unit in work.items()
            if False in unit.values() and (crashed is None or scope != self._split_scope(crashed))
        }
        super().remove_node(node)
        return crashed
