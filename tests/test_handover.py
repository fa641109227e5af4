"""What the agent reads names the deadline, the budget and the deliverables, and shows nothing of the verifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench import handover, layer1, taskfile
from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import Category, Completed
from pytest_deploybench.transport import SshMachine
from tests.support.scripted_machine import ScriptedMachine
from tests.support.sshd import Sshd
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


def test_large_archives_get_more_time_to_be_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, machine = taskfile.load(write_task(tmp_path)), ScriptedMachine(CLOCK)
    monkeypatch.setattr(handover, "SLOWEST_UNPACKING", 10)
    archives = {"artifact": tmp_path / "small.tar", "extra/large": tmp_path / "large.tar"}
    for archive, size in zip(archives.values(), (50, 5_000), strict=True):
        archive.write_bytes(bytes(size))
    handover.prepare(machine, task, archives, 60.0)
    patience = [machine.patience[command] for command in machine.commands if "tar -xf" in command]
    assert patience == [handover.STEP_TIMEOUT_S + 5, handover.STEP_TIMEOUT_S + 500]


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


@pytest.mark.parametrize(
    ("asked", "answer", "told"),
    [
        ("type -aP", "/usr/bin/docker", "container engine found: docker at /usr/bin/docker"),
        ("ls -d", "/var/lib/lxc\n/etc/passwd", "container engine found: lxc at /var/lib/lxc"),
        ("ps -eo", "root 9 1 5 dockerd /usr/bin/dockerd", "container engine running: dockerd"),
    ],
)
def test_each_trace_of_a_container_engine_is_a_line_that_layer_1_knows(
    tmp_path: Path, asked: str, answer: str, told: str
) -> None:
    machine = ScriptedMachine({asked: Completed(0, f"{answer}\n".encode(), b"", 0.0)})
    lines = handover.collect(machine, tmp_path)
    assert lines == [told]
    assert (tmp_path / "containers.txt").read_text() == f"{told}\n"
    assert [finding.category for finding in layer1.parse(lines)] == [Category.CONTAINER]


def test_an_engine_is_found_on_the_path_that_env_sh_sets_and_where_it_kept_its_images(
    machine: SshMachine, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, store = sshd.home / "engine" / "podman", sshd.home / "storage"
    store.mkdir()
    engine.parent.mkdir()
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    (sshd.home / "env.sh").write_text('PATH="$HOME/engine:$PATH"; echo noise; false\n')
    monkeypatch.setattr(handover, "CONTAINER_STORES", {str(store): "docker", "/nowhere": "lxc"})
    monkeypatch.setattr(handover, "by_system_tools", lambda command: command.replace("sudo -n ", ""))
    lines = handover.collect_after(machine, tmp_path, handover.collect(machine, tmp_path))
    assert (tmp_path / "containers.txt").read_text().splitlines() == lines
    assert f"container engine found: podman at {engine}" in lines
    assert f"container engine found: docker at {store}" in lines
    assert not [line for line in lines if "noise" in line or "/nowhere" in line]


def test_env_sh_is_not_sourced_before_the_experiment_and_a_trace_is_told_once(tmp_path: Path) -> None:
    machine = ScriptedMachine({"type -aP": Completed(0, b"/usr/bin/docker\n", b"", 0.0)})
    traces = handover.collect(machine, tmp_path)
    assert not [command for command in machine.commands if "env.sh" in command]
    assert (
        handover.collect_after(machine, tmp_path, traces)
        == traces
        == ["container engine found: docker at /usr/bin/docker"]
    )
