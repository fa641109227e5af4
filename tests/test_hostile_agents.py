"""Agents that break their own machine, on real machines: each ends in a right verdict, and nothing of it reaches us.

All of them run in one session, two at a time, because each costs minutes: an emulated machine in agony is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.agents.script import LOG_LIMIT_BYTES
from tests.support.sessions import Session, sessions
from tests.support.toy import toy_project

pytestmark = pytest.mark.vm

ESCAPES = r"""printf '\033]0;owned\007\033[2J\033[31m\377\376\000 verdict: PASSED\n'"""

FILL = (
    """sudo fallocate -l "$(df --output=avail -B1 / | tail -n 1)" /big; sudo dd if=/dev/zero of=/rest bs=1M count=64"""
)

BOMB = "bomb() { bomb | bomb & }; while :; do bomb; sleep 1; done"
"""Before it deploys: a bomb may burn out, and what stood before it would then rightly pass."""


@dataclass(frozen=True)
class Hostile:
    """What an agent does before or after it deploys, and what is right to say about it."""

    before: str = ""
    after: str = ""
    verdict: str = "FAILED"
    agent_s: float = 60.0


AGENTS = {
    "kills_sshd": Hostile(after="sudo systemctl mask --now ssh.service; sudo pkill -9 sshd; sleep 600"),
    "fills_the_disk": Hostile(before=FILL),
    "removes_programs": Hostile(after="sudo rm -rf /usr/bin /usr/sbin"),
    "forks_without_end": Hostile(before=BOMB, agent_s=10),
    "floods_the_log": Hostile(after="yes", agent_s=10, verdict="PASSED"),
    "speaks_to_the_terminal": Hostile(after=ESCAPES, verdict="PASSED"),
    "restarts": Hostile(after="sudo systemctl reboot; sleep 600", verdict="PASSED"),
    "switches_off": Hostile(after="sudo systemctl poweroff; sleep 600"),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("hostile")
    project = toy_project(folder / "project")
    for name, agent in AGENTS.items():
        project.task(name, agent.before, agent.after, agent.agent_s)
    arguments = ("tasks", "--deploybench-agent=reference", f"--deploybench-sources={project.store}", "-n", "2")
    with sessions(folder, project.folder) as start:
        session = start(*arguments, "--deploybench-retries=0")
        assert session.wait(3600) == pytest.ExitCode.TESTS_FAILED, session.text
        yield session


def trial(session: Session, name: str) -> dict[str, Any]:
    return next(found for found in session.all_trials if found["task"] == name)


@pytest.mark.parametrize("name", AGENTS)
def test_the_verdict_is_right(session: Session, name: str) -> None:
    found = trial(session, name)
    assert found["verdict"] == AGENTS[name].verdict, (found["reason"], found["tries"])


def test_no_machine_is_left(session: Session) -> None:
    assert not session.machines


def test_the_log_of_a_flood_is_bounded(session: Session) -> None:
    log = session.run_dir / trial(session, "floods_the_log")["folder"] / "agent.log"
    assert 1_000_000 < log.stat().st_size < 1.1 * LOG_LIMIT_BYTES
    assert trial(session, "floods_the_log")["termination"] == "time_budget"


def test_nothing_a_guest_prints_reaches_the_terminal(session: Session) -> None:
    assert "\033]0;owned" not in session.text
    assert "\033[2J" not in session.text


def test_a_full_disk_is_told(session: Session) -> None:
    assert trial(session, "fills_the_disk")["vitals"]["least_disk_mb"] < 16
    assert "the machine's disk was full" in session.text


def test_all_evidence_is_of_bounded_size(session: Session) -> None:
    sizes = {path: path.stat().st_size for path in Path(session.run_dir).rglob("*") if path.is_file()}
    assert max(sizes.values()) < 1.1 * LOG_LIMIT_BYTES, max(sizes, key=sizes.__getitem__)
