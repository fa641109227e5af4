"""A task's script as an agent: on a real machine, within its budget, with a log that holds no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench.agents import script
from pytest_deploybench.agents.reference import ReferenceAgent
from pytest_deploybench.agents.script import AgentLog
from pytest_deploybench.agents.shallow import ShallowAgent
from pytest_deploybench.errors import MachineLostError, TaskFileError
from pytest_deploybench.model import (
    Task,
    Termination,
)
from pytest_deploybench.transport import SshMachine
from tests.support.sshd import Sshd, alive

KEY = "sk-ant-REDACTED-TEST-0123456789abcdefghij"


def test_each_agent_runs_its_own_script(machine: SshMachine, task: Task, folder: Path, sshd: Sshd) -> None:
    (task.folder / "reference.sh").write_text("pwd; echo reference; echo warning >&2")
    (task.folder / "shallow.sh").write_text("echo shallow")
    run = ReferenceAgent().run(machine, task, 60.0, folder)
    assert (run.termination, run.exit_status, run.claimed_success) == (Termination.FINISHED, 0, True)
    assert run.budget_s == 60.0
    assert (folder / "agent.log").read_text() == f"{sshd.home}\nreference\nwarning\n"
    ShallowAgent().run(machine, task, 60.0, folder)
    assert (folder / "agent.log").read_text() == "shallow\n"


def test_the_script_is_run_with_bash_outside_of_the_home_and_gone_afterwards(
    machine: SshMachine, task: Task, folder: Path, sshd: Sshd
) -> None:
    (task.folder / "reference.sh").write_text('[[ -f $0 ]] && echo "$0"; ls -A')
    ReferenceAgent().run(machine, task, 60.0, folder)
    place, *home = (folder / "agent.log").read_text().splitlines()
    assert Path(place).name == "reference.sh"
    assert not Path(place).is_relative_to(sshd.home)
    assert not Path(place).parent.exists()
    assert home == ["bin"]


def test_a_script_that_fails_says_so(machine: SshMachine, task: Task, folder: Path) -> None:
    (task.folder / "reference.sh").write_text("set -e; echo before; false; echo after")
    run = ReferenceAgent().run(machine, task, 60.0, folder)
    assert (run.termination, run.exit_status, run.claimed_success) == (Termination.CRASHED, 1, False)
    assert "exit status 1" in run.detail
    assert (folder / "agent.log").read_text() == "before\n"


def test_the_time_budget_ends_the_script_and_keeps_what_it_printed(
    machine: SshMachine, task: Task, folder: Path
) -> None:
    (task.folder / "reference.sh").write_text("echo $$; sleep 600 & sleep 601")
    run = ReferenceAgent().run(machine, task, 3.0, folder)
    assert (run.termination, run.exit_status, run.claimed_success) == (Termination.TIME_BUDGET, None, None)
    assert "after 3 s" in run.detail
    assert not alive(int((folder / "agent.log").read_text()))


def test_a_lost_machine_is_for_the_caller(machine: SshMachine, task: Task, folder: Path, sshd: Sshd) -> None:
    (task.folder / "reference.sh").write_text("echo x; kill -KILL $(ps -o ppid= -p $PPID); sleep 60")
    with pytest.raises(MachineLostError):
        ReferenceAgent().run(machine, task, 60.0, folder)
    assert (folder / "agent.log").read_text() == "x\n"


def test_a_missing_script_is_an_error_of_the_task(machine: SshMachine, task: Task, folder: Path) -> None:
    with pytest.raises(TaskFileError, match=r"task/shallow\.sh: .* does not exist"):
        ShallowAgent().run(machine, task, 60.0, folder)


def test_the_log_is_bounded_and_says_so(
    machine: SshMachine, task: Task, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "LOG_LIMIT_BYTES", 1000)
    (task.folder / "reference.sh").write_text("yes | head -c 1000000")
    assert ReferenceAgent().run(machine, task, 60.0, folder).claimed_success is True
    log = (folder / "agent.log").read_text()
    assert log == "y\n" * 500 + "\n[deploybench: output beyond 1000 bytes was dropped]\n"


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_no_secret_slips_through_at_a_chunks_border(tmp_path: Path, size: int) -> None:
    text = f"before {KEY} after\nprogress\r{KEY}\r\nlast line {KEY}".encode()
    with AgentLog(tmp_path / "log") as log:
        for start in range(0, len(text), size):
            log.write(text[start : start + size])
    written = (tmp_path / "log").read_bytes().decode()
    assert KEY not in written
    assert KEY[-12:] not in written
    assert written.startswith("before ")
    assert " after\nprogress\r" in written


def test_a_private_key_is_seen_as_a_whole_though_it_spans_lines(tmp_path: Path) -> None:
    body = [f"{'QUJD' * 15}{number:04d}" for number in range(20)]
    lines = ["-----BEGIN OPENSSH PRIVATE KEY-----", *body, "-----END OPENSSH PRIVATE KEY-----", "done"]
    with AgentLog(tmp_path / "log") as log:
        for line in lines:
            log.write(f"{line}\n".encode())
    written = (tmp_path / "log").read_text()
    assert "QUJD" not in written
    assert written.endswith("\ndone\n")


@pytest.mark.parametrize("shift", range(0, 45, 5))
def test_a_line_without_end_is_cut_before_a_key_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    monkeypatch.setattr(script, "LINE_LIMIT_BYTES", 100)
    with AgentLog(tmp_path / "log") as log:
        for byte in f"{'word ' * 12}{'x' * shift} {KEY} {'more ' * 100}\nnext line\n".encode():
            log.write(bytes([byte]))
    written = (tmp_path / "log").read_text()
    assert not any(KEY[start : start + 8] in written for start in range(7, len(KEY) - 8))
    assert written.startswith("word word")
    assert written.endswith("[deploybench: the rest of a line without end was dropped]\nnext line\n")


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    with AgentLog(tmp_path / "log") as log:
        log.write("ü".encode()[:1])
        log.write("ü".encode()[1:] + b"\xff\x00\n")
    assert (tmp_path / "log").read_text() == "ü�\x00\n"
