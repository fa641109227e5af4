"""The story of one trial: borrow a machine, seed it, let the agent work, take evidence, run the experiment.

A trial may also begin with a kept machine, on which an agent has worked before: then it is only verified again.
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

from pytest_deploybench import handover, health, layer1, sources, trajectory
from pytest_deploybench.errors import DeployBenchError, InfraError, MachineLostError
from pytest_deploybench.fleet.shelf import Shelf
from pytest_deploybench.hiring import WAITING_ALLOWANCE_S, Hiring
from pytest_deploybench.layer2.challenge import Challenge
from pytest_deploybench.layer2.experiment import Experiment, run_experiment, unreachable
from pytest_deploybench.model import (
    AgentRun,
    Finding,
    KeepVm,
    Lease,
    MachineFacts,
    MachineSize,
    MachineState,
    ModelUse,
    Task,
    Termination,
    TrialKey,
    Try,
    Vitals,
)
from pytest_deploybench.ports import Agent, Machine, Progress
from pytest_deploybench.redact import redact
from pytest_deploybench.transport import SshMachine

READY_TIMEOUT_S = 60.0
SYNC_TIMEOUT_S = 120.0
REBOOT_TIMEOUT_S = 180.0
"""For a machine to come up again; the emulated ones on a busy host need most of it."""
CONSOLE_NAME = "console.log"
_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
HOUSEKEEPING_S = 900.0
"""Native seconds that a machine may live beyond the budgets: seeding, evidence, a person's patience with slow disks."""


class Lender(Protocol):
    """Where machines come from: the fleet, seen from a trial."""

    def borrow(self, size: MachineSize, *, lifetime_s: float, purpose: str, kept: Path | None = None) -> Lease: ...

    def state(self, machine_id: str) -> MachineState: ...

    def console(self, machine_id: str) -> str: ...

    def freeze(self, machine_id: str) -> None: ...

    def keep(self, machine_id: str, folder: Path) -> None: ...

    def give_back(self, machine_id: str) -> None: ...


class Connection(Machine, Protocol):
    """A machine with the connection to it."""

    def wait_ready(self, timeout_s: float) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Earlier:
    """A deployment that is only to be verified again."""

    kept: Path
    """Folder of the kept machine."""
    agent_run: AgentRun
    """What its agent did, then."""
    run_id: str
    """The run in which that was."""


@dataclass(frozen=True)
class Plan:
    """What is to be done in one trial."""

    key: TrialKey
    task: Task
    agent: Agent | Hiring | Earlier
    """Who deploys, perhaps with a model, or the deployment that an earlier run left."""
    challenge: Challenge
    folder: Path
    """Where evidence goes; exists only for this trial."""
    store: Path
    """The content-addressed store of sources."""
    retries: int
    """Further tries after an infrastructure fault."""
    checks: int
    """How many checks will look at the machine afterwards; its lifetime allows for them."""
    keep_vm: KeepVm = KeepVm.NEVER
    shelf: Shelf | None = None
    """Where a machine is kept; None where none is."""
    provider: str = ""
    """Its registered name, for the label of a kept machine."""
    run_dir: Path = Path()
    """Of the run, for the same."""
    reboot_before_verify: bool = False
    offline: bool = False
    """Whether sources come from the store alone."""
    beat_every_s: float = health.BEAT_EVERY_S
    connect: Callable[[Lease], Connection] = SshMachine


def lifetime_s(task: Task, checks: int, *, asks_model: bool = False) -> float:
    """Native seconds after which the machine of a trial with so many checks may end itself."""
    waiting = WAITING_ALLOWANCE_S if asks_model else 0.0
    return task.agent_budget_s + waiting + task.experiment_budget_s + checks * task.check_budget_s + HOUSEKEEPING_S


