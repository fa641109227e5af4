"""A fleet over machines that are small real processes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.fleet import Endpoint, Fleet, FleetClient
from pytest_deploybench.model import Lease, MachineSize
from tests.support.scripted_provider import PATIENCE_S, ScriptedProvider

ROOT = Path(__file__).parents[2]
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


class Program:
    """One of `programs.py` as a process; it says JSON lines."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.fleet.programs", *arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.heard: dict[str, Any] = {}

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        heard: dict[str, Any] = json.loads(line)
        self.heard |= heard
        return heard

    def tell(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)


@pytest.fixture
def start() -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []

    def begin(*arguments: object) -> Program:
        programs.append(Program(*map(str, arguments)))
        return programs[-1]

    yield begin
    for program in programs:
        program.process.kill()
        program.process.communicate()
        if "address" in program.heard:
            shutil.rmtree(Path(program.heard["address"]).parent, ignore_errors=True)


def borrow_in_thread(endpoint: Endpoint, size: MachineSize = SMALL) -> tuple[threading.Thread, list[Lease | Exception]]:
    """Ask for a machine without waiting; the outcome appears in the list."""
    outcome: list[Lease | Exception] = []
    client = FleetClient(endpoint)

    def run() -> None:
        try:
            outcome.append(client.borrow(size, lifetime_s=60, purpose="thread"))
        except Exception as error:
            outcome.append(error)
            return
        kept.wait()

    kept = threading.Event()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def machine_files(journal: Path) -> list[str]:
    return sorted(path.stem for path in journal.glob("*.json"))


def nothing_left(provider: ScriptedProvider, journal: Path) -> bool:
    return (provider.running(), provider.traces(), machine_files(journal)) == ([], [], [])
