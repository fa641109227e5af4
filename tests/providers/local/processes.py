"""Waits for the end of processes that are not our children, without sleeping."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class Watched:
    """Handles on the keeper and the commands of a machine, taken while they live: no reused number fools a test."""

    def __init__(self, handles: dict[str, int]) -> None:
        self._handles = handles

    @classmethod
    def everything(cls, folder: Path) -> Watched:
        pids = {"keeper": keeper_pid(folder), **command_pids(folder)}
        return cls({name: os.pidfd_open(pid) for name, pid in pids.items()})

    def of(self, *names: str) -> Watched:
        """Only some of them."""
        return Watched({name: self._handles[name] for name in names})

    def ended(self, within_s: float = 20.0) -> bool:
        """Whether all of them end within the time."""
        return all(_readable(handle, within_s) for handle in self._handles.values())

    def close(self) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def alive(self) -> bool:
        """Whether all of them still run."""
        return not any(_readable(handle, 0.0) for handle in self._handles.values())


def eventually(look: Callable[[], T | None], within_s: float = 20.0) -> T | None:
    """What `look` gives as soon as it gives something; its last answer when the time is over."""
    deadline = time.monotonic() + within_s
    while (found := look()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def _readable(handle: int, within_s: float) -> bool:
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


def open_descriptors() -> int:
    """How many descriptors this process holds."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def keeper_pid(folder: Path) -> int:
    return int(json.loads((folder / "keeper.json").read_text())["keeper"]["pid"])


def command_pids(folder: Path) -> dict[str, int]:
    commands = json.loads((folder / "keeper.json").read_text())["commands"]
    return {name: int(entry["pid"]) for name, entry in commands.items()}
