"""The story of a trial: whose fault ends it how, what is tried again, and that every machine goes back."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench import taskfile
from pytest_deploybench.errors import DeployBenchError, InfraError, MachineLostError, SourceError, TaskFileError
from pytest_deploybench.fleet import Shelf
from pytest_deploybench.layer2 import Challenge
from pytest_deploybench.model import (
    Address,
    AgentRun,
    Completed,
    Fault,
    KeepVm,
    Lease,
    MachineFacts,
    MachineSize,
    MachineState,
    Task,
    Termination,
    TrialKey,
)
from pytest_deploybench.ports import Agent, Machine
from pytest_deploybench.trial import Deployment, Diary, Earlier, Plan, deployed
from tests.support.scripted_machine import ScriptedMachine
from tests.support.task_folder import write_task

FACTS = MachineFacts("scripted", "none", "tcg", 10.0)
GONE = MachineLostError("the connection broke")


def machine(**answers: Completed | BaseException) -> ScriptedMachine:
    known = {"date": Completed(0, b"1000.5\n", b"", 0.0), "env.sh": Completed(0, b"experiment ran\n", b"", 1.0)}
    files = {"RUNBOOK.md": b"how", "env.sh": b"export A=1", "out.txt": b"42"}
    return ScriptedMachine({**{key.replace("_", "."): value for key, value in answers.items()}, **known}, files, FACTS)


@dataclass
class ScriptedFleet:
    """Lends what it was given, in order; an error is raised instead."""

    machines: list[ScriptedMachine | DeployBenchError]
    state_now: MachineState = MachineState.RUNNING
    lent: list[ScriptedMachine] = field(default_factory=list)
    lifetimes_s: list[float] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    woken: list[Path | None] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    trouble: InfraError | None = None
    """What freezing and keeping raise."""

    def borrow(self, size: MachineSize, *, lifetime_s: float, purpose: str, kept: Path | None = None) -> Lease:
        self.woken.append(kept)
        self.lifetimes_s.append(lifetime_s)
        following = self.machines.pop(0)
        if isinstance(following, DeployBenchError):
            raise following
        self.lent.append(following)
        return Lease(f"db-{len(self.lent)}", Address("127.0.0.1", 22, "agent", "key", "host"), FACTS)

    def connect(self, lease: Lease) -> ScriptedMachine:
        return self.lent[-1]

    def state(self, machine_id: str) -> MachineState:
        return self.state_now

    def console(self, machine_id: str) -> str:
        return "Out of memory: Killed process 7 (solve)"

    def freeze(self, machine_id: str) -> None:
        if self.trouble:
            raise self.trouble
        self.frozen.append(machine_id)

    def keep(self, machine_id: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.kept.append(folder)

    def give_back(self, machine_id: str) -> None:
        self.back.append(machine_id)

    @property
    def settled(self) -> bool:
        return self.back == [f"db-{number + 1}" for number in range(len(self.lent))] and all(
            one.closed for one in self.lent
        )


@dataclass
class ScriptedAgent:
    """Ends as told, and notes what it was given."""

    ends: list[AgentRun | BaseException]
    needs_model: bool = False
    budgets_s: list[float] = field(default_factory=list)
    saw: list[str] = field(default_factory=list)
    """What was done to the machine before this agent got it."""
    until: threading.Event | None = None
    """What it works for."""

    def run(self, machine: Machine, task: Task, budget_s: float, folder: Path) -> AgentRun:
        self.budgets_s.append(budget_s)
        if isinstance(machine, ScriptedMachine):
            self.saw += [*machine.commands, *machine.written]
        (folder / "agent.log").write_text(f"try {len(self.budgets_s)}")
        if self.until:
            assert self.until.wait(60)
        following = self.ends.pop(0) if self.ends else AgentRun(Termination.FINISHED, 1.0, budget_s)
        if isinstance(following, BaseException):
            raise following
        return following


class Bench:
    """One trial of a toy task, ready to be carried out."""

    def __init__(self, root: Path) -> None:
        archive = b"the source"
        digest = hashlib.sha256(archive).hexdigest()
        self.store = root / "store"
        (self.store / digest).mkdir(parents=True)
        (self.store / digest / "toy-1.0.tar.gz").write_bytes(archive)
        self.task = taskfile.load(write_task(root / "tasks", source__sha256=digest))
        self.folder = root / "run"
        self.folder.mkdir()
        self.diary = Diary()
        self.progress: list[str] = []
        self.until: threading.Event | None = None
        self.shelf = Shelf(root / "kept")

    def carry_out(
        self,
        fleet: ScriptedFleet,
        ends: Iterable[AgentRun | BaseException] = (),
        retries: int = 1,
        earlier: Earlier | None = None,
        **settings: Any,
    ) -> AbstractContextManager[Deployment]:
        self.agent = ScriptedAgent(list(ends), until=self.until)
        agent: Agent | Earlier = earlier or self.agent
        plan = Plan(
            key=TrialKey(self.task.id, "scripted", None, 1),
            task=self.task,
            agent=agent,
            challenge=Challenge("solve", {"in.txt": b"?"}, ("out.txt",)),
            folder=self.folder,
            store=self.store,
            retries=retries,
            checks=3,
            connect=fleet.connect,
            shelf=self.shelf,
            provider="scripted",
            run_dir=self.folder.parent,
            **settings,
        )
        return deployed(plan, fleet, self.diary, self.progress.append)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_trial_that_goes_well_leaves_evidence_and_no_machine(bench: Bench) -> None:
    fleet = ScriptedFleet([machine()])
    with bench.carry_out(fleet) as deployment:
        assert deployment.experiment.text("out.txt") == "42"
        assert deployment.agent_run.started_at == 1000.5
        assert fleet.back == [], "the checks still need the machine"
    assert fleet.settled
    assert {"RUNBOOK.md", "env.sh", "experiment.log", "processes.txt"} <= {path.name for path in bench.folder.iterdir()}
    assert set(bench.diary.durations) == {"sources", "machine", "seed", "agent", "evidence", "experiment"}
    assert [entry.fault for entry in bench.diary.tries] == [None]


def test_budgets_grow_with_the_speed_factor_but_the_lifetime_is_native(bench: Bench) -> None:
    fleet = ScriptedFleet([machine()])
    with bench.carry_out(fleet):
        pass
    assert bench.agent.budgets_s == [bench.task.agent_budget_s * 10]
    assert bench.task.agent_budget_s < fleet.lifetimes_s[0] < bench.task.agent_budget_s * 10


def test_nothing_of_the_verifier_is_there_before_the_agent_has_ended(bench: Bench) -> None:
    with bench.carry_out(ScriptedFleet([only := machine()])):
        pass
    verifier = [name for name in ("challenge", "in.txt", "solve") if any(name in command for command in only.commands)]
    assert verifier == ["challenge", "solve"], "these words would give the verifier away"
    assert not any(word in trace for trace in bench.agent.saw for word in ("challenge", "in.txt", "solve"))


def test_an_infrastructure_fault_is_tried_again_and_its_evidence_kept(bench: Bench) -> None:
    fleet = ScriptedFleet([machine(), machine()], MachineState.LOST)
    with bench.carry_out(fleet, [GONE]) as deployment:
        assert deployment.agent_run.termination is Termination.FINISHED
    assert fleet.settled
    assert [entry.fault for entry in bench.diary.tries] == [Fault.PROVIDER, None]
    assert (bench.folder / "try-01" / "agent.log").read_text() == "try 1"
    assert (bench.folder / "agent.log").read_text() == "try 2"
    assert "Trying again" in bench.progress[-1]


def test_a_machine_that_cannot_be_had_ends_the_trial_after_all_tries(bench: Bench) -> None:
    fleet = ScriptedFleet([InfraError("no disk") for _ in range(3)])
    with pytest.raises(InfraError, match="no disk"), bench.carry_out(fleet, retries=2):
        pytest.fail("there is nothing to check")
    assert [entry.number for entry in bench.diary.tries] == [1, 2, 3]


def test_a_source_that_an_offline_store_lacks_is_named_before_a_machine_is_borrowed(bench: Bench) -> None:
    shutil.rmtree(bench.store)
    fleet = ScriptedFleet([machine()])
    mended = rf"toy-1.0.tar.gz is not there. `deploybench sources fetch --dir {bench.store}`"
    with pytest.raises(SourceError, match=mended), bench.carry_out(fleet, offline=True):
        pytest.fail("there is nothing to check")
    assert fleet.lent == []


def test_a_fault_of_the_task_is_not_tried_again(bench: Bench) -> None:
    fleet = ScriptedFleet([machine(), machine()])
    with pytest.raises(TaskFileError), bench.carry_out(fleet, [TaskFileError("t", "k", "p", "r")]):
        pytest.fail("there is nothing to check")
    assert len(fleet.lent) == 1
    assert fleet.settled


@pytest.mark.parametrize("state", [MachineState.RUNNING, MachineState.POWERED_OFF])
def test_an_agent_that_cuts_itself_off_is_still_verified(bench: Bench, state: MachineState) -> None:
    fleet = ScriptedFleet([machine()], state)
    with bench.carry_out(fleet, [GONE]) as deployment:
        assert deployment.agent_run.termination is Termination.CRASHED
        assert deployment.experiment.text("out.txt") == "42"
    assert len(bench.diary.tries) == 1


def test_a_machine_that_the_agent_left_unreachable_fails_the_experiment_and_is_no_fault_of_ours(bench: Bench) -> None:
    fleet = ScriptedFleet([machine(ps=GONE)], MachineState.POWERED_OFF)
    with bench.carry_out(fleet) as deployment:
        assert deployment.experiment.exit_status is None
        with pytest.raises(AssertionError, match="cannot be reached"):
            deployment.experiment.text("out.txt")
    assert fleet.settled


def test_a_machine_lost_while_the_experiment_runs_is_tried_again(bench: Bench) -> None:
    fleet = ScriptedFleet([machine(ps=GONE), machine()], MachineState.LOST)
    with bench.carry_out(fleet):
        pass
    assert [entry.fault for entry in bench.diary.tries] == [Fault.PROVIDER, None]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_an_interrupt_or_a_bug_gives_the_machine_back(bench: Bench, error: BaseException) -> None:
    fleet = ScriptedFleet([machine()])
    with pytest.raises(type(error)), bench.carry_out(fleet, [error]):
        pytest.fail("there is nothing to check")
    assert fleet.settled


def test_a_failing_check_gives_the_machine_back(bench: Bench) -> None:
    fleet = ScriptedFleet([machine()])
    with pytest.raises(AssertionError, match="a claim"), bench.carry_out(fleet):
        raise AssertionError("a claim")
    assert fleet.settled


def test_traces_of_container_engines_reach_layer_1(bench: Bench) -> None:
    found = Completed(0, b"/usr/bin/docker\n", b"", 0.0)
    running = Completed(0, b"root 1 0 5 dockerd /usr/bin/dockerd -H\n", b"", 0.0)
    with bench.carry_out(ScriptedFleet([machine(type=found, ps=running)])):
        pass
    assert {finding.category.value for finding in bench.diary.findings} == {"container"}
    assert len((bench.folder / "containers.txt").read_text().splitlines()) == 2


def test_an_engine_that_only_the_path_of_env_sh_finds_reaches_layer_1(bench: Bench) -> None:
    box = machine()
    box.answers = {". ~/env.sh >": Completed(0, b"/home/agent/podman/podman\n", b"", 0.0), **box.answers}
    with bench.carry_out(ScriptedFleet([box])):
        pass
    (finding,) = bench.diary.findings
    assert finding.line == "container engine found: podman at /home/agent/podman/podman"


# --- console, vital signs, freezing, keeping ------------------------------------------------------------------------


def test_the_end_of_the_console_is_evidence_also_of_a_try_that_broke(bench: Bench) -> None:
    fleet = ScriptedFleet([machine(), machine()], MachineState.LOST)
    with bench.carry_out(fleet, [GONE]):
        pass
    for console in (bench.folder / "console.log", bench.folder / "try-01" / "console.log"):
        assert "Killed process 7" in console.read_text()


def test_vital_signs_are_taken_while_the_agent_works(bench: Bench) -> None:
    meminfo = b"MemAvailable:    2048 kB\noom_kill 3\ndisk 0 4096\n"
    asked = threading.Event()

    def answer() -> Completed:
        asked.set()
        return Completed(0, meminfo, b"", 0.0)

    only = machine()
    only.answers["meminfo"] = answer
    bench.until = asked
    with bench.carry_out(ScriptedFleet([only]), beat_every_s=0.01):
        pass
    assert bench.diary.vitals is not None
    assert bench.diary.vitals.beats >= 1
    assert (bench.diary.vitals.oom_kills, bench.diary.vitals.least_disk_mb) == (3, 0)


@pytest.mark.parametrize(
    ("wanted", "unhappy", "kept"),
    [
        (KeepVm.NEVER, True, False),
        (KeepVm.FAILED, False, False),
        (KeepVm.FAILED, True, True),
        (KeepVm.ALWAYS, False, True),
    ],
)
def test_a_machine_is_kept_where_the_user_wants_it(bench: Bench, wanted: KeepVm, unhappy: bool, kept: bool) -> None:
    fleet = ScriptedFleet([only := machine()])
    with bench.carry_out(fleet, keep_vm=wanted):
        assert fleet.frozen == (["db-1"] if wanted is not KeepVm.NEVER else [])
        assert ("sync" in only.commands) == (wanted is not KeepVm.NEVER)
        bench.diary.unhappy = unhappy
    assert fleet.kept == ([bench.shelf.place("db-1")] if kept else [])
    assert bench.diary.kept == ("db-1" if kept else None)
    assert [(label.name, label.provider, label.trial) for label in bench.shelf.labels()] == (
        [("db-1", "scripted", "toy_venue20/scripted/attempt-01")] if kept else []
    )
    assert fleet.settled


def test_a_machine_that_cannot_be_frozen_costs_no_verdict(bench: Bench) -> None:
    fleet = ScriptedFleet([machine()], trouble=InfraError("cannot keep machines"))
    with bench.carry_out(fleet, keep_vm=KeepVm.ALWAYS) as deployment:
        assert deployment.experiment.text("out.txt") == "42"
    assert fleet.kept == []
    assert "will not be kept: cannot keep machines" in bench.progress[-1]


def test_the_machine_restarts_between_agent_and_experiment(bench: Bench) -> None:
    boots = [b"boot 1\n", b"boot 1\n", b"boot 2\n"]
    only = machine()
    only.answers["boot_id"] = lambda: Completed(0, boots.pop(0), b"", 0.0)
    with bench.carry_out(ScriptedFleet([only]), reboot_before_verify=True):
        pass
    commands = [command for command in only.commands if "reboot" in command or "challenge" in command]
    assert "reboot" in commands[0]
    assert boots == [], "it waits for another boot"


def test_a_machine_that_does_not_come_up_again_is_the_agents_fault(bench: Bench) -> None:
    fleet = ScriptedFleet([machine(reboot=GONE)])
    only = fleet.machines[0]
    assert isinstance(only, ScriptedMachine)
    only.answers["boot_id"] = GONE
    with bench.carry_out(fleet, reboot_before_verify=True) as deployment:
        assert deployment.experiment.exit_status is None


def test_an_earlier_deployment_is_verified_again_without_any_agent(bench: Bench) -> None:
    ran = AgentRun(Termination.TIME_BUDGET, 5.0, 5.0, started_at=7.0)
    earlier = Earlier(bench.shelf.place("db-old"), ran, "20260101")
    fleet = ScriptedFleet([only := machine()])
    with bench.carry_out(fleet, earlier=earlier, reboot_before_verify=True) as deployment:
        assert deployment.agent_run == ran
        assert deployment.experiment.text("out.txt") == "42"
    assert fleet.woken == [bench.shelf.place("db-old")]
    assert bench.agent.budgets_s == []
    assert only.written == {}
    assert bench.diary.verified_again == "20260101"
    assert not any("reboot" in command for command in only.commands), "it has just booted"
