"""Whole sessions on real machines, as a user starts them: what they report, and that nothing is ever left.

Each session is a pytest of its own with a state folder of its own; image and templates are shared with the user's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[1]
PATIENCE_S = 1500.0
"""For what takes a machine: emulated, and perhaps with its template still to be made."""
SOON_S = 60.0
"""For what must follow at once."""

pytestmark = pytest.mark.vm


class Session:
    """One `pytest --deploybench-...` over this repository's tasks."""

    def __init__(self, folder: Path, state: Path, *arguments: str) -> None:
        self.run_dir, self.output, self.state = folder / "run", folder / "output.txt", state
        environment = {**os.environ, "XDG_STATE_HOME": str(self.state)}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--deploybench-run-dir={self.run_dir}"]
        with self.output.open("w") as output:
            self.process = psutil.Popen(
                [*command, *arguments], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        return int(self.process.wait(timeout_s))

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def trials(self) -> dict[str, dict[str, Any]]:
        """The records of run.json, by agent."""
        run = json.loads((self.run_dir / "run.json").read_text())
        return {trial["agent"]: trial for trial in run["trials"]}

    @property
    def machines(self) -> list[Path]:
        """Folders of machines that are there."""
        return [path for path in (self.state / "pytest-deploybench" / "qemu").glob("db-*") if path.is_dir()]

    def machine_processes(self) -> list[psutil.Process]:
        """Keeper, QEMU, passt and gate of the machines that are there."""
        found = []
        for folder in self.machines:
            record = json.loads((folder / "keeper.json").read_text())
            found += [psutil.Process(entry["pid"]) for entry in (record["keeper"], *record["commands"].values())]
        return found

    def workers(self) -> list[psutil.Process]:
        """xdist's workers, as children of the controller that run execnet's bootstrap."""
        return [child for child in self.process.children() if "sys.stdin.readline" in " ".join(child.cmdline())]

    def at_work(self) -> bool:
        """Whether an agent is at work on a machine."""
        assert self.process.poll() is None, f"the session ended too early:\n{self.text}"
        return bool(self.machines) and any(self.run_dir.rglob("agent.log"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    sessions: list[Session] = []

    def start(*arguments: str) -> Session:
        folder = tmp_path / f"session-{len(sessions) + 1}"
        folder.mkdir()
        sessions.append(Session(folder, tmp_path / "state", *arguments))
        return sessions[-1]

    yield start
    for session in sessions:
        if session.process.poll() is None:
            session.process.send_signal(signal.SIGINT)
            session.wait(SOON_S * 3)


def eventually(claim: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not claim():
        assert time.monotonic() < deadline, f"waited {timeout_s:.0f} s in vain: {what}"
        time.sleep(0.2)


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def test_reference_passes_noop_fails_and_every_report_says_so(start: Callable[..., Session], tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    agents = ("--deploybench-agent=reference", "--deploybench-agent=noop")
    session = start("tasks/spin_tse11", *agents, "-n", "2", f"--junitxml={junit}")
    assert session.wait() == pytest.ExitCode.TESTS_FAILED, session.text
    verdicts = {agent: trial["verdict"] for agent, trial in session.trials.items()}
    assert verdicts == {"reference": "PASSED", "noop": "FAILED"}, session.text
    assert session.trials["reference"]["seed"] == session.trials["noop"]["seed"]
    assert "1/1  100 %" in session.text
    assert "0/1    0 %" in session.text

    properties = [
        {found.get("name"): found.get("value") for found in case.iter("property")}
        for case in ET.parse(junit).iter("testcase")  # noqa: S314 - written by the session just now
    ]
    assert all({"agent", "model", "seed", "task"} <= set(found) for found in properties)
    closing = {found["agent"]: found for found in properties if "verdict" in found}
    assert {agent: found["verdict"] for agent, found in closing.items()} == verdicts
    assert float(closing["reference"]["duration_agent"] or 0) > 0

    record = json.loads((session.run_dir / session.trials["reference"]["folder"] / "record.json").read_text())
    assert record == session.trials["reference"]
    assert (session.run_dir / record["folder"] / "RUNBOOK.md").read_text()
    assert not session.machines


def test_a_killed_worker_costs_its_trial_and_leaves_no_machine(start: Callable[..., Session]) -> None:
    session = start("tasks/libsvm_tist11", "--deploybench-agent=reference", "-n", "1", "--max-worker-restart=0")
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes = session.machine_processes()
    assert len(processes) >= 3
    (worker,) = session.workers()
    worker.kill()
    assert session.wait(SOON_S * 3) == pytest.ExitCode.TESTS_FAILED, session.text
    assert session.trials["reference"]["verdict"] == "INVALID"
    assert gone(processes)
    assert not session.machines


def test_after_a_killed_controller_no_machine_is_left_and_the_next_session_says_what_it_swept(
    start: Callable[..., Session],
) -> None:
    session = start("tasks/libsvm_tist11", "--deploybench-agent=reference", "-n", "1")
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes, (machine,) = session.machine_processes(), session.machines
    session.process.kill()
    eventually(lambda: gone(processes), SOON_S, "the end of the machine's processes")
    eventually(lambda: not session.machines, SOON_S, "the end of the machine's folder and overlay")

    following = start("tasks/libsvm_tist11", "--deploybench-agent=noop")
    following.wait()
    assert f"swept machine {machine.name}" in following.text


def test_ctrl_c_leaves_nothing_and_ends_with_status_2(start: Callable[..., Session]) -> None:
    session = start("tasks/libsvm_tist11", "--deploybench-agent=reference")
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes = session.machine_processes()
    session.process.send_signal(signal.SIGINT)
    assert session.wait(SOON_S * 3) == pytest.ExitCode.INTERRUPTED, session.text
    assert gone(processes)
    assert not session.machines
    assert session.trials["reference"]["verdict"] == "INVALID"
