"""From pytest's reports to `record.json` and `run.json`.

`Reporter` sits where checks run and lets each report carry what is known of its trial; `Recorder` sits where reports
arrive and writes a trial's record as soon as its last check is over. What decides is in `folding`, which is pure.
"""

from __future__ import annotations

import platform
import tempfile
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pytest_deploybench import earlier, taskfile
from pytest_deploybench.errors import DeployBenchError, TaskFileError
from pytest_deploybench.model import Fault, RunRecord, Task, TrialKey, TrialRecord
from pytest_deploybench.plugin import layer1_checks, resume, settings
from pytest_deploybench.plugin.collection import TaskModule, key_of
from pytest_deploybench.plugin.folding import Phase, Subject, fold
from pytest_deploybench.plugin.machines import Machines
from pytest_deploybench.redact import printable, redact
from pytest_deploybench.reports import json as records
from pytest_deploybench.reports.summary import cost_of, tokens_of
from pytest_deploybench.trial import Diary

_MESSAGE_LIMIT = 4000
_CARGO = "deploybench"
"""Attribute under which a report carries its cargo. Reports may have extra attributes, and xdist transports them."""

_DIARIES = pytest.StashKey[dict[TrialKey, Diary]]()


# --- where checks run ------------------------------------------------------------------------------------------------


def attach(request: pytest.FixtureRequest, key: TrialKey, diary: Diary) -> None:
    """Let all reports of the trial carry its diary, as it stands at that moment. Once, before anything can fail."""
    module = request.node.getparent(TaskModule)
    module.stash.setdefault(_DIARIES, {})[key] = diary


def diary_of(item: pytest.Item) -> Diary | None:
    """The diary of the trial to which an item belongs; None as long as nobody attached one."""
    module, key = item.getparent(TaskModule), key_of(item)
    return module.stash.get(_DIARIES, {}).get(key) if module and key else None


@dataclass(frozen=True)
class Cargo:
    """What a report carries beyond pytest's own fields, as JSON."""

    checks: int
    """How many checks the trial has."""
    selected: int
    """How many of them were selected to run."""
    fault: Fault | None
    """Whose fault it is that this phase broke; None where it did not, or where a check spoke."""
    diary: Diary | None


