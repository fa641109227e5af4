"""Shows what the trials are at while they run: a region on a terminal, a line a minute in a log, a line a verdict.

It lives in the process that owns the machines.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_deploybench.model import TrialKey, Verdict
from pytest_deploybench.plugin.board import Trials, shown
from pytest_deploybench.plugin.screen import Screen
from pytest_deploybench.reports.progress import minute_line, region, verdict_line

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from pytest_deploybench.plugin.machines import Machines
    from pytest_deploybench.plugin.recording import Recorder

LOG_EVERY_S = 60.0
_DRAW_EVERY_S = 1.0
_SPARING = 20
"""With hundreds of trials a look at all of them takes a while: so many times as long passes until the next."""
_SETTLE_S = 0.05
"""For pytest to print what belongs together, before the region is drawn again."""
_FAREWELL_S = 5.0
_COLOURS = {Verdict.PASSED: "green", Verdict.FAILED: "red", Verdict.INVALID: "yellow"}

_SCREEN = pytest.StashKey[Screen]()


@contextmanager
def visible(config: pytest.Config) -> Iterator[None]:
    """Let progress be shown while a trial runs in this process: nothing is captured for as long as the block lasts."""
    screen = config.stash.get(_SCREEN, None)
    if screen is None:
        yield
        return
    screen.open()
    try:
        yield
    finally:
        screen.shut()


class Progress:
    """Follows the trials of a session and shows them, unless the session has no terminal reporter."""

    def __init__(self, config: pytest.Config, recorder: Recorder, machines: Machines) -> None:
        self._config, self._records = config, recorder.records
        self._trials = Trials(config, recorder, machines)
        self._announced: set[TrialKey] = set()
        self._screen: Screen | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._trials.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._trials.expect(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: WorkerController) -> None:
        self._trials.workers.add(node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        self._trials.workers.discard(node.gateway.id)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if key := self._trials.key(nodeid):
            self._trials.begun.setdefault(key, time.time())
            self._start()

    @pytest.hookimpl(trylast=True)  # after pytest's own letters and percentages
    def pytest_runtest_logfinish(self) -> None:
        self._announce()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in ("setup", "call", "teardown"):  # xdist's word of a crash, after which nothing follows
            self._announce()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._stop()

    def pytest_unconfigure(self) -> None:
        self._stop()  # for the sessions that end in another way

    def _announce(self) -> None:
        """Print the verdicts that are new."""
        for key in [key for key in self._trials.begun if key in self._records and key not in self._announced]:
            self._announced.add(key)
            record = self._records[key]
            if self._screen and record.resumed_from is None:
                colour = {_COLOURS[record.verdict]: True}
                self._screen.line(f"deploybench: {verdict_line(record, shown(key))}", **colour)

    def _start(self) -> None:
        if self._screen is None and self._config.pluginmanager.has_plugin("terminalreporter"):
            self._screen = self._config.stash[_SCREEN] = Screen(self._config, captured=not self._trials.workers)
            show = self._draw if self._screen.live else self._log
            self._thread = threading.Thread(target=show, args=(self._screen,), name="progress", daemon=True)
            self._thread.start()

    def _stop(self) -> None:
        self._over.set()
        if self._screen:
            self._screen.close()
        if self._thread and self._thread.is_alive():  # it is not where the session was stopped while starting it
            self._thread.join(_FAREWELL_S)

    def _draw(self, screen: Screen) -> None:
        """The thread on a terminal."""
        due, lines = 0.0, [""]
        while not self._over.is_set():
            if (start := time.monotonic()) >= due:
                lines = region(self._trials.board(), *screen.size)
                due = start + max(_DRAW_EVERY_S, _SPARING * (time.monotonic() - start))
            screen.show(lines)
            screen.stirred.wait(max(0.0, due - time.monotonic()))
            self._over.wait(_SETTLE_S)
            screen.stirred.clear()

    def _log(self, screen: Screen) -> None:
        """The thread where there is none."""
        number, pause = 0, LOG_EVERY_S
        while not self._over.wait(pause):
            board = self._trials.board()
            if not board.running or screen.aside(f"deploybench: {minute_line(board, number)}"):
                number, pause = number + 1, LOG_EVERY_S
            else:
                pause = _DRAW_EVERY_S  # pytest is printing, or captures: again when it has ended
