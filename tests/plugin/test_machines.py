"""machines: whatever ends a session, no machine and no journal entry is left, and what a killed one left is swept."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_deploybench.plugin.layer1_checks import CHECKS
from tests.plugin.conftest import STAND_IN, Project

PATIENCE_S = 120
MEETING = "meeting"
HANGING = f"""\
import os, time

def test_hangs(layer1):
    with open({MEETING!r}, "w") as here:
        here.write(str(os.getpid()))
    time.sleep(3600)
"""


class Running:
    """A session whose trial has come to the check that hangs."""

    def __init__(self, process: subprocess.Popen[bytes], checker: int) -> None:
        self.process = process
        self.checker = checker
        """Process that runs the check."""

    def end(self, number: signal.Signals) -> int:
        """Send a signal to the session and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def running(project: Project, *args: str) -> Iterator[Running]:
    project.task(checks=HANGING)
    meeting = project.path / MEETING
    os.mkfifo(meeting)
    door = os.open(meeting, os.O_RDONLY | os.O_NONBLOCK)
    process = project.pytester.popen(
        [*project.pytester._getpytestargs(), *project.arguments("--deploybench-agent=noop", *args)],
        stdout=(project.path / "out").open("w"),
        stderr=subprocess.STDOUT,
    )
    try:
        assert select.select([door], [], [], PATIENCE_S)[0], (project.path / "out").read_text()
        yield Running(process, int(os.read(door, 100)))
    finally:
        process.kill()
        process.wait()
        os.close(door)


def journal(project: Project) -> list[Path]:
    return list((project.home / "state" / "pytest-deploybench" / "journal").glob("*.json"))


def assert_no_machine_is_left(project: Project) -> None:
    assert project.provider.traces() == []
    assert journal(project) == []


def assert_nothing_is_left(project: Project) -> None:
    assert_no_machine_is_left(project)
    assert list(project.temp.iterdir()) == []


@pytest.mark.parametrize("parallel", [(), ("-n", "1")], ids=["plain", "xdist"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_session_leaves_nothing(project: Project, number: signal.Signals, parallel: tuple[str, ...]) -> None:
    with running(project, *parallel) as session:
        assert len(project.provider.running()) == len(journal(project)) == 1
        assert session.end(number) == pytest.ExitCode.INTERRUPTED, (project.path / "out").read_text()
    assert_nothing_is_left(project)
    verdict, reason = project.verdicts()["toy_venue20/noop-1"]
    assert verdict == "INVALID"
    # Under xdist the signal may come before all reports have.
    assert re.match(rf"no check ran|only \d+ of {len(CHECKS) + 1} checks ran", reason)
    assert "INTERNALERROR" not in (project.path / "out").read_text()


AT = """\

import os, signal, threading
from pytest_deploybench.plugin import recording

def stopped_once(owner, name, concerned=lambda *args: True):
    original = getattr(owner, name)
    def stopped(*args, **options):
        if concerned(*args):
            setattr(owner, name, original)
            os.kill(os.getpid(), signal.SIGTERM)
        return original(*args, **options)
    setattr(owner, name, stopped)

"""
"""Ends the session with a signal at the very moment at which it calls something."""


@pytest.mark.parametrize("parallel", [(), ("-n", "1")], ids=["plain", "xdist"])
@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        ("stopped_once(threading.Thread, 'start', lambda thread: thread.name == 'progress')", "INVALID"),
        ("stopped_once(recording, 'fold')", "PASSED"),
    ],
    ids=["display starts", "verdict is reached"],
)
def test_a_session_may_be_stopped_at_any_moment(
    project: Project, call: str, verdict: str, parallel: tuple[str, ...]
) -> None:
    project.pytester.makeconftest(STAND_IN + AT + call)
    project.task()
    assert project.run("--deploybench-agent=noop", *parallel).ret == pytest.ExitCode.INTERRUPTED
    assert_nothing_is_left(project)
    assert project.verdicts()["toy_venue20/noop-1"][0] == verdict


