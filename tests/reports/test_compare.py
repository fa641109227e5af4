"""A comparison speaks of what both sides were judged on, and tells what it leaves out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import RunRecord, TrialRecord, Verdict
from pytest_deploybench.reports.compare import Comparison, compare, pairs
from pytest_deploybench.reports.statistics import MCNEMAR, RESAMPLED, Tally
from pytest_deploybench.reports.terminal_comparison import render_comparison
from tests.reports.runs import run, trial

PASSED, FAILED, INVALID = Verdict


def by(model: str, **verdicts: Verdict) -> RunRecord:
    """A run of one model on tasks that ended like this."""
    return run(*(trial(task, verdict, f"{task} did not do", model=model) for task, verdict in verdicts.items()))


def of(a: RunRecord, b: RunRecord) -> Comparison:
    ((left, right),) = pairs(a, b)
    return compare(left, right)


ONE = by("m", a=PASSED, b=PASSED, c=FAILED, d=INVALID, e=PASSED)
TWO = by("n", a=PASSED, b=FAILED, c=PASSED, d=PASSED, f=FAILED)


def test_rates_and_contrasts_are_of_shared_tasks_only() -> None:
    found = of(ONE, TWO)
    assert (found.tally_a, found.tally_b) == (Tally(passed=2, failed=1), Tally(passed=2, failed=1))
    assert [(each.task, each.a.passed, each.b.passed, each.cause) for each in found.contrasts] == [
        ("b", 1, 0, "b did not do"),
        ("c", 0, 1, "c did not do"),
    ]
    assert found.contrasts[0].folder == "b/openhands+n/attempt-01"
    assert found.paired is not None
    assert (found.paired.tasks, found.paired.method) == (3, MCNEMAR)
    assert found.left_out == {"A was not judged": ("d",), "only A has it": ("e",), "only B has it": ("f",)}


def test_a_task_that_was_changed_is_not_compared() -> None:
    changed = replace(TWO, trials=tuple(replace(each, task_digest="new") for each in TWO.trials if each.task == "a"))
    found = of(ONE, changed)
    assert found.left_out["the task was changed between the two"] == ("a",)
    assert found.paired is None
    assert "share no task on which both were judged" in render_comparison(found, 80, False)


def test_several_attempts_are_clustered() -> None:
    def thrice(record: RunRecord) -> RunRecord:
        return replace(record, trials=tuple(replace(t, attempt=n) for t in record.trials for n in (1, 2, 3)))

    found = of(thrice(ONE), thrice(TWO))
    assert found.paired is not None
    assert (found.paired.tasks, found.paired.method) == (3, RESAMPLED)
    assert found.tally_a == Tally(passed=6, failed=3)
    assert found.interval_a is not None
    assert found.interval_a.high - found.interval_a.low > 0.6


def test_settings_that_differ_are_told() -> None:
    other = replace(
        TWO,
        run_seed=7,
        settings={"--deploybench-max-tokens": "9"},
        trials=tuple(replace(each, agent="mini-swe-agent", machine=None) for each in TWO.trials),
    )
    told = {each.name: (each.a, each.b) for each in of(ONE, other).settings}
    assert told["agent"] == ("openhands", "mini-swe-agent")
    assert told["acceleration"] == ("tcg", "unknown")
    assert told["--deploybench-seed"] == ("42", "7")
    assert told["--deploybench-max-tokens"] == ("not told", "9")
    assert of(ONE, TWO).settings == ()


def names(*chosen: str, a: RunRecord, b: RunRecord) -> list[tuple[str, str]]:
    return [(left.contestant, right.contestant) for left, right in pairs(a, b, chosen)]


def both(*trials: TrialRecord) -> RunRecord:
    return run(*trials)


MANY = both(trial("a", model="m"), trial("a", model="n"), trial("a", model="o"))


def test_who_is_compared_is_what_a_user_can_only_have_meant() -> None:
    assert names(a=ONE, b=TWO) == [("m", "n")]
    assert names(a=MANY, b=both(*MANY.trials[1:])) == [("n", "n"), ("o", "o")]
    pair = both(*MANY.trials[:2])
    assert names(a=pair, b=pair) == [("m", "n")]
    assert names("o", "m", a=MANY, b=MANY) == [("o", "m")]
    assert names("n", a=MANY, b=TWO) == [("n", "n")]


@pytest.mark.parametrize(
    ("a", "b", "chosen", "message"),
    [
        (MANY, MANY, (), "m, n, o: say which two"),
        (MANY, by("x", a=PASSED), (), "nobody took part in both runs: m, n, o in the first, x in the second"),
        (ONE, TWO, ("m", "x"), "--of=x: nobody in run .* It has n"),
        (ONE, TWO, ("m", "n", "m"), "3 times"),
        (run(), ONE, (), "no trial in the first"),
    ],
)
def test_a_choice_that_is_not_clear_is_refused(
    a: RunRecord, b: RunRecord, chosen: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        pairs(a, b, chosen)


def test_the_comparison_on_a_terminal() -> None:
    text = render_comparison(of(ONE, TWO), 80, False)
    assert re.search(r"^A +m +2026\S+ +2/3 +67 % +21-94 % +0$", text, re.M)
    assert "B less A: +0 points" in text
    assert re.search(r"^ +b +1/1 +0/1 +b did not do$", text, re.M)
    assert "only A has it (1): e" in text
    assert "Not the same on both sides" not in text


HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/nope]\r\nsecond"


@pytest.mark.parametrize("width", [1, 60, 80, 120])
def test_a_comparison_is_harmless_and_never_too_wide(width: int) -> None:
    bad = run(*(trial(f"{number}{HOSTILE}", FAILED, HOSTILE * 9, model="m") for number in range(9)))
    good = run(
        *(trial(each.task, model="n" + HOSTILE) for each in bad.trials), trial("x" + HOSTILE, model="n" + HOSTILE)
    )
    text = render_comparison(of(bad, good), width, False)
    assert max(map(len, text.splitlines())) <= max(width, 60)
    assert "\x1b" not in text
    assert "owned" not in text
