"""A summary says who passed how often, what failed and why, and what to do about what was not judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_deploybench.model import Check, Domain, Fault, Outcome, TrialRecord, Try, Verdict, Vitals
from pytest_deploybench.reports.statistics import Tally
from pytest_deploybench.reports.summary import Summary, summarise
from tests.reports.runs import run, trial

PASSED, FAILED, INVALID = Verdict


def of(*trials: TrialRecord) -> Summary:
    return summarise(run(*trials))


def test_each_contestant_has_a_standing_in_the_order_of_the_run() -> None:
    found = of(
        trial("a", model="gpt-5.3-codex"),
        trial("a", FAILED, "x", model="grok-4.20"),
        trial("b", INVALID, "x", model="gpt-5.3-codex"),
        trial("a"),
    )
    assert [(standing.contestant, standing.tally) for standing in found.standings] == [
        ("gpt-5.3-codex", Tally(passed=1, invalid=1)),
        ("grok-4.20", Tally(failed=1)),
        ("reference", Tally(passed=1)),
    ]


def test_a_model_behind_two_agents_is_two_contestants() -> None:
    one = trial("a", model="m")
    found = of(one, replace(one, agent="mini-swe-agent"), trial("a", model="n"))
    assert [standing.contestant for standing in found.standings] == ["openhands:m", "mini-swe-agent:m", "n"]


def test_a_breakdown_is_made_only_where_it_adds_something() -> None:
    assert of(trial("a"), trial("b"), trial("c", domain=Domain.AI)).breakdowns == ()
    assert of(trial("a"), trial("b", FAILED, "x")).breakdowns == ()
    found = of(trial("a"), trial("b"), trial("c", FAILED, "x", domain=Domain.AI, labels=("hard", "gpu", "lang_cpp")))
    assert [breakdown.axis for breakdown in found.breakdowns] == ["domain", "difficulty", "language"]


def test_groups_hold_each_contestants_tally() -> None:
    found = of(
        trial("a", model="m", labels=("medium", "legacy", "lang_c", "lang_python")),
        trial("b", model="m", labels=("medium", "legacy", "lang_c")),
        trial("c", FAILED, "x", model="m", labels=("easy", "lang_c")),
        trial("a", FAILED, "x", model="n", labels=("medium", "lang_c")),
    )
    groups = {b.axis: {g.name: dict(g.tallies) for g in b.groups} for b in found.breakdowns}
    assert groups["difficulty"] == {
        "easy": {"m": Tally(failed=1)},
        "medium": {"m": Tally(passed=2), "n": Tally(failed=1)},
    }
    assert list(groups["difficulty"]) == ["easy", "medium"]
    assert groups["age"] == {
        "legacy": {"m": Tally(passed=2)},
        "recent": {"m": Tally(failed=1), "n": Tally(failed=1)},
    }
    assert "language" not in groups


def test_a_failed_trial_shows_its_first_cause_and_its_folder() -> None:
    (case,) = of(trial("a"), trial("b", FAILED, "test_x: 3 != 4", model="m", attempt=2)).failed
    assert (case.task, case.contestant, case.cause) == ("b", "m, attempt 2", "test_x: 3 != 4")
    assert case.folder == "b/openhands+m/attempt-02"
    assert case.remedy == ""


@pytest.mark.parametrize(
    ("fault", "outcome", "remedy"),
    [
        (Fault.PROVIDER, Outcome.ERROR, "doctor"),
        (Fault.MODEL_API, Outcome.ERROR, "quota"),
        (Fault.USER, Outcome.ERROR, "Correct the setting"),
        (Fault.TASK, Outcome.ERROR, "The task needs a repair"),
        (Fault.VERIFIER, Outcome.ERROR, "The verifier needs a repair"),
        (Fault.OURS, Outcome.ERROR, "report this"),
        (None, Outcome.ERROR, "The verifier needs a repair"),
        (None, Outcome.SKIPPED, "Choose a provider"),
        (None, Outcome.PASSED, "Let the session run to its end"),
    ],
)
def test_an_invalid_trial_says_what_to_do(fault: Fault | None, outcome: Outcome, remedy: str) -> None:
    record = replace(
        trial("a", INVALID, "x"), checks=(Check("c", 2, outcome, 0.1),), tries=(Try(1, "m-1", 3.0, fault, "e"),)
    )
    (case,) = of(record).invalid
    assert remedy in case.remedy
    assert of(record).failed == ()


def test_the_last_try_decides_what_to_do() -> None:
    tries = (Try(1, "m-1", 3.0, Fault.TASK, "e"), Try(2, "m-2", 3.0, Fault.MODEL_API, "e"))
    (case,) = of(replace(trial("a", INVALID, "x"), tries=tries)).invalid
    assert "quota" in case.remedy


def test_times_are_summed_without_waiting_for_machines() -> None:
    found = of(trial("a"), trial("b"))
    assert found.trials == 2
    assert found.wall_s == 57 * 60 + 20
    assert found.agent_s == 2 * 600.25
    assert found.experiment_s == 2 * 121.0
    assert found.machine_s == 2 * (2.5 + 600.25 + 121.0)
    assert found.machines == ("qemu with tcg, 9.6 times slower than native",)
    assert found.standings[0].machine_s == found.machine_s


def test_swept_machines_are_told() -> None:
    assert summarise(run(swept=("machine db-1",))).swept == ("machine db-1",)


def test_a_run_without_trials_has_a_summary() -> None:
    found = of()
    assert (found.standings, found.breakdowns, found.failed, found.invalid) == ((), (), (), ())


def test_a_failed_trial_tells_of_its_machines_state_and_where_it_is_kept() -> None:
    ill = Vitals(beats=3, oom_kills=2, least_memory_mb=12, least_disk_mb=3)
    (case,) = of(replace(trial("a", FAILED, "x"), vitals=ill, kept="db-1")).failed
    assert case.notes == (
        "out of memory: the machine's kernel killed 2 process(es)",
        "the machine's disk was full",
        "its machine is kept: deploybench vms ssh db-1",
    )
    (case,) = of(replace(trial("a", FAILED, "x"), vitals=Vitals(beats=3, least_disk_mb=5000))).failed
    assert case.notes == ()
