"""A task that costs a machine only seconds: add up numbers with the script that is its source.

Its reference can be told to do something else before or after it deploys, such as what a hostile agent would do.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.task_folder import write_task

DEPLOY = """\
cp ~/artifact/add.sh ~/add.sh
chmod +x ~/add.sh
echo 'export PATH="$HOME:$PATH"' >~/env.sh
echo 'Copied add.sh; run: add.sh <numbers' >~/RUNBOOK.md
"""

CHECKS = '''\
"""The adder, deployed from its source, adds up fresh random numbers."""

import random
from dataclasses import dataclass

from pytest_deploybench.layer2 import Challenge


@dataclass(frozen=True)
class Numbers(Challenge):
    truth: int = 0


def draw(seed):
    numbers = [random.Random(seed).randrange(10**6) for _ in range(10)]
    text = "".join(f"{number}\\n" for number in numbers).encode()
    return Numbers("add.sh <numbers >sum", {"numbers": text}, ("sum",), sum(numbers))


def test_the_sum_is_right(experiment, challenge):
    assert experiment.text("sum").split() == [str(challenge.truth)]


def test_the_adder_lies_where_the_agent_put_it(server):
    assert server.file("/home/agent/add.sh").exists
'''

_ADDER = b'#!/bin/bash\ntotal=0\nwhile read -r number; do total=$((total + number)); done\necho "$total"\n'


@dataclass(frozen=True)
class ToyProject:
    """A folder with toy tasks and the store of their one source."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def task(self, name: str, before: str = "", after: str = "", agent_s: float = 60.0) -> Path:
        """Add a task whose reference does `before`, deploys, and does `after`."""
        archive = _archive()
        digest = hashlib.sha256(archive).hexdigest()
        place = self.store / digest / "toy-1.0.tar.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(archive)
        folder = write_task(
            self.folder / "tasks",
            name,
            CHECKS,
            source__sha256=digest,
            machine={"cpus": 2, "memory_gb": 2, "disk_gb": 10},
            budget={"agent_s": agent_s, "experiment_s": 20, "check_s": 20},
        )
        (folder / "reference.sh").write_text(f"{before}\n{DEPLOY}\n{after}\n")
        return folder


def toy_project(folder: Path) -> ToyProject:
    """A project for pytest; its tasks are still to be added."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return ToyProject(folder)


def _archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        entry = tarfile.TarInfo("toy-1.0/add.sh")
        entry.size = len(_ADDER)
        tar.addfile(entry, io.BytesIO(_ADDER))
    return buffer.getvalue()
