"""The scripted provider is found by name like any foreign one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import scripted_provider

ROOT = Path(__file__).parents[2]

PROGRAM = """
from pytest_deploybench import registry
from pytest_deploybench.model import MachineRequest, MachineSize, ProviderOptions
provider = registry.load(registry.PROVIDERS, "scripted")(ProviderOptions(), print)
provider.create(MachineRequest("db-1", MachineSize(1, 1.0, 5), 60.0))
print(provider.running())
provider.destroy("db-1")
print(provider.traces())
"""


def test_a_registered_provider_is_made_through_the_registry(tmp_path: Path) -> None:
    scripted_provider.register(tmp_path / "site")
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path / 'site'}:{ROOT}",
        scripted_provider.VARIABLE: str(tmp_path / "machines"),
    }
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.splitlines()) == (0, ["['db-1']", "[]"]), ended.stderr
