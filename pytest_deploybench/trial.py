"""The story of one trial: borrow a machine, seed it, let the agent work, take evidence, run the experiment.

Infrastructure faults lead to the next try on a fresh machine; each try is kept. What the agent did, or left undone, is
never an exception here. The checks on what comes out belong to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pytest_deploybench import handover, layer1, sources
from pytest_deploybench.errors import DeployBenchError, InfraError, MachineLostError
from pytest_deploybench.layer2.challenge import Challenge
from pytest_deploybench.layer2.experiment import Experiment, run_experiment, unreachable
from pytest_deploybench.model import (
    AgentRun,
    Finding,
    Lease,
    MachineFacts,
    MachineSize,
    MachineState,
    Task,
    Termination,
    TrialKey,
    Try,
)
from pytest_deploybench.ports import Agent, Machine, Progress
from pytest_deploybench.transport import SshMachine

READY_TIMEOUT_S = 60.0
REBOOT_TIMEOUT_S = 180.0
HOUSEKEEPING_S = 900.0
"""Native seconds that a machine may live beyond the budgets: seeding, evidence, a person's patience with slow disks."""


class Lender(Protocol):
    """Where machines come from: the fleet, seen from a trial."""

    def borrow(self, size: MachineSize, *, lifetime_s: float, purpose: str) -> Lease: ...

    def state(self, machine_id: str) -> MachineState: ...

    def give_back(self, machine_id: str) -> None: ...


class Connection(Machine, Protocol):
    """A machine with the connection to it."""

    def wait_ready(self, timeout_s: float) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Plan:
    """What is to be done in one trial."""

    key: TrialKey
    task: Task
    agent: Agent
    challenge: Challenge
    folder: Path
    """Where evidence goes; exists only for this trial."""
    store: Path
    """The content-addressed store of sources."""
    retries: int
    """Further tries after an infrastructure fault."""
    checks: int
    """How many checks will look at the machine afterwards; its lifetime allows for them."""
    connect: Callable[[Lease], Connection] = SshMachine

    @property
    def lifetime_s(self) -> float:
        """Native seconds after which the machine may end itself."""
        task = self.task
        return task.agent_budget_s + task.experiment_budget_s + self.checks * task.check_budget_s + HOUSEKEEPING_S


@dataclass
class Diary:
    """What is known of a trial so far. It is complete at every moment, so that a failing trial loses nothing."""

    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    durations: dict[str, float] = field(default_factory=dict)
    """Seconds by phase, of the last try."""
    tries: list[Try] = field(default_factory=list)
    machine_id: str | None = None
    facts: MachineFacts | None = None
    agent_run: AgentRun | None = None
    findings: list[Finding] = field(default_factory=list)

    def begin_try(self) -> None:
        """Forget what belongs to an earlier try; its own entry in `tries` remains."""
        self.durations = {name: seconds for name, seconds in self.durations.items() if name == "sources"}
        self.machine_id, self.facts, self.agent_run, self.findings = None, None, None, []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time one phase, also when it fails."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.durations[name] = round(time.monotonic() - start, 3)


@dataclass(frozen=True)
class Deployment:
    """What the agent left, with the experiment run on it: all that the checks look at."""

    machine: Connection
    machine_id: str
    agent_run: AgentRun
    experiment: Experiment
    findings: list[Finding]


@contextmanager
def deployed(plan: Plan, fleet: Lender, diary: Diary, progress: Progress) -> Iterator[Deployment]:
    """Carry out the trial and lend the result to the checks; the machine goes back whatever happens.

    Raises:
        DeployBenchError: no try got through; the last one's error. The diary holds them all.
    """
    with diary.phase("sources"):
        archives = _archives(plan, progress)
    deployment = _first_success(plan, fleet, diary, archives, progress)
    try:
        yield deployment
    finally:
        deployment.machine.close()
        fleet.give_back(deployment.machine_id)


