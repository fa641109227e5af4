"""A loopback index that pip on this host is configured to use, and a source on it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_deploybench.model import Registry, Source
from tests.support.index import Index, running_index

DATA = bytes(range(256)) * 1000


@pytest.fixture
def source() -> Source:
    return Source(Registry.PYPI, "Demo_Tool", "1.0", "demo_tool-1.0.tar.gz", hashlib.sha256(DATA).hexdigest())


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """pip without the configuration of this host."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return monkeypatch


@pytest.fixture
def index(pip: pytest.MonkeyPatch) -> Iterator[Index]:
    with running_index() as running:
        running.projects["demo-tool"] = {"demo_tool-1.0.tar.gz": DATA, "demo_tool-0.9.tar.gz": b"older"}
        pip.setenv("PIP_INDEX_URL", running.url)
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"
