"""For this repository's own tests only: `pytester`, and the markers of tests that need more than Python."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "vm: boots a real virtual machine; minutes without KVM")
    config.addinivalue_line("markers", "network: reaches a package registry")
    config.addinivalue_line("markers", "scaffold: runs a real scaffold; makes environments of half a gigabyte each")
    config.addinivalue_line("markers", "browser: opens a page in a real Chromium; skipped where there is none")
