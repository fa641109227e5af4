"""Whole sessions on real machines, as a user starts them: what they report, and that nothing is ever left.

Each session is a pytest of its own with a state folder of its own; image and templates are shared with the user's.
"""

from __future__ import annotations

import json
import signal
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import PATIENCE_S, SOON_S, Start, eventually, gone, sessions
from tests.support.toy import ToyProject, toy_project

pytestmark = pytest.mark.vm


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with sessions(tmp_path) as starter:
        yield starter


def test_reference_passes_noop_fails_and_every_report_says_so(tmp_path: Path) -> None:
    """A toy task, since this is about the session; `tox -e demo` and `certify` deploy the real ones."""
    project = toy_project(tmp_path / "project")
    project.task("toy_session20")
    with sessions(tmp_path, project.folder) as start:
        _reference_and_noop(start, project, tmp_path / "junit.xml")


def _reference_and_noop(start: Start, project: ToyProject, junit: Path) -> None:
    agents = ("--deploybench-agent=reference", "--deploybench-agent=noop", f"--deploybench-sources={project.store}")
    session = start("tasks", *agents, "-n", "2", f"--junitxml={junit}")
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


def test_a_killed_worker_costs_its_trial_and_leaves_no_machine(start: Start) -> None:
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


def test_after_a_killed_controller_no_machine_is_left_and_the_next_session_says_what_it_swept(start: Start) -> None:
    session = start("tasks/libsvm_tist11", "--deploybench-agent=reference", "-n", "1")
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes, (machine,) = session.machine_processes(), session.machines
    session.process.kill()
    eventually(lambda: gone(processes), SOON_S, "the end of the machine's processes")
    eventually(lambda: not session.machines, SOON_S, "the end of the machine's folder and overlay")

    following = start("tasks/libsvm_tist11", "--deploybench-agent=noop")
    following.wait()
    assert f"swept machine {machine.name}" in following.text


def test_ctrl_c_leaves_nothing_and_ends_with_status_2(start: Start) -> None:
    session = start("tasks/libsvm_tist11", "--deploybench-agent=reference")
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes = session.machine_processes()
    session.process.send_signal(signal.SIGINT)
    assert session.wait(SOON_S * 3) == pytest.ExitCode.INTERRUPTED, session.text
    assert gone(processes)
    assert not session.machines
    assert session.trials["reference"]["verdict"] == "INVALID"
