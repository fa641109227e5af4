"""`--deploybench-resume`: verdicts of an earlier run are kept, and only what is missing or INVALID is done again.

A kept trial needs no machine: each of its checks says again what it said then, so that pytest's outcomes, its exit
status and its reports are those of the whole run. Its record and its evidence come into the new run's folder as soon as
the session's trials are known, so that a run may be resumed as often as it is killed.

The process that owns the machines reads the earlier run and decides; workers are told what they need.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_deploybench import earlier, taskfile
from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import Check, Outcome, RunRecord, TrialKey, TrialRecord, Verdict
from pytest_deploybench.plugin.lineup import Entry
from pytest_deploybench.redact import printable, redact

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from pytest_deploybench.plugin.recording import Recorder
    from pytest_deploybench.plugin.settings import Settings

OPTION = "--deploybench-resume"
PROPERTY = "resumed_from"
"""Name of the report property that says which run a kept verdict comes from."""

_SETTINGS: Mapping[str, Callable[[Settings], object]] = {
    "version of pytest_deploybench": lambda _: version("pytest_deploybench"),
    "--deploybench-provider": lambda chosen: chosen.provider,
    "--deploybench-image": lambda chosen: chosen.image,
    "--deploybench-seed": lambda chosen: chosen.run_seed,
    "--deploybench-max-tokens": lambda chosen: chosen.budget.tokens,
    "--deploybench-max-cost": lambda chosen: chosen.budget.cost_usd,
    "--deploybench-max-steps": lambda chosen: chosen.budget.calls,
    "--deploybench-command": lambda chosen: chosen.command,
    "--deploybench-command-on": lambda chosen: chosen.command and chosen.command_on,
    "--deploybench-reboot-before-verify": lambda chosen: "yes" if chosen.reboot_before_verify else None,
    "--deploybench-reverify": lambda chosen: chosen.earlier and chosen.earlier.run_id,
}
"""What a verdict depends on, so that it counts only where it is the same. Beside these: the digest of each task, for
each model who serves it, and that every contestant with a verdict takes part again.