@dataclass
class Diary:
    """What is known of a trial so far. It is complete at every moment, so that a failing trial loses nothing."""

    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    durations: dict[str, float] = field(default_factory=dict)
    """Seconds by phase, of the last try."""
    under_way: str = ""
    """The phase that began last."""
    since: float = field(default_factory=time.time)
    """When that was, in seconds since the epoch."""
    begun: int = 0
    """How many tries have begun."""
    tries: list[Try] = field(default_factory=list)
    machine_id: str | None = None
    facts: MachineFacts | None = None
    agent_run: AgentRun | None = None
    findings: list[Finding] = field(default_factory=list)
    vitals: Vitals | None = None
    model_use: ModelUse | None = None
    """Of the last try; None where no model was asked."""
    frozen: bool = False
    """Whether the machine's disk was held still when the agent had ended, so that it can be kept."""
    unhappy: bool = False
    """Whether a check has failed, or something of ours broke."""
    kept: str | None = None
    """Name of the kept machine."""
    verified_again: str | None = None
    """The earlier run whose deployment this is."""

    def begin_try(self) -> None:
        """Forget what belongs to an earlier try; its own entry in `tries` remains."""
        self.begun += 1
        self.durations = {name: seconds for name, seconds in self.durations.items() if name == "sources"}
        self.machine_id, self.facts, self.agent_run, self.findings = None, None, None, []
        self.vitals, self.model_use, self.frozen = None, None, False

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time one phase, also when it fails."""
        start = time.monotonic()
        self.under_way, self.since = name, time.time()
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
    archives: dict[str, Path] = {}
    if not isinstance(plan.agent, Earlier):
        with diary.phase("sources"):
            archives = _archives(plan, progress)
    deployment = _first_success(plan, fleet, diary, archives, progress)
    try:
        yield deployment
    finally:
        deployment.machine.close()
        try:
            _keep(plan, fleet, diary, deployment.machine_id, progress)
        finally:
            fleet.give_back(deployment.machine_id)


def _keep(plan: Plan, fleet: Lender, diary: Diary, machine_id: str, progress: Progress) -> None:
    """Put the machine on the shelf, if it was frozen and the user wants machines of such trials."""
    if not diary.frozen or plan.shelf is None or (plan.keep_vm is KeepVm.FAILED and not diary.unhappy):
        return
    try:
        with diary.phase("keep"):
            fleet.keep(machine_id, plan.shelf.place(machine_id))
            plan.shelf.label(machine_id, plan.provider, str(plan.key.folder), plan.run_dir, plan.task.machine)
    except InfraError as error:  # a verdict was reached; that nobody can look at its machine does not undo it
        progress(f"{plan.key.task}: {error}")
    else:
        diary.kept = machine_id


def _first_success(
    plan: Plan, fleet: Lender, diary: Diary, archives: dict[str, Path], progress: Progress
) -> Deployment:
    for number in range(1, plan.retries + 2):
        start = time.monotonic()
        try:
            deployment = _attempt(plan, fleet, diary, archives, progress)
        except DeployBenchError as error:
            diary.tries.append(Try(number, diary.machine_id, time.monotonic() - start, error.fault, str(error)))
            if not isinstance(error, InfraError) or number > plan.retries:
                raise
            progress(f"{plan.key.task}: {error} Trying again on a fresh machine.")
            with suppress(OSError):  # a full disk takes no evidence, and that is being said already
                _set_aside(plan.folder, f"try-{number:02d}")
        else:
            diary.tries.append(Try(number, diary.machine_id, time.monotonic() - start))
            return deployment
    raise AssertionError("unreachable: the last try returns or raises")


def _attempt(plan: Plan, fleet: Lender, diary: Diary, archives: dict[str, Path], progress: Progress) -> Deployment:
    """One try on one machine, which goes back if the try does not get through."""
    diary.begin_try()
    kept = plan.agent.kept if isinstance(plan.agent, Earlier) else None
    with diary.phase("machine"):
        lifetime = lifetime_s(plan.task, plan.checks, asks_model=isinstance(plan.agent, Hiring))
        lease = fleet.borrow(plan.task.machine, lifetime_s=lifetime, purpose=str(plan.key.folder), kept=kept)
    diary.machine_id, diary.facts = lease.machine_id, lease.facts
    machine = plan.connect(lease)
    try:
        attempt = _Attempt(plan, fleet, diary, lease, machine, progress)
        try:
            return attempt.carry_out(archives)
        finally:
            attempt.keep_console()
    except BaseException as error:  # an interrupt too must not leave a machine behind
        machine.close()
        fleet.give_back(lease.machine_id)
        if isinstance(error, OSError):
            raise InfraError(f"evidence cannot be written to {plan.folder}: {error}. Make room there") from error
        raise


@dataclass(frozen=True)
class _Attempt:
    plan: Plan
    fleet: Lender
    diary: Diary
    lease: Lease
    machine: Connection
    progress: Progress

    def carry_out(self, archives: dict[str, Path]) -> Deployment:
        """The stages on one machine, from hand-over to the end of the experiment."""
        plan, folder, phase = self.plan, self.plan.folder, self.diary.phase
        factor = self.lease.facts.speed_factor
        if isinstance(plan.agent, Earlier):
            agent_run, self.diary.verified_again = plan.agent.agent_run, plan.agent.run_id
        else:
            agent_run = self._deploy(self._agent(plan.agent), archives, plan.task.agent_budget_s * factor)
        self.diary.agent_run = agent_run
        try:
            with phase("evidence"):
                traces = handover.collect(self.machine, folder)
            if plan.shelf is not None and plan.keep_vm is not KeepVm.NEVER:
                with phase("freeze"):
                    self._freeze()
            if plan.reboot_before_verify and not isinstance(plan.agent, Earlier):  # that one has just booted
                with phase("reboot"):
                    self._reboot()
            with phase("experiment"):
                experiment = run_experiment(
                    self.machine, plan.challenge, plan.task.experiment_budget_s * factor, folder
                )
                traces = handover.collect_after(self.machine, folder, traces)
        except MachineLostError as error:
            self._raise_if_lost(error)
            traces, experiment = [], unreachable(folder, f"the agent left a machine that cannot be reached: {error}")
        self.diary.findings = findings = layer1.parse([*traces, *experiment.log.splitlines()])
        return Deployment(self.machine, self.lease.machine_id, agent_run, experiment, findings)

    def keep_console(self) -> None:
        """Write down the end of what the machine printed on its console, if anything is known of it."""
        with suppress(DeployBenchError, OSError):
            if text := self.fleet.console(self.lease.machine_id):
                (self.plan.folder / CONSOLE_NAME).write_text(redact(text), encoding="utf-8")

    def _agent(self, agent: Agent | Hiring) -> Agent:
        return agent.hired(self.lease, self._note_use) if isinstance(agent, Hiring) else agent

    def _note_use(self, use: ModelUse) -> None:
        self.diary.model_use = use

    def _deploy(self, agent: Agent, archives: dict[str, Path], budget_s: float) -> AgentRun:
        """Hand the machine to the agent and let it work, while its vital signs are taken."""
        with self.diary.phase("seed"):
            self.machine.wait_ready(READY_TIMEOUT_S)
            started_at = handover.prepare(self.machine, self.plan.task, archives, budget_s)
        listener, agent_run = self.plan.connect(self.lease), None
        try:
            with (
                self.diary.phase("agent"),
                health.Watch(listener, self.plan.folder, self.plan.beat_every_s) as watch,
            ):
                agent_run = self._let_work(agent, budget_s)
        finally:
            listener.close()
            trajectory.write(self.plan.folder, self.plan.key, agent_run, self.progress)
        self.diary.vitals = watch.vitals
        return replace(agent_run, started_at=started_at)

    def _freeze(self) -> None:
        """Hold the disk still as the agent left it. Without it the trial goes on: only its machine cannot be kept."""
        try:
            self.machine.run("sync", timeout_s=SYNC_TIMEOUT_S)
            self.fleet.freeze(self.lease.machine_id)
            self.diary.frozen = True
        except MachineLostError:
            raise
        except InfraError as error:
            self.progress(f"{self.plan.key.task}: its machine will not be kept: {error}")

    def _reboot(self) -> None:
        """Restart the machine, so that only what survives a restart is verified."""
        boot = self.machine.run(_BOOT_ID, timeout_s=READY_TIMEOUT_S).stdout
        with suppress(MachineLostError):  # the answer may get lost with the machine's connection
            self.machine.run("sudo -n systemctl reboot", timeout_s=READY_TIMEOUT_S)
        deadline = time.monotonic() + REBOOT_TIMEOUT_S
        while True:
            self.machine.close()
            self.machine.wait_ready(max(1.0, deadline - time.monotonic()))
            if self.machine.run(_BOOT_ID, timeout_s=READY_TIMEOUT_S).stdout != boot:
                return
            if time.monotonic() > deadline:
                raise MachineLostError(f"it did not restart within {REBOOT_TIMEOUT_S:.0f} s")
            time.sleep(1.0)

    def _let_work(self, agent: Agent, budget_s: float) -> AgentRun:
        start = time.monotonic()
        try:
            return agent.run(self.machine, self.plan.task, budget_s, self.plan.folder)
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
    if plan.offline:
        return {folder: sources.find(source, plan.store) for folder, source in wanted.items()}
    return {folder: sources.fetch(source, plan.store, progress) for folder, source in wanted.items()}


def _set_aside(folder: Path, name: str) -> None:
    """Keep what a try left, so that the next one does not overwrite it."""
    kept = folder / name
    kept.mkdir(parents=True)
    for path in list(folder.iterdir()):
        if not path.name.startswith("try-"):
            path.rename(kept / path.name)
