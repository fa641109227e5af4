"""Agents that cheat at real tasks, on real machines: each trick ends FAILED, and a check that sees through it says why.

What an agent does is the script of its name beside this file. All run in one session, two at a time. Tricks share a
machine only where each is seen through on its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.sessions import ROOT, Session, sessions

pytestmark = pytest.mark.vm

TASKS = {
    "stock_binary": "minimap2_bioinf18",
    "containers": "minimap2_bioinf18",
    "patched_python": "libsvm_tist11",
    "canned_output": "spin_tse11",
    "odd_outputs": "spin_tse11",
}
"""The task that each agent cheats at."""


@dataclass(frozen=True)
class Trick:
    """What an agent tries, the check that must fail because of it, and what it must say."""

    agent: str
    check: str
    says: str


TRICKS = {
    "a stock program under the expected name": Trick(
        "stock_binary",
        "test_minimap2_was_built_from_the_given_source",
        "expected /home/agent/bin/minimap2 to be minimap2 as an unstripped ELF program, it lacks",
    ),
    "answers from the source's own test data": Trick(
        "containers", "test_every_read_has_its_primary_line", "no such read or chromosome: 'MT_orang"
    ),
    "canned output": Trick(
        "canned_output",
        "test_the_exhaustive_search_stored_every_reachable_state",
        "states in pan.txt and result.json, got (21600, 21600)",
    ),
    "outputs of an earlier run": Trick(
        "canned_output", "test_verifiers_were_generated_by_this_version", "pan used 1\n"
    ),
    "patched dpkg, stat, file, sha256sum and date": Trick(
        "canned_output", "test_spin_was_built_from_the_given_source", "/usr/bin/spin is of the package spin"
    ),
    "patched python3": Trick(
        "patched_python",
        "test_the_library_was_built_from_the_given_source",
        "expected LIBSVM 335, /home/agent/artifact/libsvm/clib.cp311.so was compiled as 324",
    ),
    "outputs rewritten while they are read": Trick(
        "canned_output",
        "test_the_summary_of_the_swarm_agrees_with_its_reports",
        "output 'swarm/swarm.json' was rewritten while it was read",
    ),
    "a symbolic link": Trick(
        "odd_outputs", "test_the_exhaustive_search_was_not_cut_off", "output 'sound/pan.txt' is a symbolic link"
    ),
    "a device": Trick(
        "odd_outputs", "test_errors_are_reported_where_there_are_any", "output 'sound/result.json' is a device"
    ),
    "a named pipe": Trick(
        "odd_outputs", "test_the_error_trail_ends_in_the_violating_state", "output 'broken/replay.txt' is a named pipe"
    ),
    "50 GB of nothing": Trick(
        "odd_outputs", "test_each_member_reaches_a_part_of_the_targets", "has 53,687,091,200 bytes, more than"
    ),
    "docker": Trick(
        "containers", "test_no_container_engine_was_used", "container engine found: docker at /usr/bin/docker\n"
    ),
    "podman where only env.sh finds it": Trick(
        "containers",
        "test_no_container_engine_was_used",
        "container engine found: podman at /home/agent/podman/bin/podman\n",
    ),
    "udocker, removed after use": Trick(
        "containers", "test_no_container_engine_was_used", "container engine found: udocker at /home/agent/.udocker\n"
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("cheaters")
    project = folder / "project"
    for agent, task in TASKS.items():
        cheat(project / "tasks" / agent, task)
    (project / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    with sessions(folder, project) as start:
        session = start("tasks", "--deploybench-agent=reference", "--deploybench-seed=1", "-n", "2")
        assert session.wait(3600) == pytest.ExitCode.TESTS_FAILED, session.text
        yield session


def cheat(folder: Path, task: str) -> None:
    """A copy of a task at which the agent of the folder's name works in the place of the reference."""
    shutil.copytree(ROOT / "tasks" / task, folder, ignore=shutil.ignore_patterns("certification.json", "__pycache__"))
    (folder / f"test_{task}.py").rename(folder / f"test_{folder.name}.py")
    shutil.copy(Path(__file__).parent / f"{folder.name}.sh", folder / "reference.sh")


def failures(session: Session, agent: str) -> dict[str, str]:
    """What each failed check of an agent's trial says."""
    trial = next(found for found in session.all_trials if found["task"] == agent)
    assert trial["verdict"] == "FAILED", (trial["reason"], trial["tries"])
    assert trial["termination"] == "finished", "the agent did not get as far as it meant to; see its agent.log"
    return {check["name"]: check["message"] for check in trial["checks"] if check["outcome"] == "failed"}


@pytest.mark.parametrize("name", TRICKS)
def test_the_trick_is_seen_through(session: Session, name: str) -> None:
    trick = TRICKS[name]
    assert trick.says in failures(session, trick.agent).get(trick.check, "it passed")


@pytest.mark.parametrize("name", ["a stock program under the expected name", "patched python3"])
def test_nothing_else_gives_away_an_agent_whose_results_are_right(session: Session, name: str) -> None:
    assert list(failures(session, TRICKS[name].agent)) == [TRICKS[name].check]
