"""Makes of a run what a person wants to know first: who passed how often, what failed and why, what to do on INVALID.

Pure: a `RunRecord` in, a `Summary` out, so that each form of report says the same and can be made again later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_deploybench.model import Difficulty, Fault, Outcome, RunRecord, TrialRecord, Verdict
from pytest_deploybench.reports.statistics import (
    Interval,
    Measured,
    Repeated,
    Tally,
    clustered,
    measured,
    repeated,
    tally,
)

_HELD = ("seed", "agent", "evidence", "experiment", "checks")
"""Phases in which a trial holds a machine. Waiting for one is not among them."""

PHASES = ("machine", *_HELD, "total")
"""Of a trial's wall time; `machine` is waiting for one and getting it."""

_AXES: Mapping[str, Callable[[TrialRecord], list[str]]] = {
    "domain": lambda trial: [trial.domain.value],
    "difficulty": lambda trial: [label for label in trial.labels if label in set(Difficulty)],
    "language": lambda trial: [label.removeprefix("lang_") for label in trial.labels if label.startswith("lang_")],
    "label": lambda trial: [label for label in trial.labels if label in ("gpu", "qemu")],
    "age": lambda trial: ["legacy" if "legacy" in trial.labels else "recent"],
}

_REMEDIES: Mapping[Fault, str] = {
    Fault.USER: "Correct the setting or the file that the cause names and run the trial again.",
    Fault.PROVIDER: "Run the trial again (pytest --lf); if it stays, see console.log there and `deploybench doctor`.",
    Fault.MODEL_API: "Check key, quota and state of the model's API, then run the trial again (pytest --lf).",
    Fault.VERIFIER: "The verifier needs a repair: its traceback stands above. Then run the trial again (pytest --lf).",
    Fault.TASK: "The task needs a repair at the place that the cause names.",
    Fault.OURS: "Please report this with record.json; then run the trial again (pytest --lf).",
}

_FULL_BELOW_MB = 16
"""A disk with less free space is called full: hardly anything can be built on it any more."""


@dataclass(frozen=True)
class Claims:
    """How far an agent's own word can be trusted, over the valid trials."""

    said_done: int = 0
    """Trials in which the agent said that it had done its task."""
    was_done: int = 0
    """Those of them that passed."""


@dataclass(frozen=True)
class Standing:
    """How one contestant did."""

    contestant: str
    tally: Tally
    interval: Interval | None
    """Of the rate, clustered by task; None where nothing was judged."""
    attempts: int
    """The most valid attempts at any task."""
    repeated: Repeated | None
    """pass@k and pass^k for as many attempts; None where each task had one."""
    claims: Claims
    tokens: Measured
    """Of a trial, input and output together, as far as the provider told all."""
    cost_usd: Measured
    """Of a trial, by list price."""
    phases_s: Mapping[str, Measured]
    """Wall time of a trial by `PHASES`."""
    machine_s: float
    """How long its trials held machines, also in tries that broke."""


@dataclass(frozen=True)
class Group:
    """How each contestant did on the tasks of one domain, difficulty, language or label."""

    name: str
    tallies: Mapping[str, Tally]
    """By contestant; one that had no such task is missing."""


@dataclass(frozen=True)
class Breakdown:
    """One way to split the trials; made only where the parts differ from the whole."""

    axis: str
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Case:
    """A trial that did not pass."""

    task: str
    contestant: str
    cause: str
    folder: str
    """Evidence, relative to the run's folder."""
    remedy: str = ""
    """What to do about an INVALID one."""
    notes: tuple[str, ...] = ()
    """What else helps to understand it: vital signs of its machine, where the machine was kept."""


@dataclass(frozen=True)
class Summary:
    """What a report says of a run, in the order in which it says it."""

    standings: tuple[Standing, ...]
    breakdowns: tuple[Breakdown, ...]
    """Those that tell more than the whole."""
    domains: tuple[Group, ...]
    causes: Mapping[str, Mapping[str, int]]
    """How many trials failed for what, by contestant; the most frequent cause first."""
    failed: tuple[Case, ...]
    invalid: tuple[Case, ...]
    swept: tuple[str, ...]
    trials: int
    wall_s: float
    machine_s: float
    """Summed over all trials; more than `wall_s` where several ran at once."""
    agent_s: float
    experiment_s: float
    machines: tuple[str, ...]
    """What the trials ran on, for example `qemu with tcg, 9.6 times slower than native`."""


