"""Fault drills on real machines: whatever breaks, the verdict is right and nothing is left behind.

What breaks here is ours or the host's. `test_hostile_agents.py` is about agents that break their own machine.
"""

from __future__ import annotations

import os
import pty
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.sessions import PATIENCE_S, SOON_S, Session, Start, eventually, gone, sessions
from tests.support.toy import ToyProject, toy_project

pytestmark = pytest.mark.vm

OUTAGE_S = 20.0
WAITS = "sleep 12"
"""What an agent does while something is broken around it."""


@pytest.fixture
def project(tmp_path: Path) -> ToyProject:
    return toy_project(tmp_path / "project")


@pytest.fixture
def start(tmp_path: Path, project: ToyProject) -> Iterator[Start]:
    with sessions(tmp_path, project.folder) as starter:
        yield starter


def reference(project: ToyProject, *more: str) -> tuple[str, ...]:
    return ("tasks", "--deploybench-agent=reference", f"--deploybench-sources={project.store}", *more)


def process_of(session: Session, command: str) -> psutil.Process:
    """The process of a machine that runs a command."""
    (found,) = [process for process in session.machine_processes() if Path(process.exe()).name.startswith(command)]
    return found


@pytest.mark.parametrize("command", ["qemu-system", "passt"])
def test_a_machine_that_dies_under_its_agent_is_replaced(project: ToyProject, start: Start, command: str) -> None:
    project.task("toy_drill20", before=WAITS)
    session = start(*reference(project))
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes = session.machine_processes()
    process_of(session, command).kill()
    assert session.wait() == pytest.ExitCode.OK, session.text
    trial = session.trials["reference"]
    assert trial["verdict"] == "PASSED"
    assert [found["fault"] for found in trial["tries"]] == ["provider", None]
    assert gone(processes)
    assert not session.machines


def test_a_network_that_is_away_for_a_while_costs_nothing(project: ToyProject, start: Start) -> None:
    project.task("toy_drill20", before=WAITS)
    session = start(*reference(project))
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    network = process_of(session, "passt")
    network.suspend()
    time.sleep(OUTAGE_S)
    network.resume()
    assert session.wait() == pytest.ExitCode.OK, session.text
    assert len(session.trials["reference"]["tries"]) == 1


def test_a_machine_whose_hypervisor_hangs_is_lost_and_not_the_agents_fault(project: ToyProject, start: Start) -> None:
    project.task("toy_drill20", before=WAITS)
    session = start(*reference(project, "--deploybench-retries=0"))
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes = session.machine_processes()
    process_of(session, "qemu-system").suspend()
    assert session.wait() == pytest.ExitCode.TESTS_FAILED, session.text
    assert session.trials["reference"]["verdict"] == "INVALID"
    assert gone(processes)
    assert not session.machines


def test_two_sessions_at_once_leave_each_other_alone(project: ToyProject, start: Start) -> None:
    project.task("toy_drill20", before=WAITS)
    both = [start(*reference(project)) for _ in range(2)]
    for session in both:
        assert session.wait() == pytest.ExitCode.OK, session.text
        assert "swept" not in session.text


def test_a_closed_terminal_ends_the_session_and_its_machines(project: ToyProject, start: Start, tmp_path: Path) -> None:
    project.task("toy_drill20", before="sleep 600", agent_s=600)
    ours, theirs = pty.openpty()
    # A session of its own whose controlling terminal is the one that will be closed.
    script = f"import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl({theirs}, termios.TIOCSCTTY, 0); "
    script += f"os.close({ours}); os.execvp(sys.argv[1], sys.argv[1:])"
    session = start(*reference(project), prefix=(sys.executable, "-c", script), inherit=(ours, theirs))
    os.close(theirs)
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    processes = session.machine_processes()
    os.close(ours)
    assert session.wait(SOON_S * 3) == pytest.ExitCode.INTERRUPTED, session.text
    assert gone(processes)
    assert not session.machines