def test_a_killed_worker_loses_its_machine_and_its_trial_is_invalid(project: Project) -> None:
    with running(project, "-n", "1") as session:
        os.kill(session.checker, signal.SIGKILL)
        assert session.process.wait(PATIENCE_S) == pytest.ExitCode.TESTS_FAILED
    assert_nothing_is_left(project)
    verdict, reason = project.verdicts()["toy_venue20/noop-1"]
    assert verdict == "INVALID"
    assert "worker 'gw0' crashed while running" in reason


def test_the_next_session_sweeps_what_a_killed_one_left(project: Project) -> None:
    with running(project) as session:
        session.end(signal.SIGKILL)
    [left] = project.provider.running()
    (project.path / "tasks" / "toy_venue20" / "test_toy_venue20.py").write_text("def test_it(layer1): pass\n")
    result = project.pytester.runpytest_subprocess(
        "--deploybench-provider=scripted", "--deploybench-agent=noop", timeout=PATIENCE_S
    )
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"deploybench: swept machine {left} *"])
    # A killed session's socket is swept too, once it is old enough to be surely dead: the fleet's own tests see to it.
    assert_no_machine_is_left(project)


@pytest.mark.parametrize(
    ("checks", "stand_in", "outcomes"),
    [
        ("def test_fails(layer1): assert False\ndef test_later(layer1): pass\n", STAND_IN, {"failed": 1}),
        (
            "def test_it(layer1): pass\n",
            STAND_IN.replace("        yield diary", "        raise ValueError('broken')\n        yield diary"),
            {"errors": 1},
        ),
        (
            "def test_it(layer1): pass\n",
            STAND_IN.replace("        yield diary", "        yield diary\n        raise ValueError('broken')"),
            {"passed": len(CHECKS) + 1, "errors": 1},
        ),
    ],
    ids=["failing check", "failing fixture", "failing teardown"],
)
def test_a_failure_leaves_nothing(project: Project, checks: str, stand_in: str, outcomes: dict[str, int]) -> None:
    project.pytester.makeconftest(stand_in)
    project.task(checks=checks)
    result = project.run("--deploybench-agent=noop", "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = result.parseoutcomes()
    assert {name: found.get(name) for name in outcomes} == outcomes
    assert_nothing_is_left(project)


def test_an_internal_error_leaves_nothing(project: Project) -> None:
    broken = "\n\ndef pytest_runtest_logfinish(nodeid):\n    raise ValueError('broken plugin')\n"
    project.pytester.makeconftest(STAND_IN + broken)
    project.task()
    assert project.run("--deploybench-agent=noop").ret == pytest.ExitCode.INTERNAL_ERROR
    assert_nothing_is_left(project)


def test_a_machine_that_cannot_be_destroyed_is_shown(project: Project) -> None:
    for _ in range(8):
        project.provider.script("destroy", "fail", message="the hypervisor says no")
    project.task()
    result = project.run("--deploybench-agent=noop", "-q")
    result.stdout.fnmatch_lines(["deploybench: machine db-* could not be destroyed: *the hypervisor says no*"])
    for machine in project.provider.traces():
        project.provider.kill(machine)


@pytest.mark.parametrize(
    "args",
    [("--collect-only",), ("test_plain.py",), ("-k", "test_plain")],
    ids=["collecting", "elsewhere", "deselected"],
)
def test_no_fleet_without_a_trial(project: Project, args: tuple[str, ...]) -> None:
    project.task(labels=[])
    project.pytester.makepyfile(test_plain="def test_plain(): pass")
    project.run("--deploybench-agent=noop", *args)
    assert not (project.path / "run").exists()
    assert not project.home.exists()


def test_nohup_stays_in_force(project: Project) -> None:
    project.task(
        checks="from signal import SIG_IGN, SIGHUP, getsignal\n"
        "def test_it(layer1): assert getsignal(SIGHUP) is SIG_IGN\n"
    )
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        project.run("--deploybench-agent=noop").assert_outcomes(passed=len(CHECKS) + 1)
    finally:
        signal.signal(signal.SIGHUP, before)
