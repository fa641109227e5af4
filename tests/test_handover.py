"""What the agent reads names the deadline, the budget and the deliverables, and shows nothing of the verifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench import handover, taskfile
from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import Completed
from tests.support.scripted_machine import ScriptedMachine
from tests.support.task_folder import write_task

CLOCK = {"date": Completed(0, b"86400.25\n", b"", 0.0)}


def test_task_md_says_what_the_agent_must_know(tmp_path: Path) -> None:
    task = taskfile.load(write_task(tmp_path))
    text = handover.task_md(task, ["artifact", "extra/data"], 5400.0, 0.0)
    for told in (
        "instruction.md of toy_venue20", "90 minutes", "1970-01-01 01:30:00 UTC", "env.sh", "RUNBOOK.md", "toy 1.0",
        "~/extra/data/", "No containers",
    ):  # fmt: skip
        assert told in text
    assert "{" not in text


def test_sources_paper_and_task_are_put_and_the_machines_clock_is_told(tmp_path: Path) -> None:
    task, machine = taskfile.load(write_task(tmp_path)), ScriptedMachine(CLOCK)
    archive = tmp_path / "toy-1.0.tar.gz"
    archive.write_bytes(b"archive")
    assert handover.prepare(machine, task, {"artifact": archive}, 60.0) == 86400.25
    assert {Path(remote).name for remote in machine.written} == {"toy-1.0.tar.gz", "paper.md", "TASK.md"}
    assert b"1970-01-02 00:01:00 UTC" in machine.written["/home/agent/TASK.md"]


def test_a_step_that_fails_on_the_fresh_machine_is_our_fault_and_says_why(tmp_path: Path) -> None:
    task = taskfile.load(write_task(tmp_path))
    machine = ScriptedMachine({**CLOCK, "tar": Completed(2, b"", b"tar: not an archive", 0.0)})
    archive = tmp_path / "toy-1.0.tar.gz"
    archive.write_bytes(b"archive")
    with pytest.raises(InfraError, match=r"unpacking toy-1.0.tar.gz failed .*not an archive"):
        handover.prepare(machine, task, {"artifact": archive}, 60.0)


def test_evidence_is_redacted_and_survives_broken_tools(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a" * 90
    broken = Completed(127, b"\xff\xfe", b"ps: not found", 0.0)
    machine = ScriptedMachine({"ps": broken}, {"RUNBOOK.md": f"key {key}".encode(), "env.sh": b"\xff export B=2"})
    assert handover.collect(machine, tmp_path) == []
    assert key not in (tmp_path / "RUNBOOK.md").read_text()
    assert "export B=2" in (tmp_path / "env.sh").read_text()
