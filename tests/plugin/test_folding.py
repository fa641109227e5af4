"""folding: the phases of a trial's checks become one record."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_deploybench.layer2.challenge import trial_seed
from pytest_deploybench.model import (
    AgentRun,
    Category,
    Fault,
    Finding,
    MachineFacts,
    Outcome,
    Termination,
    TrialKey,
    Try,
    Verdict,
)
from pytest_deploybench.plugin.folding import Phase, Subject, checks, fold
from pytest_deploybench.taskfile import load
from pytest_deploybench.trial import Diary
from tests.support.task_folder import write_task

KEY = TrialKey("toy_venue20", "reference", None, 2)


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject(KEY, load(write_task(tmp_path)), "digest", 42, "2026-01-01T00:00:00+00:00")


def phase(when: str, outcome: str, check: str = "test_a", **more: object) -> Phase:
    return Phase(**{"check": check, "layer": 2, "when": when, "outcome": outcome, "seconds": 1.0, **more})  # type: ignore[arg-type]


def passing(check: str) -> list[Phase]:
    return [phase(when, "passed", check) for when in ("setup", "call", "teardown")]


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        ("setup passed, call passed, teardown passed", Outcome.PASSED),
        ("setup passed, call failed, teardown passed", Outcome.FAILED),
        ("setup passed, call failed, teardown failed", Outcome.FAILED),
        ("setup passed, call passed, teardown failed", Outcome.ERROR),
        ("setup failed, teardown passed", Outcome.ERROR),
        ("setup skipped, teardown passed", Outcome.SKIPPED),
        ("setup passed, call skipped, teardown passed", Outcome.SKIPPED),
        ("setup passed, ??? failed", Outcome.ERROR),
        ("setup passed", None),
    ],
)
def test_the_phases_of_a_check_become_its_outcome(phases: str, outcome: Outcome | None) -> None:
    found = checks([phase(*words.split()) for words in phases.split(", ")])
    assert [check.outcome for check in found] == ([] if outcome is None else [outcome])


def test_a_check_tells_why_it_did_not_pass() -> None:
    found = checks([phase("call", "failed", message="the cause"), phase("teardown", "failed", message="and that too")])
    assert [check.message for check in found] == ["the cause"]


def test_checks_stand_in_the_order_in_which_they_ran() -> None:
    interleaved = [phase("call", "passed", "test_b"), phase("call", "passed", "test_a")]
    assert [check.name for check in checks(interleaved)] == ["test_b", "test_a"]


def test_what_the_diary_knows_is_in_the_record(subject: Subject) -> None:
    diary = Diary(
        started_at="2026-01-02T00:00:00+00:00",
        durations={"machine": 3.0, "agent": 5.0},
        tries=[Try(1, None, 2.0, Fault.PROVIDER, "lost"), Try(2, "db-1", 9.0)],
        facts=MachineFacts("qemu", "image", "tcg", 10.0),
        agent_run=AgentRun(Termination.TIME_BUDGET, 600.0, 600.0),
        findings=[Finding("rule", Category.BUILD, 1, "line", "why", "how", 0.2)],
    )
    record = fold(subject, [*passing("test_a"), *passing("test_b")], diary, expected=2)
    assert (record.verdict, record.reason) == (Verdict.PASSED, "all 2 checks passed")
    assert record.key == KEY
    assert record.termination is Termination.TIME_BUDGET
    assert record.durations == {"machine": 3.0, "agent": 5.0, "checks": 2.0, "total": 6.0}
    assert (record.seed, record.run_seed) == (trial_seed(42, "toy_venue20", 2), 42)
    assert (record.domain, record.labels) == (subject.task.domain, subject.task.labels)
    assert (record.task_digest, record.folder) == ("digest", "toy_venue20/reference/attempt-02")
    assert (record.started_at, record.machine, record.agent_run) == (diary.started_at, diary.facts, diary.agent_run)
    assert (list(record.findings), list(record.tries)) == (diary.findings, diary.tries)


def test_without_a_diary_what_is_known_is_recorded(subject: Subject) -> None:
    record = fold(subject, [phase("???", "failed", message="worker crashed", fault=Fault.OURS)], None, expected=9)
    assert record.verdict is Verdict.INVALID
    assert "worker crashed" in record.reason
    assert (record.termination, record.machine, record.started_at) == (None, None, subject.started_at)


def test_fewer_checks_than_the_task_has_are_no_verdict(subject: Subject) -> None:
    record = fold(subject, passing("test_a"), None, expected=2)
    assert (record.verdict, record.reason[:24]) == (Verdict.INVALID, "only 1 of 2 checks ran (")


def test_the_first_fault_is_the_cause(subject: Subject) -> None:
    phases = [
        phase("setup", "failed", message="no machine", fault=Fault.PROVIDER),
        phase("setup", "failed", "test_b", message="no machine", fault=Fault.OURS),
    ]
    record = fold(subject, phases, None, expected=2)
    assert record.reason == "the provider or the machine broke: test_a: no machine"
