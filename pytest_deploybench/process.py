"""Processes that outlive others, or must not: how one finds out that another is dead, and how one dies with another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
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


def dying_with_us(command: Sequence[str]) -> list[str]:
    """The command for a child that the kernel kills when the thread that starts it ends, even by SIGKILL.

    Without util-linux's `setpriv` it is the command as it was.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig=KILL", "--", *command] if setpriv else list(command)


def _start(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time() - psutil.boot_time()
    except psutil.Error:
        return None
