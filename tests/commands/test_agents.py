"""`deploybench agents` lists everybody, and says of each what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_deploybench import registry
from pytest_deploybench.agents.openhands import SCAFFOLD
from pytest_deploybench.cli import main


def test_every_agent_has_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(SCAFFOLD.variable, str(tmp_path / "no-python"))
    result = CliRunner().invoke(main, ["agents"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[1].rstrip(":") for line in lines] == registry.names(registry.AGENTS)
    by_name = {line.split()[1].rstrip(":"): line for line in lines}
    assert by_name["noop"].startswith("✓ noop: needs no model.")
    assert by_name["openhands"].startswith(f"✗ openhands: {SCAFFOLD.variable}=")
    assert "openhands-sdk==" in by_name["openhands"]
