"""The `ssh` provider: machines are the user's own hosts, each in the hands of one trial at a time.

- A host is leased to one machine at most, across all sessions of the user; its record goes only when it is fresh again.
- Fresh again means: the user's reset command succeeded, and the host then showed its pinned key. A host whose reset
  failed stays out of the pool; a host without a reset is used once, and that is remembered.
- `destroy` works from any process, also one that was given another inventory.

What own hosts cannot do, and what follows:
- Nothing ends a host after its lifetime: a trial whose session was killed works on until the next session's sweep
  resets the host.
- A host that was switched off, or whose SSH server was ended, looks like one that was lost: `state` never says
  POWERED_OFF, so an agent that does this to its host gets INVALID and not FAILED.
- The login key is the user's: it opens the host before and after the trial, too. Use one made for these hosts.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_deploybench import folders
from pytest_deploybench.errors import InfraError, MachineLostError, UsageError
from pytest_deploybench.model import (
    Address,
    Capacity,
    Lease,
    MachineFacts,
    MachineRequest,
    MachineSize,
    MachineState,
    ProviderOptions,
)
from pytest_deploybench.ports import Progress
from pytest_deploybench.process import Process
from pytest_deploybench.providers.ssh import inventory, reset
from pytest_deploybench.providers.ssh.inventory import Host, Inventory
from pytest_deploybench.providers.ssh.leases import BusyError, Leases, Record, Standing, UnreadableError
from pytest_deploybench.transport import SshMachine
from pytest_deploybench.transport.connection import WrongHostError

ANSWER_WITHIN_S = 300.0
"""How long a host may take to come up after its reset command has ended."""
_COMMAND_WITHIN_S = 60.0
_KNOCK_WITHIN_S = 10.0
_LOOK_AGAIN_S = 1.0


class SshProvider:
    """Leases the hosts of an inventory. Without one it can only destroy."""

    spares = False  # a host that was leased in vain costs a reset, or is used up

    def __init__(
        self,
        options: ProviderOptions,
        progress: Progress,
        *,
        state: Path | None = None,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        """Raises UsageError where the inventory cannot be used."""
        self._inventory = inventory.load(Path(options.inventory)) if options.inventory else None
        self._progress = progress
        self._leases = Leases(state or folders.state() / "ssh")
        self._answer_within_s = answer_within_s
        self._me = Process.me()
        self._making: dict[str, threading.Event] = {}
        """Machines that are being made, and the sign that one is not wanted any more."""

    @property
    def capacity(self) -> Capacity:
        """Hosts that are neither used up nor broken nor in the hands of another session.

        Raises:
            UsageError: no inventory was given.
        """
        return Capacity(machines=sum(map(self._counts, self._hosts.hosts)))

    def refusal(self, size: MachineSize) -> str | None:
        """What each host falls short of, or how to clear it where it was used; None if one can do."""
        lacks = {host.name: host.shortfall(size) or self._used_up(host) for host in self._hosts.hosts}
        if not all(lacks.values()):
            return None
        return f"no host of {self._hosts.file} suits: " + "; ".join(f"{name} {lack}" for name, lack in lacks.items())

    def create(self, request: MachineRequest) -> Lease:
        """Lease a host that is fresh and answers; wait while all that suit are in use.

        Raises:
            UsageError: no inventory was given.
            InfraError: no host that suits is fresh, or none of them answers with its pinned key; or a kept machine is
                to be woken, which own hosts cannot.
        """
        if request.kept is not None:
            raise InfraError(
                f"{request.kept} was kept by another provider, and an own host cannot be made of it. Name the provider "
                "of that run with --deploybench-provider"
            )
        hosts = self._hosts.fitting(request.size)
        unfit: dict[str, str] = {}
        """Hosts that will not do for this machine, whoever gives one back."""
        told = False
        with self._making_of(request.machine_id) as unwanted:
            while True:
                in_use = []
                for host in hosts:
                    try:
                        if host.name not in unfit:
                            return self._lease(host, request, unwanted)
                    except BusyError:
                        in_use.append(host.name)
                    except InfraError as error:
                        unfit[host.name] = str(error)
                if not in_use:
                    why = "; ".join(f"{name}: {trouble}" for name, trouble in unfit.items())
                    raise InfraError(
                        f"no host of {self._hosts.file} can be had for this machine: {why or 'none suits'}"
                    )
                if not told:
                    self._progress(f"{request.purpose}: waiting for a host: {', '.join(in_use)} in use")
                    told = True
                if unwanted.wait(_LOOK_AGAIN_S):
                    raise InfraError(f"machine {request.machine_id} was given up while it waited for a host")

    def destroy(self, machine_id: str) -> None:
        """End the lease: reset the host and see it answer, or remember that it is used up.

        Raises:
            InfraError: the host stays out of the pool, and why.
        """
        if unwanted := self._making.get(machine_id):
            unwanted.set()
        found = self._leases.find(machine_id)
        if found is None or found.standing is Standing.USED:
            return
        host = self._described(found)
        patience_s = self._answer_within_s + (host.reset.limit_s if host.reset else 0.0)
        with self._leases.lock(host.address, patience_s) as lock:
            record = self._leases.read(host.address)
            if record is not None and record.machine_id == machine_id:
                self._give_back(host, record, lock)

    def state(self, machine_id: str) -> MachineState:
        """Running if an SSH server answers at its address; more cannot be told from outside."""
        record = self._leases.find(machine_id)
        held = record is not None and record.standing in (Standing.CLAIMED, Standing.LEASED)
        if record is None or not held:
            return MachineState.LOST
        name, _, port = record.address.rpartition(":")
        return MachineState.RUNNING if _speaks_ssh(name, int(port)) else MachineState.LOST

    def console(self, machine_id: str) -> bytes:  # noqa: ARG002 - the Protocol's
        """Nothing: a host's console is out of our reach."""
        return b""

    # --- hosts and their standing -------------------------------------------------------------------------------------

    @property
    def _hosts(self) -> Inventory:
        if self._inventory is None:
            raise UsageError(
                "the provider `ssh` needs your hosts. Write an inventory file (`hosts:`, a list of name, host, "
                "key_file, host_key, cpus, memory_gb, disk_gb) and name it with --deploybench-inventory=FILE"
            )
        return self._inventory

    def _described(self, record: Record) -> Host:
        """The host of a record: from our inventory, else from the one by which it was leased."""
        if self._inventory is not None:
            for host in self._inventory.hosts:
                if host.address == record.address:
                    return host
        why = f"{record.inventory} does not hold it any more"
        try:
            for host in inventory.load(Path(record.inventory)).hosts:
                if host.address == record.address:
                    return host
        except UsageError as error:
            why = str(error)
        raise InfraError(
            f"machine {record.machine_id} is host {record.name} at {record.address}, and how to reset that is not "
            f"known: {why}. Put it back into that file, or reset it by hand and remove "
            f"{self._leases.path(record.address)}"
        )

    def _counts(self, host: Host) -> bool:
        try:
            record = self._leases.read(host.address)
        except UnreadableError:
            return False
        if record is None or (record.in_use() and record.owner == self._me):
            return True
        return not record.in_use() and self._trouble(host, record) is None

    def _used_up(self, host: Host) -> str | None:
        with suppress(UnreadableError):  # that is no refusal: `create` says what is wrong
            record = self._leases.read(host.address)
            # One in our own hands may have been made ahead for the very trial that asks.
            ours = record is not None and record.in_use() and record.owner == self._me
            if record is not None and _spent(host, record) and not ours:
                return self._trouble(host, record)
        return None

    def _trouble(self, host: Host, record: Record) -> str | None:
        """Why a host cannot be leased now or later, and how to clear it; None if it only has to be made fresh first."""
        path = self._leases.path(host.address)
        if record.standing is Standing.BROKEN:
            return (
                f"its reset failed: {record.why}. It stays out of the pool until a later session can reset it; or mend "
                f"it by hand and remove {path}"
            )
        if not _spent(host, record):
            return None
        used = "is being used" if record.in_use() else "was used"
        return (
            f"{used} by {record.purpose or record.machine_id} and has no reset command. Reinstall it and remove "
            f"{path}, or give it a reset in {host.inventory}"
        )

    # --- the life of a lease ------------------------------------------------------------------------------------------

    @contextmanager
    def _making_of(self, machine_id: str) -> Iterator[threading.Event]:
        unwanted = self._making[machine_id] = threading.Event()
        try:
            yield unwanted
        finally:
            self._making.pop(machine_id, None)

    def _lease(self, host: Host, request: MachineRequest, unwanted: threading.Event) -> Lease:
        """Claim a host, see that it answers, and hand it over.

        Raises:
            BusyError: it is in use.
            InfraError: it cannot be leased, and why.
        """
        with self._leases.lock(host.address, 0.0) as lock:
            record = self._leases.read(host.address)
            if record is not None:
                self._make_free(host, record, lock)
            claim = self._claim(host, request)
            self._leases.write(claim)
        # From here on `destroy` finds the claim, so an interrupt needs no care.
        lease = self._lease_of(host, request.machine_id)
        trouble = self._greet(host, lease, 0.0)
        with self._leases.lock(host.address, self._answer_within_s):
            if self._leases.read(host.address) != claim:
                raise InfraError(f"machine {request.machine_id} was given up while it was made")
            if trouble or unwanted.is_set():
                self._leases.erase(host.address)
                raise InfraError(trouble or f"machine {request.machine_id} was given up while it was made")
            self._leases.write(replace(claim, standing=Standing.LEASED))
        return lease

    def _make_free(self, host: Host, record: Record, lock: int) -> None:
        if record.in_use() and not _spent(host, record):
            raise BusyError(f"host {host.name} is in use by {record.purpose}")
        if trouble := self._trouble(host, record):
            raise InfraError(trouble)
        self._give_back(host, record, lock)

    def _give_back(self, host: Host, record: Record, lock: int) -> None:
        """Make the host fresh, or remember why it is not. Under its lock."""
        if record.standing is Standing.CLAIMED:  # never handed over
            self._leases.erase(host.address)
            return
        if host.reset is None:
            self._leases.write(replace(record, standing=Standing.USED))
            return
        self._progress(f"host {host.name}: resetting it after {record.purpose or record.machine_id}")
        trouble = reset.run(host, record.machine_id, self._leases.log(host.address), lock)
        trouble = trouble or self._greet(host, self._lease_of(host, record.machine_id), self._answer_within_s)
        if trouble:
            self._leases.write(replace(record, standing=Standing.BROKEN, why=trouble))
            raise InfraError(f"host {host.name} stays out of the pool, since its reset failed: {trouble}")
        self._leases.erase(host.address)

    def _greet(self, host: Host, lease: Lease, within_s: float) -> str | None:
        """Log in with the pinned key; None when the host is what the inventory says, else what is wrong."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                with SshMachine(lease) as machine:
                    if machine.run("sudo -n true", timeout_s=_COMMAND_WITHIN_S).ok:
                        return None
                trouble = (
                    f"{host.user} may not use sudo without a password there. Put `{host.user} ALL=(ALL) NOPASSWD: ALL` "
                    "into a file in the host's /etc/sudoers.d"
                )
            except WrongHostError:
                return (
                    f"whoever answers at {host.address} shows another host key than the pinned one. {host.how_to_pin}"
                )
            except MachineLostError as error:
                trouble = f"it does not answer: {error}"
            if time.monotonic() >= deadline:
                return trouble
            time.sleep(_LOOK_AGAIN_S)

    def _claim(self, host: Host, request: MachineRequest) -> Record:
        return Record(
            address=host.address,
            name=host.name,
            inventory=str(host.inventory),
            machine_id=request.machine_id,
            purpose=request.purpose,
            owner=self._me,
            standing=Standing.CLAIMED,
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _lease_of(self, host: Host, machine_id: str) -> Lease:
        try:
            login_key = host.key_file.read_text()
        except OSError as error:
            raise InfraError(
                f"{host.inventory}: host {host.name}: key_file: {host.key_file}: {error.strerror}"
            ) from None
        facts = MachineFacts(
            provider="ssh",
            image=f"host {host.name} as its owner keeps it",
            acceleration="native",
            speed_factor=host.speed_factor,
            note="a host of the user's own",
        )
        return Lease(machine_id, Address(host.host, host.port, host.user, login_key, host.host_key), facts)


def _spent(host: Host, record: Record) -> bool:
    """Whether the host was touched and nothing of ours can make it fresh."""
    return host.reset is None and record.standing is not Standing.CLAIMED


def _speaks_ssh(name: str, port: int) -> bool:
    """Whether an SSH server answers: some networks accept a connection to anywhere, so it must say what it is."""
    try:
        with socket.create_connection((name, port), timeout=_KNOCK_WITHIN_S) as knock:
            return knock.recv(4) == b"SSH-"
    except OSError:
        return False
