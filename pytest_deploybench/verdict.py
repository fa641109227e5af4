"""Decides what a trial says: checks + fault + termination -> verdict and its first cause.

Promises a reviewer can check: no I/O and no state; the rules are one table, read from top to bottom, and the first
rule that has something to say decides; FAILED is only reached through evidence of the agent's doing; PASSED is only
reached when every expected claim was checked and holds; everything else is INVALID and says why.

How the agent ended does not decide (a timed-out agent whose deployment works has passed), with one exception: if the
machine was lost under the agent, there is nothing left to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pytest_deploybench.model import Check, Fault, Outcome, Termination, Verdict

_CAUSE_LIMIT = 300

_BROKEN: dict[Fault, str] = {
    Fault.USER: "a setting or a file of this run cannot be used",
    Fault.PROVIDER: "the provider or the machine broke",
    Fault.MODEL_API: "the model API broke",
    Fault.VERIFIER: "the verifier broke",
    Fault.TASK: "the task is broken",
    Fault.OURS: "pytest_deploybench broke",
}

# These faults lie before the first check or under all of them: an agent cut off from its model, or given a wrong
# source, may well leave a deployment that fails, but that failure is ours. The other faults strike at one moment of
# the verification, so what was seen before that moment still stands.
_VOIDS_EVERY_CHECK = frozenset({Fault.USER, Fault.MODEL_API, Fault.TASK})


@dataclass(frozen=True)
class _Trial:
    checks: tuple[Check, ...]
    fault: Fault | None
    termination: Termination | None
    expected: int

    def first(self, *outcomes: Outcome) -> Check | None:
        """The earliest check with one of these outcomes; checks are in the order in which they ran."""
        return next((check for check in self.checks if check.outcome in outcomes), None)


def judge(
    checks: Iterable[Check], fault: Fault | None, termination: Termination | None, *, expected: int
) -> tuple[Verdict, str]:
    """The verdict of one trial and its first cause in one sentence.

    `checks` are in the order in which they ran, `fault` is what ended the trial's last try (None if nothing did), and
    `expected` is how many checks the task has, whether or not they were selected.
    """
    trial = _Trial(tuple(checks), fault, termination, expected)
    for verdict, rule in _RULES:
        cause = rule(trial)
        if cause is not None:
            return verdict, cause
    return Verdict.PASSED, "the only check passed" if expected == 1 else f"all {expected} checks passed"


def first_line(message: str) -> str:
    """The first line of a message that says anything, bounded for a table."""
    line = next((text.strip() for text in message.splitlines() if text.strip()), "")
    return line if len(line) <= _CAUSE_LIMIT else line[: _CAUSE_LIMIT - 3] + "..."


def _agents_own_doing(trial: _Trial) -> str | None:
    if trial.fault is not Fault.AGENT:
        return None
    check = trial.first(Outcome.FAILED, Outcome.ERROR)
    return _named(check) if check else "the agent made the machine unusable, so nothing could be verified"


def _nothing_left_to_judge(trial: _Trial) -> str | None:
    if trial.fault in _VOIDS_EVERY_CHECK:
        return _what_broke(trial)
    if trial.termination is Termination.MACHINE_LOST:
        return "the machine was lost while the agent worked, so nothing could be verified"
    return None


def _failure_before_anything_broke(trial: _Trial) -> str | None:
    # The earlier of failure and error decides. A check that failed before the machine was lost is evidence against
    # the deployment. One that failed after our side broke may only show that break, and an INVALID must never be
    # counted as the model's failure.
    check = trial.first(Outcome.FAILED, Outcome.ERROR)
    return _named(check) if check and check.outcome is Outcome.FAILED else None


def _our_side_broke(trial: _Trial) -> str | None:
    # A fault counts even beside checks that all passed: it is handed in only when it ended the trial, so something was
    # not as the checks took it to be.
    return _what_broke(trial) if trial.fault or trial.first(Outcome.ERROR) else None


def _skipped(trial: _Trial) -> str | None:
    # A skipped claim was not checked, and PASSED promises that all were.
    check = trial.first(Outcome.SKIPPED)
    if check is None:
        return None
    count = sum(each.outcome is Outcome.SKIPPED for each in trial.checks)
    if count == len(trial.checks):
        return f"not judged, every check was skipped: {first_line(check.message) or 'no reason given'}"
    return f"not fully judged, {count} of {trial.expected} checks skipped, first {_named(check)}"


def _not_every_claim_checked(trial: _Trial) -> str | None:
    count = len(trial.checks)
    if count == 0:
        return "no check ran"
    if count < trial.expected:
        return f"only {count} of {trial.expected} checks ran (a partial selection, or the session was interrupted)"
    if count > trial.expected:
        return f"{count} checks were reported where the task has {trial.expected}: pytest_deploybench miscounted"
    return None


_RULES: Sequence[tuple[Verdict, Callable[[_Trial], str | None]]] = (
    (Verdict.FAILED, _agents_own_doing),
    (Verdict.INVALID, _nothing_left_to_judge),
    (Verdict.FAILED, _failure_before_anything_broke),
    (Verdict.INVALID, _our_side_broke),
    (Verdict.INVALID, _skipped),
    (Verdict.INVALID, _not_every_claim_checked),
)


def _what_broke(trial: _Trial) -> str:
    check = trial.first(Outcome.ERROR)
    fault = _BROKEN[trial.fault] if trial.fault else ""
    return ": ".join(part for part in (fault, _named(check) if check else "") if part)


def _named(check: Check) -> str:
    cause = first_line(check.message)
    return f"{check.name}: {cause}" if cause else check.name
