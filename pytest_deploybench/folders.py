"""Where this user's files lie: under the cache folder what can be made again, under the state folder what cannot."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import platformdirs

_NAME = "pytest-deploybench"
_LONGEST_FOR_SOCKETS = 60
"""The address of a Unix socket holds 107 bytes."""
_YOUNG_S = 60.0
"""A folder this young may not be locked yet."""


def cache() -> Path:
    """Images, templates, sources: large, and made again when they are gone."""
    return platformdirs.user_cache_path(_NAME)


def sources() -> Path:
    """The store of pinned source archives."""
    return cache() / "sources"


def state() -> Path:
    """What names machines and must outlive a session."""
    return platformdirs.user_state_path(_NAME)


def journal() -> Path:
    """Where all sessions of this user keep note of their machines."""
    return state() / "journal"


def kept_machines() -> Path:
    """The shelf of kept machines."""
    return state() / "kept"


def for_sockets() -> Path:
    """Where private folders with sockets are made: the usual place for temporary files, unless its name is too long."""
    usual = Path(tempfile.gettempdir())
    short = Path("/tmp")  # noqa: S108 (only private folders, made by mkdtemp, lie in it)
    return short if len(str(usual)) > _LONGEST_FOR_SOCKETS else usual


class PrivateFolder:
    """A short-lived folder that only this user can enter, for sockets and keys.

    It is locked for as long as its maker lives, which systemd's cleaning of temporary files respects. Where the maker
    was killed, the next one of the same kind removes it.
    """

    def __init__(self, prefix: str) -> None:
        """Make it.

        Args:
            prefix: of its name; says the kind.
        """
        _remove_deserted(prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=for_sockets()))
        self._lock: int | None = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def remove(self) -> None:
        """Remove it with everything in it. May be called again."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def _remove_deserted(prefix: str) -> None:
    for folder in for_sockets().glob(f"{prefix}*"):
        with suppress(OSError):  # in use, just removed by its maker, or another user's
            status = folder.stat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > _YOUNG_S:
                _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(lock)
