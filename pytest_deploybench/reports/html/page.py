"""Puts the page of a run together: what is told, in which order, and of what it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pytest_deploybench.layer1 import FAILING_CONFIDENCE
from pytest_deploybench.model import Check, Difficulty, Finding, Outcome, RunRecord, TrialKey, TrialRecord, Verdict
from pytest_deploybench.reports.html import charts
from pytest_deploybench.reports.html.evidence import Evidence
from pytest_deploybench.reports.html.packing import Texts, fit
from pytest_deploybench.reports.html.templates import environment
from pytest_deploybench.reports.layout import amount, dollars, duration
from pytest_deploybench.reports.summary import Standing, by_contestant, by_task, cause_of, cost_of, summarise, tokens_of

if TYPE_CHECKING:
    from jinja2 import Template

LIMIT_BYTES = 1_950_000
"""What a page of some 200 trials may take."""
_FINDINGS_SHOWN = 6
_LOG_SHARE, _RUNBOOK_SHARE = 0.35, 0.15
"""Of a trial's room for texts; what the agent did has the rest, and what one does not need."""


def render(run: RunRecord, evidence: Mapping[TrialKey, Evidence], notes: Sequence[str] = ()) -> str:
    """The page of a run.

    `evidence` may lack trials; `notes` stand at the top, such as what could not be read.
    """
    summary = summarise(run)
    names = {trial.key: name for name, trials in by_contestant(run.trials).items() for trial in trials}
    trials = [
        Trial(number, record, names[record.key], evidence.get(record.key, Evidence()))
        for number, record in enumerate(run.trials, 1)
    ]
    standings = sorted(summary.standings, key=lambda standing: -(standing.tally.rate or 0))
    page = partial(
        environment().get_template("report.html.jinja").render,
        run=run,
        summary=summary,
        notes=notes,
        standings=standings,
        trials=trials,
        labels=sorted({label for trial in run.trials for label in trial.labels}),
        contestants=[standing.contestant for standing in standings],
        counts=counts,
        rows=_rows(trials, [standing.contestant for standing in standings]),
        effort=_effort(standings),
        timeline=charts.timeline(run.trials),
        phases=charts.PHASES,
    )
    room = LIMIT_BYTES - len(page(texts=[Texts("")] * len(trials)).encode())
    template = environment().get_template("texts.html.jinja")
    return page(texts=fit([partial(_texts, template, trial) for trial in trials], room))


# --- trials -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One trial with what it left, as the templates ask for it."""

    number: int
    record: TrialRecord
    contestant: str
    evidence: Evidence

    @property
    def name(self) -> str:
        """Where a link to it leads."""
        return f"trial-{self.number}"

    @property
    def cause(self) -> str:
        """Of what kind the failure is; empty where there is none."""
        if self.record.verdict is Verdict.PASSED:
            return ""
        if self.record.verdict is Verdict.INVALID:
            fault = self.record.tries[-1].fault if self.record.tries else None
            return f"INVALID: {fault.value.replace('_', ' ')}" if fault else "INVALID: not judged"
        return cause_of(self.record)

    @property
    def ended(self) -> str:
        """How the agent ended."""
        return self.record.termination.value.replace("_", " ") if self.record.termination else ""

    @property
    def tokens(self) -> int | None:
        return tokens_of(self.record)

    @property
    def cost(self) -> float | None:
        return cost_of(self.record)

    @property
    def agent_s(self) -> float | None:
        return self.record.durations.get("agent")

    @property
    def broken_tries(self) -> bool:
        return any(each.error for each in self.record.tries)

    @property
    def passed_checks(self) -> list[str]:
        return [check.name for check in self.record.checks if check.outcome is Outcome.PASSED]

    @property
    def other_checks(self) -> list[Check]:
        return [check for check in self.record.checks if check.outcome is not Outcome.PASSED]

    @property
    def findings(self) -> list[Finding]:
        """The findings that are shown: those that count come first."""
        return sorted(self.record.findings, key=lambda finding: not counts(finding))[:_FINDINGS_SHOWN]

    @property
    def marks(self) -> dict[int, str]:
        """The lines of the experiment's log in which a finding stands, with the names of its rules."""
        found: dict[int, list[str]] = {}
        for finding in self.findings:
            found.setdefault(finding.line_number - self.evidence.traces, []).append(finding.rule)
        return {line: ", ".join(rules) for line, rules in found.items() if line > 0}

    def facts(self) -> Iterator[tuple[str, str]]:
        """What there is to know of it in a word or two."""
        record, use, run = self.record, self.record.model_use, self.record.agent_run
        yield "Agent", record.agent if record.model is None else f"{record.agent} with {record.model}"
        if record.termination:
            said = {True: ", and claimed success", False: ", and claimed no success", None: ""}
            yield "Agent ended", self.ended + (said[run.claimed_success] if run else "")
        if run and run.detail:
            yield "Its last word", run.detail
        if run:
            yield "Agent time", f"{duration(run.seconds)} of {duration(run.budget_s)}"
        if use:
            read, written = f"{amount(use.input_tokens)} in", f"{amount(use.output_tokens)} out"
            cached, reasoning = amount(use.cached_tokens), amount(use.reasoning_tokens)
            yield (
                "Tokens",
                f"{read} ({cached} cached), {written} ({reasoning} reasoning)",
            )
            yield "Model calls", f"{use.calls}, {use.unmetered_calls} of unknown size; {duration(use.waited_s)} waited"
            yield "Cost", dollars(use.cost_usd)
        yield "Phases", ", ".join(f"{name} {duration(seconds)}" for name, seconds in record.durations.items())
        if facts := record.machine:
            speed = f"{facts.speed_factor:.1f} times native time"
            yield "Machine", f"{facts.provider} with {facts.acceleration}, {speed}, {facts.image}"
        if vitals := record.vitals:
            least = f"least memory {vitals.least_memory_mb} MB, least disk {vitals.least_disk_mb} MB"
            yield (
                "Vital signs",
                f"{vitals.beats} beats, {vitals.missed} missed, {vitals.oom_kills} killed, {least}",
            )
        yield "Labels", ", ".join(record.labels)
        yield "Begun", record.started_at
        yield "Challenge seed", str(record.seed)
        yield "Task's digest", record.task_digest
        for name, value in (
            ("Kept machine", record.kept),
            ("Verified again from", record.verified_again),
            ("Taken over from", record.resumed_from),
        ):
            if value:
                yield name, value
        yield "Evidence", record.folder


