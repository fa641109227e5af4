"""Certificates need all three witnesses, each with its own verdict, on the very folder that is certified."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench import certification, taskfile
from pytest_deploybench.certification import State
from pytest_deploybench.model import Check, Domain, MachineFacts, Outcome, RunRecord, Termination, TrialRecord, Verdict
from tests.support.task_folder import write_task

DIGEST = "d" * 64


def trial(agent: str, verdict: Verdict) -> TrialRecord:
    return TrialRecord(
        task="spin_tse11",
        agent=agent,
        model=None,
        attempt=1,
        verdict=verdict,
        reason=f"{agent} says so",
        termination=Termination.FINISHED,
        checks=(Check("test_builds", 2, Outcome.PASSED, 1.0), Check("test_counts", 2, Outcome.FAILED, 1.0)),
        durations={"agent": 12.5},
        seed=7,
        run_seed=1,
        domain=Domain.SYSTEMS,
        labels=("systems",),
        task_digest=DIGEST,
        folder=f"spin_tse11/{agent}/attempt-01",
        started_at="2026-01-01T00:00:00+00:00",
        machine=MachineFacts("qemu", "image", "tcg", 10.0),
    )


def witnesses() -> list[TrialRecord]:
    return [trial("reference", Verdict.PASSED), trial("noop", Verdict.FAILED), trial("shallow", Verdict.FAILED)]


def test_three_good_witnesses_certify() -> None:
    assert certification.shortcomings("spin_tse11", DIGEST, witnesses()) == []


@pytest.mark.parametrize("index", range(3))
def test_a_missing_witness_is_named(index: int) -> None:
    trials = witnesses()
    agent = trials.pop(index).agent
    assert certification.shortcomings("spin_tse11", DIGEST, trials) == [f"spin_tse11: no trial of {agent}"]


@pytest.mark.parametrize(
    ("index", "verdict"),
    [(0, Verdict.FAILED), (0, Verdict.INVALID), (1, Verdict.PASSED), (2, Verdict.PASSED), (2, Verdict.INVALID)],
)
def test_a_witness_that_ends_otherwise_forbids_the_certificate(index: int, verdict: Verdict) -> None:
    trials = witnesses()
    trials[index] = replace(trials[index], verdict=verdict)
    (problem,) = certification.shortcomings("spin_tse11", DIGEST, trials)
    assert f"{trials[index].agent} ended {verdict}" in problem


@pytest.mark.parametrize("index", range(3))
def test_a_witness_that_did_not_end_well_forbids_the_certificate(index: int) -> None:
    trials = witnesses()
    trials[index] = replace(trials[index], termination=Termination.CRASHED)
    (problem,) = certification.shortcomings("spin_tse11", DIGEST, trials)
    assert f"{trials[index].agent} ended by crashed" in problem


def test_a_folder_changed_meanwhile_forbids_the_certificate() -> None:
    trials = witnesses()
    trials[1] = replace(trials[1], task_digest="e" * 64)
    (problem,) = certification.shortcomings("spin_tse11", DIGEST, trials)
    assert "the folder changed while noop ran" in problem


def test_a_certificate_survives_the_way_to_disk_and_names_what_failed(tmp_path: Path) -> None:
    run = RunRecord("run", "then", "now", ("pytest",), "qemu", 1, {"python": "3.11"}, tuple(witnesses()))
    content = certification.certificate("spin_tse11", DIGEST, run)
    certification.write(tmp_path, content)
    assert certification.read(tmp_path) == content
    assert (content.digest, content.provider, content.acceleration) == (DIGEST, "qemu", "tcg")
    assert content.witnesses["shallow"].failed_checks == ("test_counts",)


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", "\xff"])
def test_an_unreadable_certificate_is_none_and_certifies_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / certification.FILENAME).write_bytes(text.encode("latin-1"))
    assert certification.read(tmp_path) is None
    assert certification.state(tmp_path) is State.UNFIT


def certified(folder: Path) -> Path:
    """A task with a fresh certificate."""
    task = write_task(folder)
    digest = taskfile.digest(task)
    trials = [replace(each, task=task.name, task_digest=digest) for each in witnesses()]
    certification.write(task, certification.certificate(task.name, digest, run("now", *trials)))
    return task


def test_a_fresh_certificate_certifies_and_none_does_not(tmp_path: Path) -> None:
    task = certified(tmp_path)
    assert certification.state(task) is State.CERTIFIED
    (task / certification.FILENAME).unlink()
    assert certification.state(task) is State.MISSING


def test_any_change_of_a_folder_makes_its_certificate_stale(tmp_path: Path) -> None:
    task = certified(tmp_path)
    with (task / "instruction.md").open("a") as instruction:
        instruction.write("\n")
    assert certification.state(task) is State.STALE


def test_a_certificate_of_another_task_or_of_other_verdicts_is_none(tmp_path: Path) -> None:
    task = certified(tmp_path)
    path = task / certification.FILENAME
    good = path.read_text()
    path.write_text(good.replace(task.name, "other_venue20"))
    assert certification.state(task) is State.UNFIT
    path.write_text(good.replace("PASSED", "FAILED"))
    assert certification.state(task) is State.UNFIT


def test_what_is_no_benchmark_certifies_nothing() -> None:
    trials = witnesses()
    trials[0] = replace(
        trials[0], machine=MachineFacts("rootfs", "image", "native", 1.0, no_benchmark="a part of this host")
    )
    assert not certification.testifies(trials[0], DIGEST)
    (problem,) = certification.shortcomings("spin_tse11", DIGEST, trials)
    assert problem == "spin_tse11: reference ran on rootfs, which certifies nothing: a part of this host"


@pytest.mark.parametrize(
    ("change", "testifies"),
    [
        ({}, True),
        ({"verdict": Verdict.FAILED}, False),
        ({"task_digest": "e" * 64}, False),
        ({"agent": "openhands"}, False),
    ],
)
def test_a_trial_testifies_for_its_digest_with_its_verdict(change: dict[str, Any], testifies: bool) -> None:
    assert certification.testifies(replace(trial("reference", Verdict.PASSED), **change), DIGEST) is testifies


def run(finished_at: str, *trials: TrialRecord) -> RunRecord:
    return RunRecord("run", "", finished_at, (), "qemu", 1, {}, trials)


def test_witnesses_of_several_runs_are_taken_together() -> None:
    reference, noop, shallow = witnesses()
    merged = certification.merged([run("2026-01-02", shallow, noop), run("2026-01-01", reference)])
    assert certification.shortcomings("spin_tse11", DIGEST, merged.trials) == []
    assert merged.finished_at == "2026-01-02"


def test_the_latest_trial_counts_but_one_that_judged_nothing_does_not_hide_an_earlier_one() -> None:
    good, bad = trial("reference", Verdict.PASSED), trial("reference", Verdict.FAILED)
    nothing = trial("reference", Verdict.INVALID)
    assert certification.merged([run("2", bad), run("1", good)]).trials == (bad,)
    assert certification.merged([run("2", nothing), run("1", good)]).trials == (good,)
