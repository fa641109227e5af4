"""Reads what trials left to read, for the HTML report.

Promises a reviewer can check: only files with the names below, in the folder that a trial's key names, are opened; no
symbolic link is followed on the way there, since a run may come from anybody; a file of any size takes bounded memory;
what cannot be read costs one sentence.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pytest_deploybench.commands.gathering import Gathered
from pytest_deploybench.model import TrialKey, TrialRecord
from pytest_deploybench.redact import printable
from pytest_deploybench.reports.html import Evidence, Line, Log, Trajectory, read_trajectory

LINES_KEPT = 1500
"""Of a log, at its beginning, at its end, and around each finding; a report shows far fewer."""
_AROUND = 60
_LINE_LIMIT_BYTES = 4000
_TRAJECTORY_LIMIT_BYTES = 30_000_000


def read_evidence(gathered: Gathered) -> dict[TrialKey, Evidence]:
    """What the trials of these runs left."""
    return {trial.key: _read(gathered.evidence[trial.key], trial) for trial in gathered.run.trials}


def _read(folder: Path, trial: TrialRecord) -> Evidence:
    problems: list[str] = []
    place = _Place(folder, trial.key, problems)
    traces = place.log("containers.txt")
    offset = traces.total if traces else 0
    return Evidence(
        trajectory=place.trajectory("trajectory.json"),
        agent_log=place.log("agent.log"),
        experiment_log=place.log("experiment.log", [finding.line_number - offset for finding in trial.findings]),
        runbook=place.log("RUNBOOK.md"),
        traces=offset,
        problems=tuple(map(printable, problems)),
    )


class _Place:
    """The folder of one trial."""

    def __init__(self, folder: Path, key: TrialKey, problems: list[str]) -> None:
        self._problems = problems
        own = key.folder.parts
        self._root = Path(*folder.parts[: -len(own)])
        self._steps = own
        if folder.parts[-len(own) :] != own or ".." in own:
            problems.append(f"{folder} is not where the evidence of this trial lies, so nothing there was read")
            self._steps = ()

    def log(self, name: str, marks: Collection[int] = ()) -> Log | None:
        """The log of this name, or the parts of it that are worth keeping; None where there is none."""
        with self._open(name) as file:
            return _log(file, marks) if file else None

    def trajectory(self, name: str) -> Trajectory | None:
        """The trajectory of this name; None where there is none."""
        with self._open(name) as file:
            if file is None:
                return None
            text = file.read(_TRAJECTORY_LIMIT_BYTES + 1)
        found = read_trajectory(text.decode("utf-8", "replace")) if len(text) <= _TRAJECTORY_LIMIT_BYTES else None
        if found is None:
            why = "is too long to be shown" if len(text) > _TRAJECTORY_LIMIT_BYTES else "is damaged or was cut off"
            self._problems.append(f"{name} {why}; the agent's log is shown instead")
        return found

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes] | None]:
        """The file, or None where there is none or it is not to be read."""
        if not self._steps:
            yield None
            return
        try:
            file = _open_beneath(self._root, (*self._steps, name))
        except FileNotFoundError:
            yield None
        except OSError as error:
            link = error.errno in (errno.ELOOP, errno.ENOTDIR)
            why = "a symbolic link is on the way to it, and none is followed" if link else error.strerror
            self._problems.append(f"{name} was not read: {why}")
            yield None
        else:
            with file:
                yield file


def _open_beneath(root: Path, steps: tuple[str, ...]) -> IO[bytes]:
    """Open a regular file below `root` without following any link on the way.

    Raises:
        OSError: there is none, or a link is on the way.
    """
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for step in steps[:-1]:
            below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        # Without waiting: a named pipe would have us wait for ever.
        found = os.open(steps[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is no file")
    return os.fdopen(found, "rb")


def _log(file: IO[bytes], marks: Collection[int]) -> Log:
    wanted = {number for mark in marks for number in range(mark - _AROUND, mark + _AROUND + 1)}
    kept: list[Line] = []
    end: deque[Line] = deque(maxlen=LINES_KEPT)
    total = 0
    for total, raw in enumerate(_lines(file), 1):
        line = Line(total, raw.decode("utf-8", "replace").rstrip("\r\n"))
        if total <= LINES_KEPT or total in wanted:
            kept.append(line)
        else:
            end.append(line)
    return Log(tuple(sorted([*kept, *end], key=lambda line: line.number)), total)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file, each cut off at a limit."""
    while line := file.readline(_LINE_LIMIT_BYTES):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_LINE_LIMIT_BYTES)
        yield line
