"""Made-up runs for the report tests: whole values of the real types, with realistic causes."""

from __future__ import annotations

from dataclasses import replace

from pytest_deploybench.model import (
    AgentRun,
    Category,
    Check,
    Domain,
    Fault,
    Finding,
    MachineFacts,
    Outcome,
    RunRecord,
    Termination,
    TrialKey,
    TrialRecord,
    Try,
    Verdict,
    Vitals,
)

FACTS = MachineFacts("qemu", "debian-12-3f9c2a", "tcg", 9.6, "KVM is present, but a test guest did not run under it")


def trial(
    task: str,
    verdict: Verdict = Verdict.PASSED,
    reason: str = "all 7 checks passed",
    *,
    model: str | None = None,
    attempt: int = 1,
    domain: Domain = Domain.SYSTEMS,
    labels: tuple[str, ...] = ("easy", "smoke", "lang_c"),
    seconds: float = 754.0,
) -> TrialRecord:
    """A trial with one check that ended as its verdict says."""
    outcome = {Verdict.PASSED: Outcome.PASSED, Verdict.FAILED: Outcome.FAILED, Verdict.INVALID: Outcome.ERROR}[verdict]
    agent = "openhands" if model else "reference"
    return TrialRecord(
        task=task,
        agent=agent,
        model=model,
        attempt=attempt,
        verdict=verdict,
        reason=reason,
        termination=Termination.FINISHED,
        checks=(Check("test_solver_was_built", 2, outcome, 0.4, "" if outcome is Outcome.PASSED else reason),),
        durations={"machine": 1.9, "seed": 2.5, "agent": 600.25, "experiment": 121.0, "total": seconds},
        seed=1234567890123456789,
        run_seed=42,
        domain=domain,
        labels=(domain.value, *labels),
        task_digest="9f86d081884c7d65",
        folder=TrialKey(task, agent, model, attempt).folder.as_posix(),
        started_at="2026-01-02T03:04:05Z",
        machine=FACTS,
        agent_run=AgentRun(Termination.FINISHED, 600.25, 5760.0, exit_status=0, claimed_success=True),
    )


def with_everything() -> TrialRecord:
    """A trial in which no field is empty."""
    return replace(
        trial("minisat_sat03", Verdict.FAILED, "test_x: no"),
        findings=(Finding("missing-header", Category.BUILD, 12, "a.c:1: zlib.h", "why", "how", 0.9),),
        tries=(Try(1, "m-1", 31.5, Fault.PROVIDER, "lost"), Try(2, None, 4.0)),
        vitals=Vitals(beats=9, missed=1, oom_kills=2, least_memory_mb=100, least_disk_mb=200),
        kept="db-1a2b3c4d",
        verified_again="20260101T000000.000Z",
        resumed_from="20260101T000000.000Z",
    )


def run(*trials: TrialRecord, swept: tuple[str, ...] = ()) -> RunRecord:
    """A session that held these trials."""
    return RunRecord(
        run_id="2026-01-02T03-04-05-7f3a",
        started_at="2026-01-02T03:04:05Z",
        finished_at="2026-01-02T04:01:25Z",
        command=("pytest", "--deploybench-agent=reference", "-m", "smoke"),
        provider="qemu",
        run_seed=42,
        versions={"pytest_deploybench": "0.1.0", "python": "3.11.2"},
        trials=trials,
        swept=swept,
    )