def summarise(run: RunRecord) -> Summary:
    """The summary of a run."""
    names = _names(run.trials)
    contestants = by_contestant(run.trials)
    return Summary(
        standings=tuple(_standing(name, trials) for name, trials in contestants.items()),
        breakdowns=tuple(
            Breakdown(axis, _groups(contestants, groups_of))
            for axis, groups_of in _AXES.items()
            if _adds_something(run.trials, groups_of)
        ),
        domains=_groups(contestants, _AXES["domain"]),
        causes=_causes(contestants),
        failed=tuple(_case(trial, names) for trial in run.trials if trial.verdict is Verdict.FAILED),
        invalid=tuple(_case(trial, names, _remedy(trial)) for trial in run.trials if trial.verdict is Verdict.INVALID),
        swept=run.swept,
        trials=len(run.trials),
        wall_s=(datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.started_at)).total_seconds(),
        machine_s=sum(map(_held, run.trials)),
        agent_s=sum(trial.durations.get("agent", 0.0) for trial in run.trials),
        experiment_s=sum(trial.durations.get("experiment", 0.0) for trial in run.trials),
        machines=tuple(dict.fromkeys(_machine(trial) for trial in run.trials if trial.machine)),
    )


def by_contestant(trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    """The trials of each contestant, under the name by which reports call it."""
    whole = list(trials)
    names = _names(whole)
    found: dict[str, list[TrialRecord]] = {}
    for trial in whole:
        found.setdefault(names(trial), []).append(trial)
    return found


def by_task(trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    """The trials of each task."""
    found: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        found.setdefault(trial.task, []).append(trial)
    return found


def tally_of(trials: Iterable[TrialRecord]) -> Tally:
    """The verdicts of trials."""
    return tally(trial.verdict for trial in trials)


def _names(trials: Iterable[TrialRecord]) -> Callable[[TrialRecord], str]:
    """The model names a contestant, unless it took part behind several agents."""
    agents: dict[str, set[str]] = {}
    for trial in trials:
        agents.setdefault(trial.key.contestant, set()).add(trial.agent)

    def name(trial: TrialRecord) -> str:
        contestant = trial.key.contestant
        return contestant if len(agents[contestant]) == 1 else f"{trial.agent}:{contestant}"

    return name


def _standing(name: str, trials: Sequence[TrialRecord]) -> Standing:
    tasks = [tally_of(of_task) for of_task in by_task(trials).values()]
    attempts = max(task.valid for task in tasks)
    return Standing(
        contestant=name,
        tally=tally_of(trials),
        interval=clustered(tasks),
        attempts=attempts,
        repeated=repeated(attempts, tasks) if attempts > 1 else None,
        claims=_claims(trials),
        tokens=measured(map(tokens_of, trials)),
        cost_usd=measured(map(cost_of, trials)),
        phases_s={phase: measured(trial.durations.get(phase) for trial in trials) for phase in PHASES},
        machine_s=sum(map(_held, trials)),
    )


def _claims(trials: Iterable[TrialRecord]) -> Claims:
    judged = [trial for trial in trials if trial.verdict is not Verdict.INVALID]
    said = [trial for trial in judged if trial.agent_run and trial.agent_run.claimed_success]
    return Claims(len(said), sum(trial.verdict is Verdict.PASSED for trial in said))


def tokens_of(trial: TrialRecord) -> int | None:
    """Tokens that the model read and wrote; None where no model was asked, or not all its calls could be counted."""
    use = trial.model_use
    return use.input_tokens + use.output_tokens if use and not use.unmetered_calls else None


def cost_of(trial: TrialRecord) -> float | None:
    """US dollars; None where they are not known of all its calls."""
    use = trial.model_use
    return use.cost_usd if use and not use.unmetered_calls else None


def _groups(
    contestants: Mapping[str, list[TrialRecord]], groups_of: Callable[[TrialRecord], list[str]]
) -> tuple[Group, ...]:
    found: dict[str, dict[str, list[TrialRecord]]] = {}
    for contestant, trials in contestants.items():
        for trial in trials:
            for group in groups_of(trial):
                found.setdefault(group, {}).setdefault(contestant, []).append(trial)
    return tuple(
        Group(name, {contestant: tally_of(trials) for contestant, trials in parts.items()})
        for name, parts in sorted(found.items(), key=lambda item: _place(item[0]))
    )


def cause_of(trial: TrialRecord) -> str:
    """Which of the paper's root causes the log names for a trial that failed, or that it names none."""
    # Its catalogue is loaded by who reads a report, not by every session.
    from pytest_deploybench.layer1 import FAILING_CONFIDENCE

    root = next((each for each in trial.findings if each.confidence >= FAILING_CONFIDENCE), None)
    return root.category.root_cause.value if root else "wrong or no result"


def _causes(contestants: Mapping[str, Sequence[TrialRecord]]) -> Mapping[str, Mapping[str, int]]:
    counts = {
        name: Counter(cause_of(trial) for trial in trials if trial.verdict is Verdict.FAILED)
        for name, trials in contestants.items()
    }
    whole = sum(counts.values(), Counter[str]())
    return {cause: {name: count[cause] for name, count in counts.items()} for cause, _ in whole.most_common()}


def _place(group: str) -> tuple[int, str]:
    """Difficulties from easy to hard, everything else by name."""
    order = [difficulty.value for difficulty in Difficulty]
    return (order.index(group) if group in order else 0, group)


def _adds_something(trials: Iterable[TrialRecord], groups_of: Callable[[TrialRecord], list[str]]) -> bool:
    """Whether a split tells more than the whole: some part of at least two valid trials has another rate."""
    whole = list(trials)
    parts: dict[str, list[TrialRecord]] = {}
    for trial in whole:
        for group in groups_of(trial):
            parts.setdefault(group, []).append(trial)
    tallies = list(map(tally_of, parts.values()))
    return any(part.valid >= 2 and part.rate != tally_of(whole).rate for part in tallies)


def _case(trial: TrialRecord, names: Callable[[TrialRecord], str], remedy: str = "") -> Case:
    contestant = names(trial) if trial.attempt == 1 else f"{names(trial)}, attempt {trial.attempt}"
    return Case(trial.task, contestant, trial.reason, trial.folder, remedy, tuple(_notes(trial)))


def _notes(trial: TrialRecord) -> Iterator[str]:
    if (vitals := trial.vitals) is not None:
        if vitals.oom_kills:
            yield f"out of memory: the machine's kernel killed {vitals.oom_kills} process(es)"
        if vitals.least_disk_mb is not None and vitals.least_disk_mb < _FULL_BELOW_MB:
            yield "the machine's disk was full"
    if trial.kept:
        yield f"its machine is kept: deploybench vms ssh {trial.kept}"


def _remedy(trial: TrialRecord) -> str:
    fault = trial.tries[-1].fault if trial.tries else None
    if fault is not None and fault in _REMEDIES:
        return _REMEDIES[fault]
    if trial.checks and all(check.outcome is Outcome.SKIPPED for check in trial.checks):
        return "Choose a provider or a host that can run this task."
    if any(check.outcome is Outcome.ERROR for check in trial.checks):
        return _REMEDIES[Fault.VERIFIER]
    return "Let the session run to its end, and select tasks by label or name, not single checks."


def _machine(trial: TrialRecord) -> str:
    facts = trial.machine
    if facts is None:
        return "no machine"
    speed = f", {facts.speed_factor:.1f} times slower than native" if facts.speed_factor > 1 else ""
    caveat = f" (no benchmark result: {facts.no_benchmark})" if facts.no_benchmark else ""
    return f"{facts.provider} with {facts.acceleration}{speed}{caveat}"


def _held(trial: TrialRecord) -> float:
    """Seconds for which a trial held machines: the last one by its phases, those of tries that broke as a whole."""
    broken = sum(each.seconds for each in trial.tries[:-1] if each.machine_id)
    return broken + sum(trial.durations.get(phase, 0.0) for phase in _HELD)
