"""Gates for CI: what a session must reach to be green, and the exit status that follows from it.

Every session has the same three: how many trials must pass, how many may be INVALID, how many must be judged. An
option moves one of them; without options all must pass, none may be INVALID, and one must be judged. So a run in which
nothing was judged is never green. A gate that was moved decides: a failed check within it does not make the session
fail. What is no trial (ordinary tests, a module that cannot be collected) counts as it does anywhere in pytest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import Outcome, TrialRecord, Verdict

if TYPE_CHECKING:
    from pytest_deploybench.plugin.recording import Recorder

_DECIDED_HERE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""Other exit statuses tell of a session that did not run to its end, and no gate opens for that."""


@dataclass(frozen=True)
class Gates:
    """The options as they were given; None where the default holds."""

    min_pass_rate: float | None = None
    """In per cent of the judged trials."""
    max_invalid_rate: float | None = None
    """In per cent of all trials but those that this provider cannot host."""
    expect: int | None = None
    """How many trials must be judged at least."""

    @property
    def forgiving(self) -> bool:
        """Whether a trial may fail or be INVALID in a green session."""
        return self.min_pass_rate is not None or self.max_invalid_rate is not None

    def __bool__(self) -> bool:
        return self != Gates()


@dataclass(frozen=True)
class Count:
    """The trials of a session by what came of them."""

    passed: int = 0
    failed: int = 0
    invalid: int = 0
    skipped: int = 0
    """Those whose checks were all skipped: this provider cannot host them."""

    @property
    def judged(self) -> int:
        """How many trials say something about their deployment."""
        return self.passed + self.failed


@dataclass(frozen=True)
class Finding:
    """What one gate says."""

    met: bool
    text: str

    def __str__(self) -> str:
        return f"gate: {self.text}: {'met' if self.met else 'not met'}"


def count(trials: Iterable[TrialRecord]) -> Count:
    """The trials of a session, counted."""
    trials = list(trials)
    skipped = sum(map(_skipped, trials))
    by_verdict = {verdict: sum(trial.verdict is verdict for trial in trials) for verdict in Verdict}
    return Count(by_verdict[Verdict.PASSED], by_verdict[Verdict.FAILED], by_verdict[Verdict.INVALID] - skipped, skipped)


def findings(gates: Gates, trials: Count) -> Iterator[Finding]:
    """What each gate says of these trials."""
    least_rate = 100.0 if gates.min_pass_rate is None else gates.min_pass_rate
    most_invalid = gates.max_invalid_rate or 0.0
    least_judged = 1 if gates.expect is None else gates.expect
    yield _rate("pass rate", trials.passed, trials.judged, ">=", least_rate)
    yield _rate("INVALID", trials.invalid, trials.judged + trials.invalid, "<=", most_invalid)
    yield Finding(trials.judged >= least_judged, f"{_trials(trials.judged)} judged >= {least_judged}")


def exit_status(before: int, gates: Gates, trials: Count, *, otherwise_broken: bool) -> int:
    """The exit status of a session.

    Args:
        before: what pytest makes of it.
        gates: what it must reach.
        trials: what came of it.
        otherwise_broken: whether anything but the checks of trials went wrong.
    """
    if before not in _DECIDED_HERE:
        return before
    broken = otherwise_broken or (before == pytest.ExitCode.TESTS_FAILED and not gates.forgiving)
    if broken or (trials.judged and not all(finding.met for finding in findings(gates, trials))):
        return pytest.ExitCode.TESTS_FAILED
    return pytest.ExitCode.OK if trials.judged else pytest.ExitCode.NO_TESTS_COLLECTED


def require_run(gates: Gates, *, anybody_deploys: bool, collect_only: bool) -> None:
    """Refuse gates before a session that cannot pass them, for it has no trials.

    Raises:
        UsageError: nobody was named to deploy, or nothing is to be run.
    """
    if gates and not anybody_deploys:
        raise UsageError("a gate judges trials, and nobody was named to deploy. Add --deploybench-model=NAME")
    if gates and collect_only:
        raise UsageError("a gate judges trials, and with --collect-only none is run. Leave one of the two out")


class Gatekeeper:
    """Sets the exit status when all records are there, and says why."""

    def __init__(self, gates: Gates, recorder: Recorder) -> None:
        self._gates, self._recorder = gates, recorder
        self._otherwise_broken = False
        self._stopped = False
        self._trials = Count()
        self._exit_status: int = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._otherwise_broken |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._otherwise_broken |= report.failed and not self._recorder.knows(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:  # after the recorder, before the machines go
        self._trials = count(self._recorder.run.trials if self._recorder.run else ())
        self._stopped = bool(session.shouldfail or session.shouldstop)
        session.exitstatus = self._exit_status = exit_status(
            session.exitstatus,
            self._gates,
            self._trials,
            otherwise_broken=self._otherwise_broken or self._stopped or bool(self._recorder.unwritten),
        )

    @pytest.hookimpl(trylast=True)  # the last word of the report
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._gates:
            for finding in findings(self._gates, self._trials):
                terminalreporter.write_line(str(finding), green=finding.met, red=not finding.met)
        if self._gates and self._stopped:
            terminalreporter.write_line("gate: the session stopped before its end: not met", red=True)
        if not self._trials.judged:
            others = f"{self._trials.invalid} INVALID, {self._trials.skipped} skipped"
            why = f"nothing was judged ({others}): exit status {self._exit_status:d}"
            terminalreporter.write_line(f"deploybench: {why}", red=True)


def _rate(name: str, part: int, whole: int, relation: str, bound: float) -> Finding:
    # Compared as whole numbers of trials times 100, so that no rounding decides.
    met = part * 100 >= bound * whole if relation == ">=" else part * 100 <= bound * whole
    rate = f"{100 * part / whole:.4g} %" if whole else "unknown"
    return Finding(met and whole > 0, f"{name} {rate} ({part} of {whole}) {relation} {bound:g} %")


def _skipped(trial: TrialRecord) -> bool:
    return bool(trial.checks) and all(check.outcome is Outcome.SKIPPED for check in trial.checks)


def _trials(number: int) -> str:
    return f"{number} trial{'' if number == 1 else 's'}"