class Reporter:
    """Loads the cargo onto each report of a trial."""

    def __init__(self) -> None:
        self._selected: Counter[TrialKey] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected = Counter(key for item in session.items if (key := key_of(item)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        module, key = item.getparent(TaskModule), key_of(item)
        if module and key:
            if call.excinfo and isinstance(call.excinfo.value, DeployBenchError):
                # Our errors say all that is needed, and a broken fixture would show its traceback at each check.
                report.longrepr = f"{call.excinfo.typename}: {call.excinfo.value}"
            diary = diary_of(item)
            if diary and report.failed:
                diary.unhappy = True
            fault = _fault(call)
            if fault and report.when == "call":
                # pytest's one way to say that something else than the check broke is a failure outside of its call.
                report.when = "setup"
            cargo = Cargo(module.checks[key], self._selected[key], fault, diary)
            vars(report)[_CARGO] = _cargo().dump_python(cargo, mode="json")
        return report


def _fault(call: pytest.CallInfo[None]) -> Fault | None:
    if call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception):
        return None
    if isinstance(call.excinfo.value, DeployBenchError):
        return call.excinfo.value.fault
    return None if call.when == "call" else Fault.VERIFIER


@cache
def _cargo() -> TypeAdapter[Cargo]:
    return TypeAdapter(Cargo)


# --- where reports arrive --------------------------------------------------------------------------------------------


@dataclass
class _Open:
    """A trial that has begun and is not recorded yet."""

    subject: Subject
    phases: list[Phase] = field(default_factory=list)
    over: set[str] = field(default_factory=set)
    """Checks that will not be heard of again."""
    cargo: Cargo | None = None
    crashed: bool = False

    @property
    def complete(self) -> bool:
        return self.crashed or (self.cargo is not None and len(self.over) >= self.cargo.selected)


class Recorder:
    """Writes what the session found out."""

    def __init__(self, config: pytest.Config, machines: Machines) -> None:
        self.records: dict[TrialKey, TrialRecord] = {}
        self.run: RunRecord | None = None
        """The whole session, once it is over and if it had any trial."""
        self._config = config
        self._settings = settings.required(config)
        self._machines = machines
        self.unwritten: list[str] = []
        """Records that found no place on the disk, one sentence each."""
        self._open: dict[TrialKey, _Open] = {}
        self._begun = False
        self._started_at = _now()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._trial(nodeid)

    @pytest.hookimpl(tryfirst=True)  # before anybody writes the report's properties down
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        trial = self._trial(report.nodeid)
        if trial is None:
            return
        crashed = report.when not in ("setup", "call", "teardown")
        trial.crashed |= crashed
        if _CARGO in vars(report):
            trial.cargo = _cargo().validate_python(vars(report)[_CARGO])
        trial.phases.append(self._phase(report, trial.cargo, crashed))
        if crashed or report.when == "teardown":
            trial.over.add(report.nodeid)
        if trial.complete:
            record = self._record(trial.subject.key)
            report.user_properties += _closing(record)

    @pytest.hookimpl(tryfirst=True)  # before the machines go: nothing that is known may be lost on the way
    def pytest_sessionfinish(self) -> None:
        for key in list(self._open):
            self._record(key)
        if self.records:
            self.run = self._run()
            self._save(self._settings.json_path, records.dump_run(self.run))

    def keep(self, record: TrialRecord) -> None:
        """Write a record that is final."""
        self._begin()
        self.records[record.key] = record
        self._save(self._settings.run_dir / record.key.folder / earlier.TRIAL_FILE, records.dump_trial(record))

    def knows(self, nodeid: str) -> bool:
        """Whether a test is a check of a trial of which anything was heard."""
        key = self._settings.lineup.key(nodeid, self._config.rootpath)
        return key in self.records or key in self._open

    def _trial(self, nodeid: str) -> _Open | None:
        """The trial that a check belongs to and that is not recorded yet."""
        key = self._settings.lineup.key(nodeid, self._config.rootpath)
        if key is None or key in self.records:
            return None
        if key not in self._open:
            folder = (self._config.rootpath / nodeid.partition("::")[0]).parent
            try:
                task, digest = _task(folder)
            except TaskFileError:
                return None  # a module that is only named like a task's
            self._begin()
            self._open[key] = _Open(Subject(key, task, digest, self._settings.run_seed, _now()))
        return self._open[key]

    def _phase(self, report: pytest.TestReport, cargo: Cargo | None, crashed: bool) -> Phase:
        name = self._settings.lineup.check_name(report.nodeid)
        return Phase(
            check=name,
            layer=1 if name in layer1_checks.CHECKS else 2,
            when=report.when,
            outcome=report.outcome,
            seconds=report.duration,
            message=_message(report),
            fault=Fault.OURS if crashed else cargo.fault if cargo else None,
        )

    def _record(self, key: TrialKey) -> TrialRecord:
        trial = self._open[key]
        cargo = trial.cargo
        # A trial of which nothing was heard has an unknown number of checks; none of them ran.
        expected = cargo.checks if cargo else len(layer1_checks.CHECKS)
        record = fold(trial.subject, trial.phases, cargo.diary if cargo else None, expected)
        self.keep(record)
        del self._open[key]  # last: a session that is stopped meanwhile comes back here when it ends
        return record

    def _begin(self) -> None:
        """Leave word of what run this is, for whoever finds it killed."""
        if not self._begun:
            self._begun = True
            self._save(self._settings.run_dir / earlier.BEGUN_FILE, records.dump_run(replace(self._run(), trials=())))

    def _save(self, path: Path, text: str) -> None:
        """Write a record; where its disk is full, into the folder for temporary files: no result is ever lost."""
        try:
            _write(path, text)
        except OSError as error:
            inside = self._settings.run_dir
            name = path.relative_to(inside) if path.is_relative_to(inside) else path.name
            refuge = Path(tempfile.gettempdir()) / f"deploybench-{self._settings.run_id}" / name
            lost = f"{path} could not be written: {error}"
            try:
                _write(refuge, text)
            except OSError:
                self.unwritten.append(f"{lost}. Its verdicts stand above; make room for the next run")
            else:
                self.unwritten.append(f"{lost}. It lies in {refuge} instead; make room and move it")

    def _run(self) -> RunRecord:
        return RunRecord(
            run_id=self._settings.run_id,
            started_at=self._started_at,
            finished_at=_now(),
            command=("pytest", *(redact(str(argument)) for argument in self._config.invocation_params.args)),
            provider=self._settings.provider,
            run_seed=self._settings.run_seed,
            versions={
                "python": platform.python_version(),
                **{name: version(name) for name in ("pytest", "pytest_deploybench")},
            },
            trials=tuple(self.records[key] for key in sorted(self.records, key=_order)),
            swept=self._machines.swept,
            settings=resume.conditions(self._settings),
        )


def _closing(record: TrialRecord) -> list[tuple[str, object]]:
    """What the last report of a trial says of the whole, beside what each says of it; nothing of what is not known."""
    told = {
        "verdict": record.verdict.value,
        "termination": record.termination.value if record.termination else None,
        "tokens": tokens_of(record),
        "cost_usd": cost_of(record),
        **{f"duration_{name}": seconds for name, seconds in record.durations.items()},
    }
    return [(name, value) for name, value in told.items() if value is not None]


@cache
def _task(folder: Path) -> tuple[Task, str]:
    return taskfile.load(folder), taskfile.digest(folder)


def _message(report: pytest.TestReport) -> str:
    """Why a phase did not pass: the error itself, without the way that led there."""
    why: Any = report.longrepr
    if report.outcome == "passed" or why is None:
        return ""
    if isinstance(why, tuple):
        text = str(why[2]).removeprefix("Skipped: ")
    else:
        crash = getattr(why, "reprcrash", None)
        text = crash.message if crash else str(why)
    return redact(printable(text))[:_MESSAGE_LIMIT]


def _order(key: TrialKey) -> tuple[str, str, str, int]:
    return key.task, key.agent, key.model or "", key.attempt


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(path: Path, text: str) -> None:
    """Whole or not at all, so that a reader never sees half a record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
