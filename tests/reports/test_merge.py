"""Several runs become one in which each trial counts once, whoever holds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_deploybench.model import RunRecord, TrialRecord, Verdict
from pytest_deploybench.reports.merge import Merged, merge
from tests.reports.runs import run, trial

PASSED, FAILED, INVALID = Verdict
EARLY, LATE = "2026-01-02T03:04:05Z", "2026-01-03T03:04:05+01:00"


def at(instant: str, record: TrialRecord, **changes: object) -> TrialRecord:
    return replace(record, started_at=instant, **changes)  # type: ignore[arg-type]


def of(*runs: RunRecord) -> Merged:
    return merge(runs, [f"run-{number}" for number, _ in enumerate(runs)])


def test_the_parts_of_shards_become_the_whole() -> None:
    one = replace(run(trial("b"), swept=("db-1",)), run_id="one", finished_at=LATE)
    two = replace(run(trial("a"), trial("b", model="m")), run_id="two", started_at="2026-01-01T00:00:00Z")
    merged = of(one, two)
    assert [(each.task, each.model) for each in merged.run.trials] == [("a", None), ("b", "m"), ("b", None)]
    assert [merged.origins[each.key] for each in merged.run.trials] == [1, 1, 0]
    assert (merged.run.run_id, merged.run.started_at, merged.run.finished_at) == ("one + two", two.started_at, LATE)
    assert merged.run.swept == ("db-1",)
    assert merged.notes == ()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("early", "late", "taken", "why"),
    [
        ((PASSED, {}), (INVALID, {}), PASSED, "judged nothing"),
        ((INVALID, {}), (FAILED, {}), FAILED, "judged nothing"),
        ((FAILED, {}), (PASSED, {}), FAILED, "second chance"),
        ((PASSED, {}), (FAILED, {}), PASSED, "second chance"),
        ((FAILED, {}), (PASSED, {"verified_again": "r"}), PASSED, "verified again"),
        ((PASSED, {}), (FAILED, {"task_digest": "new"}), FAILED, "task was changed"),
    ],
)
def test_of_two_verdicts_one_counts_and_it_is_told_why(
    order: int, early: tuple[Verdict, dict[str, str]], late: tuple[Verdict, dict[str, str]], taken: Verdict, why: str
) -> None:
    runs = [
        run(at(instant, trial("a", verdict, "x"), **changes))
        for instant, (verdict, changes) in ((EARLY, early), (LATE, late))
    ]
    merged = of(*runs[::order])
    (kept,) = merged.run.trials
    assert kept.verdict is taken
    assert runs[::order][merged.origins[kept.key]].trials == (kept,)
    (note,) = merged.notes
    assert note.startswith("a/reference/attempt-01: ")
    assert why in note


def test_a_run_given_twice_counts_once() -> None:
    whole = run(trial("a"), trial("b", FAILED, "x"))
    merged = of(whole, whole)
    assert merged.run.trials == whole.trials
    assert merged.run.run_id == whole.run_id
    assert all("it is the same trial" in note for note in merged.notes)
    assert len(merged.notes) == 2


def test_a_verdict_that_was_taken_over_is_the_same_trial() -> None:
    first = trial("a", FAILED, "x")
    merged = of(run(first), run(replace(first, resumed_from="one", folder="elsewhere")))
    assert merged.run.trials == (first,)
    assert "it is the same trial" in merged.notes[0]


def test_runs_that_were_not_made_alike_say_so() -> None:
    one = replace(run(trial("a")), settings={"--deploybench-max-tokens": "1000"})
    two = replace(run(trial("a", model="m")), settings={})
    (note,) = of(one, two).notes
    assert note.endswith("--deploybench-max-tokens: 1000 in run-0, not told in run-1")
    (note,) = of(run(trial("a")), run(replace(trial("a", model="m"), task_digest="new"))).notes
    assert note.startswith("a: its folder changed")


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(ValueError, match="no run"):
        of()
