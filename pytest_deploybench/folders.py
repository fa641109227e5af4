"""Where this user's files lie: under the cache folder what can be made again, under the state folder what cannot."""

from __future__ import annotations

import tempfile
from pathlib import Path

import platformdirs

_NAME = "pytest-deploybench"
_LONGEST_FOR_SOCKETS = 60
"""The address of a Unix socket holds 107 bytes."""


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
