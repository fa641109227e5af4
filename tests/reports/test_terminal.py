"""The terminal report is readable at 80 columns, complete, and deaf to what a guest writes into it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_deploybench.model import Category, Domain, Fault, Finding, ModelUse, RunRecord, Try, Verdict
from pytest_deploybench.reports.baseline import BASELINES
from pytest_deploybench.reports.terminal import render
from tests.reports.runs import run, trial

LONG = "test_union_covers_more: AssertionError: " + "the members store the same states " * 8
FIVE = (
    trial("minisat_sat03", labels=("medium", "legacy", "smoke", "lang_cpp")),
    trial("minimap2_bioinf18", domain=Domain.SCIENTIFIC),
    trial("libsvm_tist11", domain=Domain.AI, labels=("easy", "smoke", "lang_cpp")),
    trial("spin_tse11", Verdict.FAILED, LONG, labels=("medium", "legacy", "smoke", "lang_c")),
    replace(
        trial("simdjson_vldbj19", Verdict.INVALID, "the machine broke: it does not answer"),
        tries=(Try(1, "m-1", 31.5, Fault.PROVIDER, "lost"),),
    ),
)
MODELS = tuple(f"model-number-{number}" for number in range(7))


def flat(text: str) -> str:
    return " ".join(text.split())


def many() -> RunRecord:
    return run(
        *(
            replace(one, model=model, agent="openhands", folder=f"{one.task}/{model}/attempt-01")
            for model in MODELS
            for one in FIVE
        )
    )


def test_the_report_of_five_trials() -> None:
    text = render(run(*FIVE, swept=("machine db-1 of run 7 (its owner is dead)",)), 80, False)
    assert re.search(r"^reference +3/4 +75 % +30-95 % +1 +60 % +1 h 00 min$", text, re.M)
    assert re.search(r"^domain +ai +1/1$", text, re.M)
    assert re.search(r"^ +systems +1/2$", text, re.M)
    assert flat(LONG) in flat(text)
    assert "evidence: spin_tse11/reference/attempt-01" in text
    assert "INVALID (1), not counted in the rate" in text
    assert "the machine broke: it does not answer" in text
    assert "Run the trial again (pytest --lf)" in text
    assert "machine db-1 of run 7 (its owner is dead)" in text
    assert "5 trials in 57 min on qemu with tcg, 9.6 times slower than native." in flat(text)


def test_what_does_not_exist_is_not_shown() -> None:
    text = render(run(FIVE[0]), 80, False)
    assert "1 trial in" in text
    for absent in ("FAILED", "with", "passed/valid by", "Left behind", "evidence"):
        assert absent not in text.replace("on qemu with tcg", "")


def test_where_nothing_was_judged_no_rate_is_invented() -> None:
    assert re.search(r"^reference +0/0 +- +- +1 +0 % ", render(run(FIVE[4]), 80, False), re.M)
    text = render(run(swept=("machine db-1",)), 80, False)
    assert "No trial was recorded." in text
    assert "machine db-1" in text


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("width", [1, 60, 79, 80, 100, 200])
@pytest.mark.parametrize("record", [run(), run(*FIVE), many()], ids=["empty", "five", "many"])
def test_no_line_is_too_wide(record: RunRecord, width: int, color: bool) -> None:
    text = render(record, width, color)
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= max(width, 60)
    assert "…" not in text


def test_a_narrow_terminal_keeps_names_readable_and_leaves_out_machine_time() -> None:
    assert " 1 h 00 min\n" in render(run(*FIVE), 80, False)
    assert re.search(r"^reference +3/4 +75 % +30-95 % +1 +60 %$", render(run(*FIVE), 79, False), re.M)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_contestant_is_named_in_full(width: int) -> None:
    text = render(many(), width, False)
    for model in MODELS:
        assert re.search(rf"^{model} +3/4 ", text, re.M)
        # One failed and one invalid trial each, with contestant and folder.
        assert "".join(text.split()).count(f"{model}/attempt-01") == 2


HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/nope] :boom: [link=file:///etc]y[/link]\r\nsecond\x9b31m \u202e\ud83d"


@pytest.mark.parametrize("color", [False, True])
def test_a_guest_cannot_act_on_the_terminal(color: bool) -> None:
    bad = replace(trial("t" + HOSTILE, Verdict.FAILED, HOSTILE), folder="f" + HOSTILE)
    text = render(run(bad, replace(bad, verdict=Verdict.INVALID, model="m" + HOSTILE), swept=(HOSTILE,)), 200, color)
    left = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert color or left == text
    assert not re.search(r"[^\n\x20-\x7e\xa0-\u2027\u2030-\ud7ff]", left)
    assert "owned" not in left
    assert "[bold red]x[/nope] :boom: [link=file:///etc]y[/link] second \\u202e\\ud83d" in left
    assert "\x1b[31mx" not in text


def test_colour_is_as_asked_for_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    colored = render(run(*FIVE), 80, True)
    assert "\x1b[1;31mFAILED" in colored
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert render(run(*FIVE), 80, False) == re.sub(r" +$", "", re.sub(r"\x1b\[[0-9;]*m", "", colored), flags=re.M)


# --- effort, attempts, causes, figures of others ------------------------------------------------------------------


def used(tokens: int, cost_usd: float | None, unmetered: int = 0) -> ModelUse:
    return ModelUse(9, tokens, 0, 500_000, 0, cost_usd, unmetered, 0.0)


def test_effort_is_a_mean_over_those_that_know_it() -> None:
    one = trial("a", model="m")
    known = replace(one, model_use=used(1_500_000, 3.0))
    unmetered = replace(trial("b", Verdict.FAILED, "x", model="m"), model_use=used(9, None, unmetered=1))
    text = render(run(known, unmetered), 80, False)
    assert re.search(r"^m +1/2 +2 M \(1\) +\$3\.00 \(1\) +\$3\.00 \(1\) +10 min$", text, re.M)
    assert "tokens" not in render(run(one), 80, False)


def test_several_attempts_tell_chances_and_a_wider_interval() -> None:
    verdicts = {"a": Verdict.PASSED, "b": Verdict.FAILED}
    trials = [trial(task, verdicts[task], "x", model="m", attempt=n) for task in verdicts for n in (1, 2, 3)]
    text = render(run(*trials, trial("c", model="m")), 80, False)
    assert re.search(r"^ +m +2 +3 +50 % +50 %$", text, re.M)
    # Design effect 3.58, worked out by hand: no more than 1.95 independent trials.
    assert re.search(r"^m +4/7 +57 % +12-93 %", text, re.M)
    assert "pass@k" not in render(run(*trials[:1]), 80, False)


def test_published_figures_stand_beside_ours() -> None:
    ours = run(trial("a", model="gpt-5.3-codex"), trial("b", Verdict.FAILED, "x", model="gpt-5.3-codex"), trial("a"))
    text = render(ours, 60, False, BASELINES["paper"])
    assert re.search(r"^  gpt-5\.3-codex +50/51\.0 +-/52\.0 +-/42\.9 +50/52\.6$", text, re.M)
    assert re.search(r"^  grok-4\.20 +-/11\.8 +-/ 8\.0 +-/14\.3 +-/15\.8$", text, re.M)
    assert re.search(r"^  reference +100/ +- ", text, re.M)
    assert "read its figures as a scale" in flat(text)
    assert "arXiv" not in render(ours, 60, False)


def test_many_failures_take_two_lines_each_and_are_counted_by_cause() -> None:
    found = (Finding("missing-header", Category.BUILD, 12, "a.c:1: zlib.h", "why", "how", 0.9),)
    doubted = (replace(found[0], confidence=0.2),)
    failed = [trial(f"t{number}", Verdict.FAILED, f"cause {number}", model="m") for number in range(21)]
    failed[0], failed[1] = replace(failed[0], findings=found), replace(failed[1], findings=doubted)
    text = render(run(*failed), 80, False)
    assert "  t20/openhands+m/attempt-01\n    cause 20\n" in text
    assert re.search(r"^build +1$", text, re.M)
    assert re.search(r"^wrong or no result +20$", text, re.M)
    assert flat(text).endswith("Passed: m 0 %.")
    assert "failed for" not in render(run(*failed[:20]), 80, False)


def test_a_report_of_several_runs_says_how_they_were_put_together() -> None:
    text = render(run(FIVE[0]), 80, False, notes=["a/m/attempt-01: PASSED of x is taken" + HOSTILE])
    assert "How these runs were put together\n  a/m/attempt-01: PASSED of x is taken" in text
    assert "\x1b" not in text