def counts(finding: Finding) -> bool:
    """Whether a finding stands against the deployment."""
    return finding.confidence >= FAILING_CONFIDENCE


def _texts(template: Template, trial: Trial, characters: int) -> str:
    """The texts of a trial in so many characters of theirs."""
    left = trial.evidence
    log = left.experiment_log and left.experiment_log.excerpt(int(characters * _LOG_SHARE), trial.marks)
    runbook = left.runbook and left.runbook.excerpt(int(characters * _RUNBOOK_SHARE))
    rest = characters - sum(text.size for text in (log, runbook) if text)
    return template.render(
        record=trial.record,
        marks=trial.marks,
        trajectory=left.trajectory and left.trajectory.excerpt(rest),
        agent_log=left.agent_log and left.agent_log.excerpt(rest),
        experiment_log=log,
        runbook=runbook,
    )


# --- what is told of all ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One task and its trials by contestant."""

    task: TrialRecord
    """One of its trials, for what they all say of the task."""
    difficulty: str
    rank: int
    """Of the difficulty, from easy to hard."""
    cells: tuple[tuple[Trial, ...], ...]


def _rows(trials: Sequence[Trial], contestants: Sequence[str]) -> list[Row]:
    places = {trial.record.key: trial for trial in trials}
    ranks = {difficulty.value: rank for rank, difficulty in enumerate(Difficulty)}
    rows = []
    for records in by_task(trial.record for trial in trials).values():
        own = [places[record.key] for record in records]
        difficulty = next((label for label in records[0].labels if label in ranks), "")
        cells = tuple(tuple(trial for trial in own if trial.contestant == name) for name in contestants)
        rows.append(Row(records[0], difficulty, ranks.get(difficulty, -1), cells))
    return rows


@dataclass(frozen=True)
class Effort:
    """Pass rate against what a trial took on average."""

    what: str
    axis: str
    plot: charts.Scatter
    unknown: tuple[str, ...]
    """Contestants that are not drawn."""


def _effort(standings: Sequence[Standing]) -> Effort:
    """Cost where it is known of anybody, else tokens, else time."""
    ways = (
        ("cost", "US dollars a trial", [standing.cost_usd.mean for standing in standings]),
        ("tokens", "million tokens a trial", [_scaled(standing.tokens.mean, 1e6) for standing in standings]),
        (
            "time",
            "minutes of the agent a trial",
            [_scaled(standing.phases_s["agent"].mean, 60) for standing in standings],
        ),
    )
    what, axis, efforts = next((way for way in ways if any(effort is not None for effort in way[2])), ways[-1])
    points, unknown = [], []
    for standing, effort in zip(standings, efforts, strict=True):
        rate, interval = standing.tally.rate, standing.interval
        if effort is None or rate is None or interval is None:
            unknown.append(standing.contestant)
        else:
            points.append(charts.Point(standing.contestant, effort, rate, interval))
    return Effort(what, axis, charts.scatter(points), tuple(unknown))


def _scaled(number: float | None, unit: float) -> float | None:
    return None if number is None else number / unit
