"""Which host is whose: one small file for each host that is not fresh, in a folder that all sessions of the user share.

Promises:
- no file means fresh and free; whatever ends a process, a host that may have been touched has its file;
- a file changes only under the lock of its host, as a whole, and survives a power cut;
- the lock is the kernel's: it goes when its holder dies, except that a reset command inherits it, so that no second
  reset begins while an orphaned one still works on the host;
- an owner counts as dead only when no living process has both its pid and its start time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_deploybench.errors import InfraError
from pytest_deploybench.process import Process

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_SUFFIX = ".json"
_LOOK_AGAIN_S = 0.1


class Standing(StrEnum):
    """What keeps a host from being free."""

    CLAIMED = "claimed"
    """Being looked at by its owner; nobody else has touched it."""
    LEASED = "leased"
    """In the hands of a trial."""
    USED = "used"
    """Given back, and there is no way to make it fresh."""
    BROKEN = "broken"
    """Given back, and its reset failed."""


@dataclass(frozen=True)
class Record:
    """Why a host is not free."""

    address: str
    name: str
    inventory: str
    """File that describes the host, so that a process without it can still make the host fresh."""
    machine_id: str
    purpose: str
    """Run and trial, for people."""
    owner: Process
    standing: Standing
    since: str
    """ISO 8601 in UTC."""
    why: str = ""
    """What went wrong with a broken host."""

    def in_use(self) -> bool:
        """Whether a living process holds it."""
        return self.standing in (Standing.CLAIMED, Standing.LEASED) and not self.owner.is_dead()


class BusyError(InfraError):
    """Another process works on the host's record."""


class UnreadableError(InfraError):
    """A host's record cannot be understood, so nothing is known of the host."""


class Leases:
    """The folder of records."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, address: str) -> Path:
        """The record of one host."""
        readable = re.sub(r"[^a-z0-9.-]", "_", address)[:100]
        return self._folder / f"{readable}-{hashlib.sha256(address.encode()).hexdigest()[:8]}{_SUFFIX}"

    def log(self, address: str) -> Path:
        """What the host's last reset printed."""
        return self.path(address).with_suffix(".reset.log")

    def read(self, address: str) -> Record | None:
        """Why the host is not free; None when it is.

        Raises:
            UnreadableError: its record cannot be understood.
        """
        path = self.path(address)
        try:
            return _adapter().validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is damaged"
            raise UnreadableError(
                f"its record {path} cannot be read ({reason}), so whether it is fresh is not known. "
                "Reinstall the host, then remove that file"
            ) from None

    def find(self, machine_id: str) -> Record | None:
        """The host that is, or was last, this machine."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            try:
                record = _adapter().validate_json(path.read_bytes())
            except (OSError, ValueError):
                continue  # gone just now, or unreadable: its host is out of the pool, which `read` says
            if record.machine_id == machine_id:
                return record
        return None

    def write(self, record: Record) -> None:
        """Put a record on disk for good. Only under the host's lock.

        Raises:
            InfraError: the folder cannot be written.
        """
        path = self.path(record.address)
        unfinished = path.with_suffix(".unfinished")
        with self._writing():
            with unfinished.open("w", encoding="utf-8") as file:
                json.dump(asdict(record), file, indent=1, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            self._sync()

    def erase(self, address: str) -> None:
        """The host is fresh and free. Only under its lock.

        Raises:
            InfraError: the folder cannot be written.
        """
        with self._writing():
            self.path(address).unlink(missing_ok=True)
            self._sync()

    @contextmanager
    def lock(self, address: str, patience_s: float) -> Iterator[int]:
        """Keep everybody else from the host; gives a descriptor whose inheritors hold the lock too, if we die.

        Raises:
            BusyError: another holds it for longer than `patience_s` seconds.
            InfraError: the folder cannot be written.
        """
        with self._writing():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self.path(address).with_suffix(".lock").open("a")
        deadline = time.monotonic() + patience_s
        with file:  # not `filelock`: no child can inherit its descriptor
            while not _locked(file.fileno()):
                if time.monotonic() >= deadline:
                    raise BusyError(f"another process works on {address}")
                time.sleep(_LOOK_AGAIN_S)
            try:
                yield file.fileno()
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # also for a process that a reset left in the background

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InfraError(
                f"the leases of own hosts in {self._folder} cannot be written: {error.strerror}. No host is used "
                "without a record there; make the folder writable and see that its disk is not full"
            ) from error

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@cache
def _adapter() -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)
