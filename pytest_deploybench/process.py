"""A process that owns something beyond its own life, and how a later process finds out that it is dead."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

_SAME_START_S = 2.0
"""The kernel rounds its boot time to seconds, and it may move by one with the clock."""


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one with the same pid by when it started."""

    pid: int
    started: float
    """Seconds between the boot of this computer and the start of the process: no clock change moves it."""

    @classmethod
    def me(cls) -> Self:
        """This process."""
        return cls(os.getpid(), _start(os.getpid()) or 0.0)

    def is_dead(self) -> bool:
        """True when no living process is this one."""
        started = _start(self.pid)
        return started is None or abs(started - self.started) > _SAME_START_S


def _start(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time() - psutil.boot_time()
    except psutil.Error:
        return None
