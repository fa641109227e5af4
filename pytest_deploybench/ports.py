"""The Protocols at which providers, machines and agents meet. A handful of verbs each.

Implementations are found through entry points (`registry.py`), ours and foreign ones by the same path.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pytest_deploybench.model import (
    AgentRun,
    Brief,
    Capacity,
    Completed,
    Lease,
    MachineFacts,
    MachineRequest,
    MachineSize,
    MachineState,
    Readiness,
    Task,
)

Sink = Callable[[bytes], None]
"""Receives output as it arrives."""

Progress = Callable[[str], None]
"""Receives one line for people to read."""


class Machine(Protocol):
    """A fresh VM over SSH. Paths on the machine are strings, paths on the host are `Path`."""

    @property
    def facts(self) -> MachineFacts: ...

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        stdin: bytes = b"",
        sink: Sink | None = None,
        limit_bytes: int = 1_000_000,
    ) -> Completed:
        """Run a shell command as the login user and wait for its end.

        Output beyond `limit_bytes` per stream is dropped from the result (`truncated`); `sink` sees stdout and stderr
        interleaved, up to the same limit. The time limit kills the command and gives `timed_out`.

        Raises:
            MachineLostError: the connection cannot be made or broke.
        """
        ...

    def put(self, data: bytes | Path, remote: str, *, mode: int = 0o644) -> None:
        """Write a file; missing parent folders are made.

        Raises:
            MachineLostError: as `run`.
            InfraError: the machine refused the write.
        """
        ...

    def get(self, remote: str, local: Path, *, limit_bytes: int = 100_000_000) -> bool:
        """Fetch one regular file; False when it is missing, not a regular file, or larger than the limit.

        Raises:
            MachineLostError: as `run`.
        """
        ...


class Provider(Protocol):
    """How a fresh machine comes to be. Made once per session, in the process that owns all machines.

    A provider class is called as `factory(options: ProviderOptions, progress: Progress)`. One whose machines only serve
    the authors of tasks has an attribute `no_benchmark: str`, too: why no verdict reached there is a benchmark result.
    """

    spares: bool
    """Whether a machine that nobody uses in the end costs little, so that one may be made ahead of its borrower."""

    @property
    def capacity(self) -> Capacity:
        """How much can run at once, as things stand now."""
        ...

    def refusal(self, size: MachineSize) -> str | None:
        """Why this provider can never host such a machine, as a sentence for a skip; None if it can. Must be quick."""
        ...

    def create(self, request: MachineRequest) -> Lease:
        """Make a machine that is ready for SSH. Called from several threads at once.

        One that is woken again (`request.kept`) need not answer: what the agent did to it is not the provider's fault.

        Whatever interrupts it, `destroy(request.machine_id)` afterwards leaves nothing behind.

        Raises:
            InfraError: it could not be made.
        """
        ...

    def destroy(self, machine_id: str) -> None:
        """End the machine and remove all its traces. Unknown and already destroyed ids are fine.

        Also called by a later session for machines whose owner died.

        Raises:
            InfraError: it is still there, and why.
        """
        ...

    def state(self, machine_id: str) -> MachineState:
        """What the machine looks like from outside: its heartbeat, whatever its guest says or does."""
        ...

    def console(self, machine_id: str) -> bytes:
        """The end of what the machine printed on its console; empty where there is no console or no such machine."""
        ...


class Preserver(Protocol):
    """What a provider can do beside, if its machines can outlive their trial as disks."""

    def freeze(self, machine_id: str) -> None:
        """Hold the disk still as it is now, for `keep`; the machine goes on with a copy.

        Raises:
            InfraError: it could not be frozen.
        """
        ...

    def keep(self, machine_id: str, folder: Path) -> None:
        """End the machine, but leave its frozen disk in a new folder, and whatever `create` needs to wake it again.

        The folder appears whole or not at all. It holds the key to the woken machine, readable by its owner only.

        Raises:
            InfraError: it was never frozen, or it could not be kept; the machine may still have to be destroyed.
        """
        ...


class Agent(Protocol):
    """What acts on the machine.

    An agent class is called without arguments; one whose `needs_model` is true is a `ModelAgent`.
    """

    needs_model: bool
    """False for `reference`, `shallow` and `noop`."""

    def run(self, machine: Machine, task: Task, budget_s: float, folder: Path) -> AgentRun:
        """Work on the task until done or until `budget_s` seconds have passed; write `agent.log` into `folder`.

        The agent's own failure is part of the returned value.

        Raises:
            MachineLostError: the machine went away; the caller finds out whose fault it was.
        """
        ...


class ModelAgent(Protocol):
    """The class of an agent that drives a model: one instance for each try of a trial."""

    needs_model: bool

    def __call__(self, brief: Brief) -> Agent:
        """The agent that works with this model, on the machine at this address."""
        ...

    def prepare(self, progress: Progress) -> None:
        """Make ready what the agent needs on this host; a class method, called before any machine is borrowed.

        Raises:
            InfraError: it cannot be made ready; the message says what to do.
        """
        ...

    def readiness(self) -> Readiness:
        """How far `prepare` has to go, for people; a class method that changes nothing and is quick."""
        ...