def _first_success(
    plan: Plan, fleet: Lender, diary: Diary, archives: dict[str, Path], progress: Progress
) -> Deployment:
    for number in range(1, plan.retries + 2):
        start = time.monotonic()
        try:
            deployment = _attempt(plan, fleet, diary, archives)
        except DeployBenchError as error:
            diary.tries.append(Try(number, diary.machine_id, time.monotonic() - start, error.fault, str(error)))
            if not isinstance(error, InfraError) or number > plan.retries:
                raise
            progress(f"{plan.key.task}: {error} Trying again on a fresh machine.")
            _set_aside(plan.folder, f"try-{number:02d}")
        else:
            diary.tries.append(Try(number, diary.machine_id, time.monotonic() - start))
            return deployment
    raise AssertionError("unreachable: the last try returns or raises")


def _attempt(plan: Plan, fleet: Lender, diary: Diary, archives: dict[str, Path]) -> Deployment:
    """One try on one machine, which goes back if the try does not get through."""
    diary.begin_try()
    with diary.phase("machine"):
        lease = fleet.borrow(plan.task.machine, lifetime_s=plan.lifetime_s, purpose=str(plan.key.folder))
    diary.machine_id, diary.facts = lease.machine_id, lease.facts
    machine = plan.connect(lease)
    try:
        return _Attempt(plan, fleet, diary, lease, machine).carry_out(archives)
    except BaseException:  # an interrupt too must not leave a machine behind
        machine.close()
        fleet.give_back(lease.machine_id)
        raise


@dataclass(frozen=True)
class _Attempt:
    plan: Plan
    fleet: Lender
    diary: Diary
    lease: Lease
    machine: Connection

    def carry_out(self, archives: dict[str, Path]) -> Deployment:
        """The stages on one machine, from hand-over to the end of the experiment."""
        task, folder, phase = self.plan.task, self.plan.folder, self.diary.phase
        factor = self.lease.facts.speed_factor
        agent_budget_s = task.agent_budget_s * factor
        with phase("seed"):
            self.machine.wait_ready(READY_TIMEOUT_S)
            started_at = handover.prepare(self.machine, task, archives, agent_budget_s)
        with phase("agent"):
            agent_run = self._let_work(agent_budget_s)
        self.diary.agent_run = agent_run = replace(agent_run, started_at=started_at)
        try:
            with phase("evidence"):
                traces = handover.collect(self.machine, folder)
            with phase("experiment"):
                experiment = run_experiment(
                    self.machine, self.plan.challenge, task.experiment_budget_s * factor, folder
                )
        except MachineLostError as error:
            self._raise_if_lost(error)
            traces, experiment = [], unreachable(folder, f"the agent left a machine that cannot be reached: {error}")
        self.diary.findings = findings = layer1.parse([*traces, *experiment.log.splitlines()])
        return Deployment(self.machine, self.lease.machine_id, agent_run, experiment, findings)

    def _let_work(self, budget_s: float) -> AgentRun:
        start = time.monotonic()
        try:
            return self.plan.agent.run(self.machine, self.plan.task, budget_s, self.plan.folder)
        except MachineLostError as error:
            self._raise_if_lost(error)
            seconds = time.monotonic() - start
            # The agent cut itself off, perhaps by a reboot: what it deployed may yet come up and is still verified.
            with suppress(MachineLostError):
                self.machine.wait_ready(REBOOT_TIMEOUT_S)
            self._raise_if_lost(error)
            return AgentRun(Termination.CRASHED, seconds, budget_s, detail=f"the machine went away: {error}")

    def _raise_if_lost(self, error: MachineLostError) -> None:
        """Raise if the machine was taken from the agent; return if the agent itself made it unreachable."""
        if self.fleet.state(self.lease.machine_id) is MachineState.LOST:
            raise error


def _archives(plan: Plan, progress: Progress) -> dict[str, Path]:
    """The pinned sources by the folder in which the agent finds them."""
    wanted = {"artifact": plan.task.source, **{f"extra/{extra.name}": extra for extra in plan.task.extra_sources}}
    return {folder: sources.fetch(source, plan.store, progress) for folder, source in wanted.items()}


def _set_aside(folder: Path, name: str) -> None:
    """Keep what a try left, so that the next one does not overwrite it."""
    kept = folder / name
    kept.mkdir(parents=True)
    for path in list(folder.iterdir()):
        if not path.name.startswith("try-"):
            path.rename(kept / path.name)
