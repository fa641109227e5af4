"""What is known of a session's trials at one moment: which have begun, what they are at, how long the rest will take.

It comes from three places: pytest's reports (what has begun and what is over), the status files of the running trials
(`status`), and the fleet (who waits for a machine).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_deploybench import certification, schedule, taskfile
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.model import Task, TrialKey, TrialRecord, Verdict
from pytest_deploybench.plugin import settings, status
from pytest_deploybench.reports.progress import AT_WORK, Board, Expected, Running, paced, time_left

if TYPE_CHECKING:
    from pytest_deploybench.plugin.machines import Machines
    from pytest_deploybench.plugin.recording import Recorder


class Trials:
    """The trials of a session. Filled in pytest's thread; `board` is for another, and copies what may change."""

    def __init__(self, config: pytest.Config, recorder: Recorder, machines: Machines) -> None:
        self.begun: dict[TrialKey, float] = {}
        """When each one began, in seconds since the epoch."""
        self.workers: set[str] = set()
        """xdist's, by name; none where this process runs the trials itself."""
        self._root, self._machines, self._settings = config.rootpath, machines, settings.required(config)
        self._records = recorder.records
        self._folders: dict[TrialKey, Path] = {}
        """The task's folder of each trial that was collected."""
        self._factor: float | None = None
        """The speed factor of the machine of which was heard last."""

    def key(self, nodeid: str) -> TrialKey | None:
        """The trial to which a test belongs."""
        return self._settings.lineup.key(nodeid, self._root)

    def expect(self, nodeids: Iterable[str]) -> None:
        """Take note of what was collected."""
        for nodeid in nodeids:
            if key := self.key(nodeid):
                self._folders[key] = (self._root / nodeid.partition("::")[0]).parent

    def board(self) -> Board:
        """The run at this moment."""
        records, begun = dict(self._records), dict(self.begun)
        queued = set(self._machines.queued())
        present = {key: self._running(key, since, queued) for key, since in begun.items() if key not in records}
        pace = self._pace(records)
        running = [replace(trial, expected=self._expected(key, pace)) for key, trial in present.items() if trial]
        waiting = [key for key in list(self._folders) if key not in begun and key not in records]
        return Board(
            verdicts=Counter(record.verdict for record in records.values()),
            running=running,
            waiting=len(waiting),
            left=time_left(running, [self._expected(key, pace) for key in waiting], self._hands(running)),
        )

    def _running(self, key: TrialKey, since: float, queued: Collection[str]) -> Running | None:
        """A trial that has begun; None where the process that ran it is gone, so that it leaves no ghost."""
        folder, now, name = self._settings.run_dir / key.folder, time.time(), key.folder.as_posix()
        found = status.read(folder)
        if found is None:
            return Running(shown(key), seconds=now - since, total_s=now - since)
        if found.writer.is_dead():
            return None
        self._factor = found.speed_factor or self._factor
        planned = _planned(self._folders[key], key.agent) if key in self._folders else None
        return Running(
            shown(key),
            phase=found.phase,
            queued=name in queued,
            seconds=max(0.0, now - found.since - found.waited_s),
            total_s=now - since,
            budget_s=planned[0].agent_budget_s * found.speed_factor if planned and found.speed_factor else None,
            tokens=found.tokens,
            doing=status.last_words(folder) if found.phase == AT_WORK else "",
            tries=found.tries,
        )

    def _hands(self, running: Collection[Running]) -> int:
        """How many trials run at once: as many as workers, or, where some wait for a machine, as many as have one."""
        having = sum(not trial.queued for trial in running)
        return having if having < len(running) else len(self.workers) or 1

    def _expected(self, key: TrialKey, pace: Mapping[str, list[tuple[float, float]]]) -> Expected | None:
        """How long a trial takes on these machines; None where no task, or no machine yet, tells."""
        planned = _planned(self._folders[key], key.agent) if key in self._folders else None
        if planned is None or self._factor is None:
            return None
        expected = Expected(planned[1].seconds * self._factor, planned[1].observed)
        return expected if expected.observed else paced(expected, pace.get(key.contestant, ()))

    def _pace(self, records: Mapping[TrialKey, TrialRecord]) -> dict[str, list[tuple[float, float]]]:
        """Seconds expected and seconds taken, of each contestant's trials that this session has judged."""
        pace: dict[str, list[tuple[float, float]]] = {}
        for key, record in records.items():
            planned = _planned(self._folders[key], key.agent) if key in self._folders else None
            judged = record.verdict is not Verdict.INVALID and record.resumed_from is None
            if planned and judged and record.machine:
                self._factor = self._factor or record.machine.speed_factor
                taken = record.durations.get("total", 0.0)
                pace.setdefault(key.contestant, []).append((planned[1].seconds * record.machine.speed_factor, taken))
        return pace


def shown(key: TrialKey) -> str:
    """The name of a trial for people, short enough for a line."""
    attempt = f" attempt {key.attempt}" if key.attempt > 1 else ""
    return f"{key.task} {key.contestant}{attempt}"


@cache
def _planned(folder: Path, agent: str) -> tuple[Task, Expected] | None:
    """A task, and the native seconds that a trial of it is expected to take."""
    try:
        task = taskfile.load(folder)
    except TaskFileError:
        return None  # the trial itself says so
    observed = certification.observed_s(certification.read(folder), agent)
    return task, Expected(schedule.expected_s(task, observed), observed is not None)
