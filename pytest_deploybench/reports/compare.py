"""Compares two contestants, or one in two runs, on the tasks on which both were judged.

Pure. What cannot be compared is said and never mixed in: a task that one side lacks, on which nothing was judged, or
whose folder was another. Settings that differ forbid nothing, and a reader must know them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import MachineFacts, RunRecord, TrialRecord, Verdict
from pytest_deploybench.reports.statistics import Interval, Paired, Tally, clustered, paired
from pytest_deploybench.reports.summary import by_contestant, by_task, tally_of


@dataclass(frozen=True)
class Side:
    """One of the two that are compared."""

    contestant: str
    run: RunRecord
    """The run, all its trials included."""
    trials: tuple[TrialRecord, ...]
    """Those of this contestant."""


@dataclass(frozen=True)
class Contrast:
    """A task on which the two did not do alike."""

    task: str
    a: Tally
    b: Tally
    cause: str
    """Why the side that did worse failed, in the first of its failed trials."""
    folder: str
    """Evidence of that trial."""


@dataclass(frozen=True)
class Setting:
    """Something that was not the same on both sides."""

    name: str
    a: str
    b: str


@dataclass(frozen=True)
class Comparison:
    """Two contestants beside each other."""

    a: Side
    b: Side
    tally_a: Tally
    """Over the shared tasks only; so is `tally_b`."""
    tally_b: Tally
    interval_a: Interval | None
    interval_b: Interval | None
    paired: Paired | None
    """None where they share no task on which both were judged."""
    contrasts: tuple[Contrast, ...]
    left_out: Mapping[str, tuple[str, ...]]
    """Tasks that could not be compared, by the reason."""
    settings: tuple[Setting, ...]


def pairs(a: RunRecord, b: RunRecord, names: Sequence[str] = ()) -> list[tuple[Side, Side]]:
    """Who is compared with whom; `a` and `b` may be the same run.

    Args:
        names: whom the user chose: none, one of both runs, or one of `a` and one of `b`.

    Raises:
        UsageError: the choice is not clear, or nobody has such a name.
    """
    in_a, in_b = by_contestant(a.trials), by_contestant(b.trials)
    chosen = _named(names) if names else _obvious(list(in_a), list(in_b), a is b)
    return [(_side(name_a, a, in_a), _side(name_b, b, in_b)) for name_a, name_b in chosen]


def _named(names: Sequence[str]) -> list[tuple[str, str]]:
    if len(names) > 2:
        raise UsageError(f"--of is given {len(names)} times, and two are compared. Give it once or twice")
    return [(names[0], names[-1])]


def _obvious(in_a: list[str], in_b: list[str], one_run: bool) -> list[tuple[str, str]]:
    """The pairs that a user can only have meant."""
    if one_run:
        if len(in_a) == 2:
            return [(in_a[0], in_a[1])]
        raise UsageError(f"one run with {_listed(in_a)}: say which two with --of NAME --of NAME, or name a second run")
    if shared := [name for name in in_a if name in in_b]:
        return [(name, name) for name in shared]
    if len(in_a) == len(in_b) == 1:
        return [(in_a[0], in_b[0])]
    raise UsageError(
        f"nobody took part in both runs: {_listed(in_a)} in the first, {_listed(in_b)} in the second. "
        "Say whom to compare with --of NAME --of NAME"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no trial"


def _side(name: str, run: RunRecord, contestants: Mapping[str, list[TrialRecord]]) -> Side:
    if name not in contestants:
        raise UsageError(f"--of={name}: nobody in run {run.run_id} has this name. It has {_listed(list(contestants))}")
    return Side(name, run, tuple(contestants[name]))


def compare(a: Side, b: Side) -> Comparison:
    """The comparison of two sides."""
    tasks_a, tasks_b = by_task(a.trials), by_task(b.trials)
    left_out: dict[str, list[str]] = {}
    shared = []
    for task in sorted(tasks_a.keys() | tasks_b.keys()):
        why = _incomparable(tasks_a.get(task, []), tasks_b.get(task, []))
        if why:
            left_out.setdefault(why, []).append(task)
        else:
            shared.append(task)
    tallies_a = {task: tally_of(tasks_a[task]) for task in shared}
    tallies_b = {task: tally_of(tasks_b[task]) for task in shared}
    return Comparison(
        a=a,
        b=b,
        tally_a=tally_of(trial for task in shared for trial in tasks_a[task]),
        tally_b=tally_of(trial for task in shared for trial in tasks_b[task]),
        interval_a=clustered(tallies_a.values()),
        interval_b=clustered(tallies_b.values()),
        paired=paired(tallies_a, tallies_b),
        contrasts=tuple(
            _contrast(task, tasks_a[task], tasks_b[task])
            for task in shared
            if tallies_a[task].rate != tallies_b[task].rate
        ),
        left_out={why: tuple(tasks) for why, tasks in left_out.items()},
        settings=tuple(_settings(a, b)),
    )


def _incomparable(a: Sequence[TrialRecord], b: Sequence[TrialRecord]) -> str:
    """Why the trials of a task cannot be compared; empty where they can."""
    if not a or not b:
        return "only A has it" if a else "only B has it"
    if {trial.task_digest for trial in a} != {trial.task_digest for trial in b}:
        return "the task was changed between the two"
    judged = [any(trial.verdict is not Verdict.INVALID for trial in side) for side in (a, b)]
    return {
        (False, False): "neither was judged",
        (False, True): "A was not judged",
        (True, False): "B was not judged",
    }.get((judged[0], judged[1]), "")


def _contrast(task: str, a: Sequence[TrialRecord], b: Sequence[TrialRecord]) -> Contrast:
    tally_a, tally_b = tally_of(a), tally_of(b)
    worse = a if (tally_a.rate or 0) < (tally_b.rate or 0) else b
    failed = next(trial for trial in worse if trial.verdict is Verdict.FAILED)
    return Contrast(task, tally_a, tally_b, failed.reason, failed.folder)


def _machine(read: Callable[[MachineFacts], object]) -> Callable[[Side], Iterable[object]]:
    return lambda side: (read(trial.machine) for trial in side.trials if trial.machine)


_SETTINGS: Mapping[str, Callable[[Side], Iterable[object]]] = {
    "agent": lambda side: (trial.agent for trial in side.trials),
    "attempts": lambda side: (max(trial.attempt for trial in side.trials),),
    "image": _machine(lambda facts: facts.image),
    "acceleration": _machine(lambda facts: facts.acceleration),
}
"""What a reader of a comparison must know when it differs, and the values that it has in the trials of a side."""


def _settings(a: Side, b: Side) -> Iterable[Setting]:
    for name, values_of in _SETTINGS.items():
        told_a, told_b = ({str(value) for value in values_of(side)} for side in (a, b))
        if told_a != told_b:
            yield Setting(name, *(", ".join(sorted(told)) or "unknown" for told in (told_a, told_b)))
    of_a, of_b = _of_run(a.run), _of_run(b.run)
    for option in sorted(of_a.keys() | of_b.keys()):
        if of_a.get(option) != of_b.get(option):
            yield Setting(option, of_a.get(option, "not told"), of_b.get(option, "not told"))


def _of_run(run: RunRecord) -> Mapping[str, str]:
    """What a run tells of its settings; an older one tells less."""
    return {
        "version of pytest_deploybench": run.versions.get("pytest_deploybench", "unknown"),
        "--deploybench-provider": run.provider,
        "--deploybench-seed": str(run.run_seed),
        **run.settings,
    }
