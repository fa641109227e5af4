"""A project of its own for tests of the plugin: task folders, and machines of the scripted provider.

Only what happens on a machine is replaced, by the fixtures of STAND_IN. The fleet, its machines, xdist, pytest's own
options and the way of a report to the records are the real ones.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Loaded before any run in this process, which forgets the modules that it loads first.
import pytest_deploybench.plugin.ending
import pytest_deploybench.plugin.fixtures
import pytest_deploybench.plugin.guard
import pytest_deploybench.plugin.listing
import pytest_deploybench.plugin.scheduling
import pytest_deploybench.plugin.session  # noqa: F401
from pytest_deploybench.model import RunRecord
from pytest_deploybench.reports.json import load_run
from tests.support import scripted_provider, task_folder

ROOT = Path(__file__).parents[2]

STAND_IN = '''\
"""A trial whose agent needs no time: it borrows a machine, keeps its diary, and leaves nothing for Layer 1 to find."""

import pytest

from pytest_deploybench.model import AgentRun, MachineSize, Termination
from pytest_deploybench.plugin import machines, recording
from pytest_deploybench.trial import Diary


@pytest.fixture(scope="module")
def deployment(request, trial_key):
    diary = Diary()
    recording.attach(request, trial_key, diary)
    with machines.client(request.config) as fleet:
        with diary.phase("machine"):
            lease = fleet.borrow(MachineSize(1, 1, 4), lifetime_s=600, purpose=str(trial_key.folder))
        diary.machine_id, diary.facts = lease.machine_id, lease.facts
        diary.agent_run = AgentRun(Termination.FINISHED, seconds=0.0, budget_s=600)
        yield diary


@pytest.fixture(scope="module")
def layer1(deployment):
    return deployment.findings
'''


@dataclass
class Project:
    """The folder of the project, and how to run pytest in it."""

    pytester: pytest.Pytester
    provider: scripted_provider.ScriptedProvider
    home: Path
    """Where this user's state and caches are."""
    temp: Path
    """Where temporary files go, sockets among them."""

    @property
    def path(self) -> Path:
        return self.pytester.path

    def task(self, name: str = "toy_venue20", checks: str = task_folder.CHECKS, **changes: Any) -> Path:
        """Add a task; changes are those of `task_folder.write_task`."""
        return task_folder.write_task(self.path / "tasks", name, checks, **changes)

    def run(self, *args: str) -> pytest.RunResult:
        """Run trials in a process of its own, on the scripted provider."""
        return self.pytester.runpytest_subprocess(*self.arguments(*args), timeout=120)

    def arguments(self, *args: str) -> list[str]:
        """The command line of a run whose folder is `run`."""
        return ["--deploybench-provider=scripted", "--deploybench-run-dir=run", *args]

    def collect(self, *args: str) -> pytest.RunResult:
        """Run what needs no machine in this process."""
        return self.pytester.runpytest_inprocess("-p", "no:cacheprovider", *args)

    def records(self) -> RunRecord:
        """What the run left, read back."""
        return load_run((self.path / "run" / "run.json").read_text(encoding="utf-8"))

    def verdicts(self) -> dict[str, tuple[str, str]]:
        """Verdict and reason by task, agent and attempt."""
        return {
            f"{trial.task}/{trial.agent}-{trial.attempt}": (trial.verdict.value, trial.reason)
            for trial in self.records().trials
        }

    def record(self, folder: str) -> dict[str, Any]:
        """A trial's own record."""
        content: dict[str, Any] = json.loads((self.path / "run" / folder / "record.json").read_text(encoding="utf-8"))
        return content


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    temp = tmp_path_factory.mktemp("t")  # short, since the address of a socket is
    monkeypatch.setenv("TMPDIR", str(temp))
    site, machines, home = (pytester.path.parent / f"{pytester.path.name}-{name}" for name in ("site", "vms", "home"))
    scripted_provider.register(site)
    inherited = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(site), str(ROOT), inherited))))
    monkeypatch.setenv(scripted_provider.VARIABLE, str(machines))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    pytester.makeini("[pytest]\naddopts = --strict-markers\n")
    pytester.makeconftest(STAND_IN)
    return Project(pytester, scripted_provider.ScriptedProvider(folder=machines), home, temp)
