"""The verdict table over all combinations of outcomes, faults and terminations."""

from __future__ import annotations

from itertools import product

import pytest

from pytest_deploybench.model import Check, Fault, Outcome, Termination, Verdict
from pytest_deploybench.verdict import first_line, judge

FAULTS = [None, *Fault]
TERMINATIONS = [None, *Termination]
VOIDING = {Fault.USER, Fault.MODEL_API, Fault.TASK}
EXPECTED = 3


def check(outcome: Outcome, name: str = "test_it", message: str = "") -> Check:
    return Check(name, 2, outcome, 0.1, message)


def checks_of(*outcomes: Outcome) -> list[Check]:
    return [check(outcome, f"test_{number}", f"cause {number}") for number, outcome in enumerate(outcomes)]


EVERY_TRIAL = [
    (outcomes, fault, termination)
    for length in range(EXPECTED + 2)
    for outcomes in product(Outcome, repeat=length)
    for fault in FAULTS
    for termination in TERMINATIONS
]


def test_failed_always_rests_on_the_agents_doing() -> None:
    for outcomes, fault, termination in EVERY_TRIAL:
        verdict, _ = judge(checks_of(*outcomes), fault, termination, expected=EXPECTED)
        bad = [outcome for outcome in outcomes if outcome in (Outcome.FAILED, Outcome.ERROR)]
        evidence = bad[:1] == [Outcome.FAILED] and fault not in VOIDING and termination is not Termination.MACHINE_LOST
        assert (verdict is Verdict.FAILED) == (evidence or fault is Fault.AGENT), (outcomes, fault, termination)


def test_passed_means_that_every_expected_claim_holds_and_nothing_broke() -> None:
    for outcomes, fault, termination in EVERY_TRIAL:
        verdict, _ = judge(checks_of(*outcomes), fault, termination, expected=EXPECTED)
        proven = outcomes == (Outcome.PASSED,) * EXPECTED and fault is None
        assert (verdict is Verdict.PASSED) == (proven and termination is not Termination.MACHINE_LOST)


def test_every_reason_is_one_line_that_says_something() -> None:
    for outcomes, fault, termination in EVERY_TRIAL:
        _, reason = judge(checks_of(*outcomes), fault, termination, expected=EXPECTED)
        assert reason.strip()
        assert "\n" not in reason


@pytest.mark.parametrize("termination", [t for t in TERMINATIONS if t is not Termination.MACHINE_LOST])
def test_how_the_agent_ended_does_not_change_the_verdict(termination: Termination | None) -> None:
    for outcomes in product(Outcome, repeat=EXPECTED):
        finished = judge(checks_of(*outcomes), None, Termination.FINISHED, expected=EXPECTED)
        assert judge(checks_of(*outcomes), None, termination, expected=EXPECTED) == finished


@pytest.mark.parametrize(
    ("outcomes", "fault", "termination", "verdict", "reason"),
    [
        ("ppp", None, Termination.TIME_BUDGET, Verdict.PASSED, "all 3 checks passed"),
        ("pff", None, Termination.FINISHED, Verdict.FAILED, "test_1: cause 1"),
        ("fee", Fault.PROVIDER, Termination.FINISHED, Verdict.FAILED, "test_0: cause 0"),
        ("eff", None, Termination.FINISHED, Verdict.INVALID, "test_0: cause 0"),
        ("pep", Fault.VERIFIER, Termination.FINISHED, Verdict.INVALID, "the verifier broke: test_1: cause 1"),
        ("fff", Fault.MODEL_API, Termination.CRASHED, Verdict.INVALID, "the model API broke"),
        ("fff", None, Termination.MACHINE_LOST, Verdict.INVALID, "the machine was lost while the agent worked"),
        ("eee", Fault.AGENT, Termination.MACHINE_LOST, Verdict.FAILED, "test_0: cause 0"),
        ("", Fault.AGENT, Termination.CRASHED, Verdict.FAILED, "the agent made the machine unusable"),
        ("", Fault.PROVIDER, None, Verdict.INVALID, "the provider or the machine broke"),
        ("", None, None, Verdict.INVALID, "no check ran"),
        ("pp", None, Termination.FINISHED, Verdict.INVALID, "only 2 of 3 checks ran"),
        ("pf", None, Termination.FINISHED, Verdict.FAILED, "test_1: cause 1"),
        ("pppp", None, Termination.FINISHED, Verdict.INVALID, "4 checks were reported where the task has 3"),
        ("sss", None, None, Verdict.INVALID, "not judged, every check was skipped: cause 0"),
        ("psp", None, Termination.FINISHED, Verdict.INVALID, "not fully judged, 1 of 3 checks skipped, first test_1"),
    ],
)
def test_the_reason_names_the_first_cause(
    outcomes: str, fault: Fault | None, termination: Termination | None, verdict: Verdict, reason: str
) -> None:
    by_letter = {outcome.value[0]: outcome for outcome in Outcome}
    judged = judge(checks_of(*(by_letter[o] for o in outcomes)), fault, termination, expected=EXPECTED)
    assert judged[0] is verdict
    assert judged[1].startswith(reason)


def test_a_cause_is_the_first_line_that_says_something_and_is_bounded() -> None:
    failing = check(Outcome.FAILED, message="\n   \n  AssertionError: 3 != 4\n  second line")
    assert judge([failing], None, None, expected=1) == (Verdict.FAILED, "test_it: AssertionError: 3 != 4")
    assert judge([check(Outcome.FAILED)], None, None, expected=1) == (Verdict.FAILED, "test_it")
    assert len(first_line("x" * 10_000)) == 300
