"""Where this user's files lie: under the cache folder what can be made again, under the state folder what cannot."""

from __future__ import annotations

from pathlib import Path

import platformdirs

_NAME = "pytest-deploybench"


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