def test_a_full_disk_loses_no_verdict_and_no_machine(project: ToyProject, start: Start, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("mounting a small disk needs root")
    project.task("toy_drill20", before=f"{WAITS}; seq 200000")
    small = tmp_path / "session-1" / "run"
    mount = f"mkdir -p {small.parent}/run && mount -t tmpfs -o size=200k none {small} && mkdir {small}/here && "
    session = start(
        *reference(project, f"--deploybench-run-dir={small}/here", "--deploybench-retries=0"),
        prefix=("unshare", "--mount", "bash", "-c", mount + 'exec "$@"', "bash"),
        environment={"TMPDIR": str(tmp_path)},
    )
    assert session.wait() == pytest.ExitCode.TESTS_FAILED, session.text
    assert "No space left on device" in session.text
    assert "Make room there" in session.text
    assert "Traceback" not in session.text
    assert not session.machines


def test_a_guest_without_name_service_is_still_judged(project: ToyProject, start: Start) -> None:
    project.task("toy_drill20", before="echo nameserver 192.0.2.1 | sudo tee /etc/resolv.conf")
    session = start(*reference(project))
    assert session.wait() == pytest.ExitCode.OK, session.text


def test_a_machine_is_kept_looked_into_and_verified_again(project: ToyProject, start: Start) -> None:
    folder = project.task("toy_drill20", after="echo here I was >~/note; sudo systemctl disable --now cron || true")
    noop = project.task("toy_other20")
    (noop / "reference.sh").write_text("echo 'I gave up'\n")
    first = start(*reference(project, "--deploybench-keep-vm=failed"))
    assert first.wait() == pytest.ExitCode.TESTS_FAILED, first.text
    kept = {trial["task"]: trial["kept"] for trial in first.all_trials}
    assert kept["toy_drill20"] is None
    assert kept["toy_other20"]
    assert f"deploybench vms ssh {kept['toy_other20']}" in first.text
    assert not first.machines

    listed = first.deploybench("vms", "list")
    assert kept["toy_other20"] in listed.stdout
    looked = first.deploybench("vms", "ssh", kept["toy_other20"], "cat TASK.md; exit 7")
    assert looked.returncode == 7, looked.stderr
    assert "You are on a fresh Debian machine" in looked.stdout

    # Its verifier is mended: what the agent left counts as a deployment now.
    checks = noop / "test_toy_other20.py"
    checks.write_text(
        "def draw(seed):\n    from pytest_deploybench.layer2 import Challenge\n"
        "    return Challenge('echo done >out', {}, ('out',))\n\n"
        "def test_the_task_is_there(server):\n    assert server.file('/home/agent/TASK.md').exists\n"
    )
    again = start("tasks/toy_other20", f"--deploybench-reverify={first.run_dir}")
    assert again.wait() in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}, again.text
    (trial,) = again.all_trials
    assert trial["verified_again"] == first.run_dir.name
    assert [check["outcome"] for check in trial["checks"] if check["name"] == "test_the_task_is_there"] == ["passed"]
    assert not (again.run_dir / trial["folder"] / "agent.log").exists()

    reaped = first.deploybench("vms", "reap", kept["toy_other20"])
    assert reaped.returncode == 0, reaped.stderr
    assert kept["toy_other20"] not in first.deploybench("vms", "list").stdout
    assert folder.is_dir()


def test_a_living_sessions_machine_is_not_reaped(project: ToyProject, start: Start) -> None:
    project.task("toy_drill20", before="sleep 600", agent_s=600)
    session = start(*reference(project))
    eventually(session.at_work, PATIENCE_S, "an agent at work")
    (machine,) = session.machines
    listed = session.deploybench("vms", "list")
    assert machine.name in listed.stdout
    refused = session.deploybench("vms", "reap", machine.name)
    assert refused.returncode == 2  # a mistake of the user, see UsageError
    assert "belongs to a session that is alive" in refused.stderr
    assert machine.is_dir()
    session.process.send_signal(signal.SIGINT)
    assert session.wait(SOON_S * 3) == pytest.ExitCode.INTERRUPTED


def test_what_does_not_survive_a_restart_fails_where_a_restart_is_asked_for(project: ToyProject, start: Start) -> None:
    project.task("toy_drill20", after="sudo mv ~/add.sh /run/add.sh && ln -s /run/add.sh ~/add.sh")
    session = start(*reference(project, "--deploybench-reboot-before-verify"))
    assert session.wait() == pytest.ExitCode.TESTS_FAILED, session.text
    assert session.trials["reference"]["verdict"] == "FAILED"
    assert session.trials["reference"]["durations"]["reboot"] > 0
