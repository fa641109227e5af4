"""Own hosts for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.ssh.own_hosts import OwnHosts, own_hosts


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[OwnHosts]:
    """None yet: a test adds those that it needs."""
    with own_hosts(tmp_path / "hosts") as made:
        yield made
