"""Where this user's files lie: under the cache folder what can be made again, under the state folder what cannot."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import platformdirs

_NAME = "pytest-deploybench"
_LONGEST_FOR_SOCKETS = 60
"""The address of a Unix socket holds 107 bytes."""
_YOUNG_S = 60.0
"""A folder this young may not have its socket yet."""


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


def remove_deserted(prefix: str, name: str) -> None:
    """Remove private folders of this user at whose socket nobody listens any more: their owner was killed.

    Args:
        prefix: how the folders' names in `for_sockets()` begin.
        name: of the socket in each.
    """
    for folder in for_sockets().glob(f"{prefix}*"):
        with suppress(OSError):  # just removed by its owner, or another user's
            status = folder.stat()
            if (
                status.st_uid == os.getuid()
                and time.time() - status.st_mtime > _YOUNG_S
                and _is_deserted(folder / name)
            ):
                shutil.rmtree(folder)


def _is_deserted(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(address))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
    return False
