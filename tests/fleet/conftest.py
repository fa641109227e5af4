"""A fleet over machines that are small real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.fleet import Fleet
from pytest_deploybench.model import MachineSize
from tests.support.scripted_provider import ScriptedProvider

SMALL = MachineSize(cpus=1, memory_gb=1.0, disk_gb=5)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[ScriptedProvider]:
    """The provider; whatever a test left running ends with it."""
    made = ScriptedProvider(folder=tmp_path / "provider")
    yield made
    made.release()
    for machine_id in made.traces():
        made.kill(machine_id)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "machines"


@pytest.fixture
def said() -> list[str]:
    """What the fleet told people."""
    return []


class Fleets:
    """Makes fleets that share one provider and one journal."""

    def __init__(self, provider: ScriptedProvider, journal: Path, said: list[str]) -> None:
        self._common: dict[str, Any] = {
            "provider": provider,
            "provider_name": "scripted",
            "journal": journal,
            "run_id": "run-1",
            "max_machines": None,
            "progress": said.append,
            "retry_pauses_s": (0.0, 0.0),
        }
        self.made: list[Fleet] = []

    def __call__(self, **settings: Any) -> Fleet:
        fleet = Fleet(**(self._common | settings))
        self.made.append(fleet)
        return fleet


@pytest.fixture
def fleets(provider: ScriptedProvider, journal: Path, said: list[str]) -> Iterator[Fleets]:
    made = Fleets(provider, journal, said)
    yield made
    provider.release()
    for fleet in made.made:
        fleet.close()


@pytest.fixture
def fleet(fleets: Fleets) -> Fleet:
    return fleets()
