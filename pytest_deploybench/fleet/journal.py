"""Remembers on disk which machines may exist, so that a later session can destroy what a killed one left.

Promises:
- `write` returns only when the entry would survive a power cut; a reader sees a whole entry or none;
- one file a machine, named after it, in one folder for all sessions of the user;
- an owner counts as dead only when no living process has both its pid and its start time;
- a file that cannot be understood becomes one line for people and never hides the other entries.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_deploybench.model import MachineSize
from pytest_deploybench.process import Process

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from pydantic import TypeAdapter

_MACHINE_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_SUFFIX = ".json"
_UNFINISHED = ".unfinished"
_UNFINISHED_IS_DEAD_S = 3600.0
"""A write takes milliseconds; what lies around this long belongs to a process that died in it, before any create."""


@dataclass(frozen=True)
class Entry:
    """One machine that exists, may exist, or is about to."""

    machine_id: str
    provider: str
    owner: Process
    run_id: str
    purpose: str
    size: MachineSize
    created_at: str
    """When the creation was decided, ISO 8601 in UTC."""
    expires_at: str
    """When it ends by itself, whatever becomes of us; later where the machine is slower than native."""

    def __str__(self) -> str:
        what = f"{self.purpose}, " if self.purpose else ""
        when = self.created_at[:16].replace("T", " ")
        return f"{self.machine_id} ({what}made {when} UTC by run {self.run_id})"


class Journal:
    """The folder of entries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, machine_id: str) -> Path:
        """The file of one machine."""
        return self.folder / f"{machine_id}{_SUFFIX}"

    def write(self, entry: Entry) -> None:
        """Put an entry on disk for good.

        Raises:
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.folder / f"{entry.machine_id}{_UNFINISHED}"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(asdict(entry), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path(entry.machine_id))
        self._sync()

    def remove(self, machine_id: str) -> None:
        """Forget a machine that is known to be gone. An unknown one is fine.

        Raises:
            OSError: the folder cannot be written.
        """
        self.path(machine_id).unlink(missing_ok=True)
        self._sync()

    def read(self) -> tuple[list[Entry], list[str]]:
        """All entries in order of their creation, and one line for each file that is not an entry."""
        entries: list[Entry] = []
        troubles: list[str] = []
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            try:
                entries.append(_parse(path))
            except FileNotFoundError:
                continue  # its owner destroyed the machine just now
            except (OSError, ValueError) as error:
                troubles.append(
                    f"the machine journal has an unreadable file {path}: {error}. "
                    f"Remove it once no machine {path.stem} exists any more"
                )
        return sorted(entries, key=lambda entry: entry.created_at), troubles

    def sweep_lock(self, patience_s: float) -> BaseFileLock:
        """Held by the one session that sweeps; entering raises `filelock.Timeout` when another takes too long."""
        from filelock import FileLock

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock(self.folder / ".sweep.lock", timeout=patience_s)

    def drop_unfinished(self) -> None:
        """Remove what processes left that died while they wrote."""
        for path in self.folder.glob(f"*{_UNFINISHED}"):
            with suppress(FileNotFoundError):  # finished just now
                if time.time() - path.stat().st_mtime > _UNFINISHED_IS_DEAD_S:
                    path.unlink()

    def _sync(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _parse(path: Path) -> Entry:
    from pydantic import ValidationError

    try:
        entry = _adapter().validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{key}: {first['msg']}" if key else first["msg"]) from error
    if entry.machine_id != path.stem or not _MACHINE_ID.fullmatch(entry.machine_id):
        raise ValueError(f"machine_id: {entry.machine_id!r} is not the machine after which the file is named")
    return entry


@cache
def _adapter() -> TypeAdapter[Entry]:
    from pydantic import TypeAdapter

    return TypeAdapter(Entry)