Not among them: what decides when and where a trial runs but not what comes of it (-n, machines, retries, shards, kept
machines, own hosts), and acceleration, since budgets grow with it and each record says what it ran on.
"""

_SHOWN = 200


@dataclass(frozen=True)
class Kept:
    """A trial whose verdict is kept, as far as those who run checks must know it."""

    key: TrialKey
    run_id: str
    """The run that reached the verdict."""
    verdict: Verdict
    checks: Mapping[str, Check]
    """By name; none where all passed."""

    def check(self, name: str) -> Check:
        """How a check ended."""
        if self.verdict is Verdict.PASSED:
            return Check(name, 2, Outcome.PASSED, 0.0)
        return self.checks.get(name) or Check(name, 2, Outcome.SKIPPED, 0.0, f"run {self.run_id} did not come to it")


@dataclass(frozen=True)
class Resumed:
    """The earlier run, as the process that owns the machines knows it."""

    name: Path
    """As the user named it."""
    run: RunRecord
    problems: Sequence[str]
    """What of it could not be read, one sentence each."""

    @property
    def folder(self) -> Path:
        """Where its evidence lies."""
        return self.name if self.name.is_dir() else self.name.parent

    @cached_property
    def valid(self) -> Mapping[TrialKey, TrialRecord]:
        """The trials with a verdict, marked as kept."""
        return {
            trial.key: replace(trial, resumed_from=trial.resumed_from or self.run.run_id)
            for trial in self.run.trials
            if trial.verdict is not Verdict.INVALID
        }

    @cached_property
    def kept(self) -> Mapping[TrialKey, Kept]:
        """The same, as workers need it."""
        return {
            key: Kept(key, trial.resumed_from or "", trial.verdict, _checks(trial)) for key, trial in self.valid.items()
        }

    def require_same(self, chosen: Settings) -> None:
        """Refuse to mix verdicts that were reached under different settings.

        Raises:
            UsageError: with a line for each difference.
        """
        present = set(chosen.lineup.entries.values())
        entries = dict.fromkeys(Entry(key.agent, key.model, key.attempt) for key in self.valid)
        absent = [f"{_described(entry)}: took part then, not now" for entry in entries if entry not in present]
        self.refuse([*differences(self.run.settings, conditions(chosen)), *absent])

    def refuse(self, found: Sequence[str]) -> None:
        """Raises UsageError if there is any difference."""
        if found:
            raise UsageError(
                f"{OPTION}={self.name}: its verdicts were reached under other conditions.\n"
                + "".join(f"  {printable(difference)}\n" for difference in found)
                + f"Make them the same again, or leave out {OPTION}. That run was started as: {self.command}"
            )

    @property
    def command(self) -> str:
        """How it was started."""
        return printable(shlex.join(self.run.command))


def load(path: Path) -> Resumed:
    """Read the run that is to be resumed.

    Args:
        path: its folder, or its JSON report.

    Raises:
        UsageError: nothing there tells what run it was.
    """
    left = earlier.salvage(path, OPTION)
    assert left.run is not None, "salvage raises where there is none"  # noqa: S101 - a bug
    return Resumed(path, left.run, left.problems)


def conditions(chosen: Settings) -> dict[str, str]:
    """What the verdicts of a session depend on, by name; for its run.json."""
    told = {name: value(chosen) for name, value in _SETTINGS.items()}
    served = {_served(spec.alias): f"{spec.provider}/{spec.upstream} at {spec.base_url}" for spec in chosen.models}
    return {name: "none" if value is None else redact(str(value)) for name, value in (told | served).items()}


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """What is not the same, one sentence each. A model that takes part for the first time is no difference."""
    for name, value in now.items():
        before = then.get(name, "not recorded" if name in _SETTINGS else value)
        if before != value:
            yield f"{name}: {before[:_SHOWN]} then, {value[:_SHOWN]} now"


def dump_kept(kept: Collection[Kept]) -> Any:
    """For a worker, as JSON values."""
    return _adapter().dump_python(list(kept), mode="json") if kept else []


def load_kept(told: Any) -> Mapping[TrialKey, Kept]:
    """What `dump_kept` made."""
    return {kept.key: kept for kept in _adapter().validate_python(told)} if told else {}


class KeptCheck(pytest.Item):
    """A check of a kept trial in the place of the one that would run."""

    def __init__(self, *, original: pytest.Function, kept: Kept, check: Check, **others: Any) -> None:
        super().__init__(**others)
        self.callspec, self.cls = original.callspec, original.cls  # so that pytest orders it as it would the original
        self.own_markers += original.own_markers
        self.user_properties += [*original.user_properties, ("verdict", kept.verdict.value), (PROPERTY, kept.run_id)]
        self._check = check

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name

    def setup(self) -> None:
        if self._check.outcome is Outcome.ERROR:
            pytest.fail(self._check.message, pytrace=False)

    def runtest(self) -> None:
        if self._check.outcome is Outcome.FAILED:
            pytest.fail(self._check.message, pytrace=False)
        if self._check.outcome is Outcome.SKIPPED:
            pytest.skip(self._check.message)


class Resuming:
    """Brings the kept trials into the new run, and tells of them."""

    def __init__(self, config: pytest.Config, chosen: Settings, resumed: Resumed, recorder: Recorder) -> None:
        self._config, self._settings, self._resumed, self._recorder = config, chosen, resumed, recorder
        self._settled = False

    def pytest_report_header(self) -> list[str]:
        run, problems = self._resumed.run, self._resumed.problems
        found = Counter(trial.verdict for trial in run.trials)
        counts = ", ".join(f"{found[verdict]} {verdict}" for verdict in Verdict)
        return [
            f"deploybench: resumes run {printable(run.run_id)}: {counts}; PASSED and FAILED are kept",
            *(f"deploybench: {printable(problem)}" for problem in problems),
        ]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._settle([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._settle(ids)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        outcome = _WORDS.get((report.when, report.outcome))
        return outcome if outcome and PROPERTY in dict(report.user_properties) else None

    def _settle(self, ids: Sequence[str]) -> None:
        """Keep what belongs to this session, once its trials are known; every worker knows the same ones.

        Raises:
            pytest.UsageError: a task is not what it was.
        """
        if self._settled or not ids:
            return
        self._settled = True
        root = self._config.rootpath
        keys = {self._settings.lineup.key(nodeid, root): nodeid for nodeid in ids}
        records = [record for key, record in self._resumed.valid.items() if key in keys]
        folders = {record.task: (root / keys[record.key].partition("::")[0]).parent for record in records}
        digests = {task: taskfile.digest(folder) for task, folder in folders.items()}
        changed = {
            record.task: f"task {record.task}: digest {record.task_digest[:12]} then, {digests[record.task][:12]} now"
            for record in records
            if record.task_digest != digests[record.task]
        }
        try:
            self._resumed.refuse(list(changed.values()))
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        for record in records:
            self._take_over(record)

    def _take_over(self, record: TrialRecord) -> None:
        there, here = (folder / record.key.folder for folder in (self._resumed.folder, self._settings.run_dir))
        try:
            if there.is_dir():
                leave_out = shutil.ignore_patterns(earlier.TRIAL_FILE)
                shutil.copytree(there, here, symlinks=True, ignore=leave_out, copy_function=_link)
        except OSError as error:
            self._recorder.unwritten.append(f"the evidence in {there} could not be copied: {error}. It is still there")
        self._recorder.keep(record)


_WORDS = {
    ("call", "passed"): ("passed", ".", "PASSED (kept)"),
    ("call", "failed"): ("failed", "F", "FAILED (kept)"),
}


def _link(source: str, target: str) -> None:
    """The same file under a second name, which costs no room; a copy where they are on different disks."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _checks(trial: TrialRecord) -> Mapping[str, Check]:
    return {} if trial.verdict is Verdict.PASSED else {check.name: check for check in trial.checks}


def _described(entry: Entry) -> str:
    who = f"{entry.agent} with {entry.model}" if entry.model else entry.agent
    return f"{who}, attempt {entry.attempt}"


def _served(model: str) -> str:
    return f"--deploybench-model={model}"


@cache
def _adapter() -> TypeAdapter[list[Kept]]:
    from pydantic import TypeAdapter

    return TypeAdapter(list[Kept])
