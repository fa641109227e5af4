"""What every provider promises, as functions of a harness. A broken promise is an AssertionError.

`test_contract.py` lets every provider keep every promise, except for the gaps that are declared there.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from pytest_deploybench.errors import InfraError, MachineLostError
from pytest_deploybench.fleet import Fleet, FleetClient
from pytest_deploybench.model import Lease, MachineRequest, MachineSize, MachineState
from pytest_deploybench.ports import Preserver, Provider
from pytest_deploybench.transport import SshMachine

LARGE_BYTES = 100_000_000
"""What `Machine.get` lets through by default, exactly."""
HOUR_S = 3600.0
UNICODE = "ünïcode 名前 😀 '$(x)"


class Promise(Protocol):
    """Raises AssertionError where it is broken; the folder is empty and goes afterwards."""

    __name__: str

    def __call__(self, harness: Harness, folder: Path, /) -> None: ...


class Harness(Protocol):
    """A provider under test, and what a test has to know of it."""

    size: MachineSize
    """Of the machines that are made."""
    at_once: int
    """How many machines are made in parallel."""
    patience_s: float
    """What an ordinary command on a machine may take."""
    short_life_s: float
    """A lifetime in native seconds, just long enough to see the machine alive."""
    life_grace_s: float
    """What a machine may take to go down; so much later than its lifetime, scaled by its speed factor, it may end."""
    recipe: str
    """Python source that makes the same `provider` in another process."""
    say_on_console: str | None
    """Shell command on a machine that writes its standard input to the machine's console; None where there is none."""

    def provider(self) -> Provider:
        """The provider, made anew as a session makes it."""
        ...

    def reboot(self, machine: SshMachine) -> None:
        """Restart the machine; return when it is going down or later."""
        ...

    def powered_off(self, machine: SshMachine) -> AbstractContextManager[None]:
        """Switch the machine off, as its own user would; afterwards it may come back, to be destroyed."""
        ...

    def left(self) -> list[str]:
        """Whatever is left of machines, by name. Empty when every machine was destroyed."""
        ...


# --- tools -----------------------------------------------------------------------------------------------------------


@contextmanager
def machine_of(
    harness: Harness, machine_id: str, provider: Provider | None = None, kept: str | None = None
) -> Iterator[SshMachine]:
    """A machine and the connection to it; destroyed afterwards, without any trace."""
    provider = provider or harness.provider()
    try:
        with SshMachine(provider.create(replace(ask(harness, machine_id), kept=kept))) as machine:
            yield machine
    finally:
        provider.destroy(machine_id)
    assert harness.left() == []


def ask(harness: Harness, machine_id: str, lifetime_s: float = HOUR_S) -> MachineRequest:
    return MachineRequest(machine_id, harness.size, lifetime_s, purpose="the provider contract")


def said(harness: Harness, machine: SshMachine, command: str) -> str:
    """What a command prints that must succeed."""
    done = machine.run(command, timeout_s=harness.patience_s)
    assert done.ok, (command, done.exit_status, done.stdout[-500:], done.stderr[-500:])
    return done.stdout.decode().strip()


def becomes_true(look: Callable[[], bool], within_s: float) -> bool:
    """Whether it does within the time."""
    deadline = time.monotonic() + within_s
    while not look():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def silent(_line: str) -> None:
    """Nobody reads the progress of a test."""


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


PROMISES: list[Promise] = []


def promise(function: Promise) -> Promise:
    """Put a function into the list of promises."""
    PROMISES.append(function)
    return function


# --- promises --------------------------------------------------------------------------------------------------------


@promise
def a_created_machine_runs_commands(harness: Harness, _folder: Path) -> None:
    """It answers at once with the promised host key, sudo needs no password, and its state is RUNNING."""
    provider = harness.provider()
    assert provider.refusal(harness.size) is None
    with machine_of(harness, "one", provider) as machine:
        assert said(harness, machine, "sudo -n echo 'it works'") == "it works"
        done = machine.run("cat; echo no >&2; exit 7", timeout_s=harness.patience_s, stdin=b"\0\xff\n")
        assert (done.exit_status, done.stdout, done.stderr) == (7, b"\0\xff\n", b"no\n")
        assert provider.state("one") is MachineState.RUNNING
        assert machine.facts.speed_factor >= 1
    assert provider.state("one") is not MachineState.RUNNING


@promise
def files_go_there_and_back(harness: Harness, folder: Path) -> None:
    """Every byte of 100 MB, and file names in any script."""
    (folder / "large").write_bytes(os.urandom(LARGE_BYTES))
    with machine_of(harness, "one") as machine:
        for name in ("large", f"{UNICODE}/{UNICODE}"):
            machine.put(folder / "large" if name == "large" else bytes(range(256)), f"~/{name}")
            assert machine.get(f"~/{name}", folder / "back" / name)
        assert digest(folder / "back" / "large") == digest(folder / "large")
        assert (folder / "back" / UNICODE / UNICODE).read_bytes() == bytes(range(256))


@promise
def a_hostile_machine_writes_nowhere_else(harness: Harness, folder: Path) -> None:
    """A fetch follows no link of the machine and creates the named file here or nothing, whatever is sent."""
    here = folder / "here"
    here.mkdir()
    with machine_of(harness, "one") as machine:
        said(harness, machine, "mkdir d; echo secret >d/f; ln -s d/f link; ln -s /etc/passwd up; mkfifo fifo")
        for name in ("link", "up", "d", "fifo", "missing"):
            assert machine.get(f"~/{name}", here / "copy") is False
        assert list(here.iterdir()) == []
        # The program that is to send the file sends names of other files instead, without end.
        machine.put(b"#!/bin/sh\nwhile printf '../../evil\\0%0500d' 0; do :; done\n", "~/lies/dd", mode=0o755)
        machine.put(b"export PATH=~/lies:$PATH\n", "~/.bashrc")
        assert b"lies" in machine.run("command -v dd", timeout_s=harness.patience_s).stdout
        assert machine.get("~/d/f", here / "copy", limit_bytes=100_000) is False
    assert sorted(path.name for path in folder.rglob("*")) == ["here"]


@promise
def a_port_of_the_machine_can_be_forwarded(harness: Harness, _folder: Path) -> None:
    """What listens on the machine's loopback is reached through a port of ours, as long as it is lent."""
    server = (
        "import socket\nwith socket.create_server(('127.0.0.1', 0)) as s:\n    print(s.getsockname()[1], flush=True)\n"
        "    c, _ = s.accept()\n    c.sendall(c.recv(100).upper())\n"
    )
    with machine_of(harness, "one") as machine:
        machine.put(server.encode(), "server.py")
        start = "python3 server.py >port 2>&1 </dev/null & until [ -s port ]; do sleep 0.1; done; cat port"
        there = int(said(harness, machine, start))
        with (
            machine.forward(there) as port,
            socket.create_connection(("127.0.0.1", port), timeout=harness.patience_s) as client,
        ):
            client.sendall(b"hello")
            assert client.recv(100) == b"HELLO"


@promise
def a_rebooted_machine_is_the_same_machine(harness: Harness, _folder: Path) -> None:
    """It comes back at its address, with its host key, its login key and its files."""
    provider = harness.provider()
    with machine_of(harness, "one", provider) as machine:
        said(harness, machine, "echo kept >file; sync")
        harness.reboot(machine)
        with SshMachine(machine.lease) as again:
            again.wait_ready(harness.patience_s)
            assert said(harness, again, "cat file") == "kept"
        assert provider.state("one") is MachineState.RUNNING


@promise
def a_machine_that_switches_itself_off_is_told_from_a_lost_one(harness: Harness, _folder: Path) -> None:
    """The one is the agent's doing and the other is not: a verdict depends on it."""
    provider = harness.provider()
    with machine_of(harness, "one", provider) as machine, harness.powered_off(machine):
        assert becomes_true(lambda: provider.state("one") is MachineState.POWERED_OFF, harness.life_grace_s)


@promise
def a_lease_opens_nothing_when_its_machine_is_gone(harness: Harness, _folder: Path) -> None:
    """Neither another machine nor the same one made fresh: whoever kept the lease is left with nothing."""
    with machine_of(harness, "one") as machine:
        lease = machine.lease
    with SshMachine(lease) as later:
        try:
            done = later.run("true", timeout_s=harness.patience_s)
        except MachineLostError:
            return
    assert not done.ok, "the lease still opens a machine"


@promise
def the_console_can_be_read(harness: Harness, _folder: Path) -> None:
    """The end of what the machine printed on its console, also from a provider made anew; nothing of unknown ones."""
    assert harness.say_on_console is not None, "there is no console"
    provider = harness.provider()
    with machine_of(harness, "one", provider) as machine:
        said(harness, machine, f"echo 'words for the console' | {harness.say_on_console}")
        assert becomes_true(lambda: b"words for the console" in provider.console("one"), harness.patience_s)
        assert b"words for the console" in harness.provider().console("one")
        assert provider.console("never-made") == b""


@promise
def a_kept_machine_wakes_as_it_was_frozen(harness: Harness, folder: Path) -> None:
    """With the files that it had then, and nothing of what came later."""
    provider = harness.provider()
    assert hasattr(provider, "freeze"), "its machines cannot be kept"
    preserver = cast(Preserver, provider)
    with machine_of(harness, "one", provider) as machine:
        said(harness, machine, "echo before >file; sync")
        preserver.freeze("one")
        said(harness, machine, "echo after >file; sync")
        preserver.keep("one", folder / "kept")
    with machine_of(harness, "two", provider, kept=str(folder / "kept")) as machine:
        machine.wait_ready(harness.patience_s)
        assert said(harness, machine, "cat file") == "before"


@promise
def a_machine_can_be_destroyed_twice(harness: Harness, _folder: Path) -> None:
    """So can one that was never made."""
    provider = harness.provider()
    provider.destroy("never-made")
    with machine_of(harness, "one", provider):
        pass
    provider.destroy("one")
    assert harness.left() == []


@promise
def another_process_can_destroy_a_machine(harness: Harness, _folder: Path) -> None:
    """As a later session does for a dead one; the owner may destroy it again."""
    provider = harness.provider()
    with machine_of(harness, "one", provider):
        done = subprocess.run(
            [sys.executable, "-c", f"{harness.recipe}\nprovider.destroy('one')\n"],
            capture_output=True,
            text=True,
            timeout=harness.patience_s,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert provider.state("one") is not MachineState.RUNNING
        assert harness.left() == []


@promise
def a_fresh_machine_knows_nothing_of_the_one_before(harness: Harness, _folder: Path) -> None:
    """However often machines are made, there is nothing to find of an earlier trial."""
    provider = harness.provider()
    for number in range(2 * harness.at_once):
        with machine_of(harness, f"m{number}", provider) as machine:
            assert said(harness, machine, "ls -a ~/trace /var/tmp/trace-of-a-trial 2>/dev/null || true") == ""
            said(harness, machine, "echo was here >~/trace")


@promise
def a_machine_ends_by_itself(harness: Harness, _folder: Path) -> None:
    """When its lifetime is over, whatever becomes of its owner."""
    provider = harness.provider()
    lease = provider.create(ask(harness, "one", harness.short_life_s))
    try:
        limit_s = harness.short_life_s * lease.facts.speed_factor + harness.life_grace_s
        assert becomes_true(lambda: provider.state("one") is not MachineState.RUNNING, limit_s), "it goes on"
    finally:
        provider.destroy("one")
    assert harness.left() == []


@promise
def machines_made_at_once_are_different_machines(harness: Harness, _folder: Path) -> None:
    """Each with an address and a host key of its own; what is done to one is not seen in another."""
    provider = harness.provider()
    names = [f"m{number}" for number in range(harness.at_once)]
    with ThreadPoolExecutor(harness.at_once) as pool:
        making = [pool.submit(provider.create, ask(harness, name)) for name in names]
    try:
        leases: list[Lease] = [made.result() for made in making]
        assert len({(lease.address.host, lease.address.port) for lease in leases}) == harness.at_once
        assert len({lease.address.host_key for lease in leases}) == harness.at_once
        for lease in leases:
            with SshMachine(lease) as machine:
                said(harness, machine, f"[ ! -e ~/mark ] && echo {lease.machine_id} >~/mark")
        assert {provider.state(name) for name in names} == {MachineState.RUNNING}
    finally:
        for name in names:
            provider.destroy(name)
    assert harness.left() == []


class _Halting:
    """The provider itself, but its `create` halts when the machine is made and nobody knows of it yet."""

    def __init__(self, real: Provider) -> None:
        self._real = real
        self.made, self.go = threading.Event(), threading.Event()

    def create(self, request: MachineRequest) -> Lease:
        lease = self._real.create(request)
        self.made.set()
        self.go.wait()
        return lease

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


@promise
def a_machine_cancelled_before_its_hand_over_is_destroyed(harness: Harness, folder: Path) -> None:
    """The session is closed after the machine was made and before anybody got it: the fleet destroys it, and waits."""
    provider = _Halting(harness.provider())
    journal = folder / "journal"
    fleet = Fleet(
        cast(Provider, provider),
        "contract",
        journal=journal,
        run_id="contract",
        max_machines=None,
        progress=silent,
        patience_s=0.2,
    )
    got: list[Lease | InfraError] = []

    def borrow() -> None:
        try:
            with FleetClient(fleet.open()) as client:
                got.append(client.borrow(harness.size, lifetime_s=HOUR_S, purpose="cancelled"))
        except InfraError as error:
            got.append(error)

    borrower = threading.Thread(target=borrow, daemon=True)
    borrower.start()
    try:
        assert becomes_true(lambda: provider.made.is_set() or bool(got), harness.patience_s)
        assert got == []
        assert len(list(journal.glob("*.json"))) == 1
        fleet.close()  # impatient: it destroys the machine while `create` has still not returned
    finally:
        provider.go.set()
        borrower.join(harness.patience_s)
    assert [type(outcome) for outcome in got] == [InfraError]
    assert becomes_true(lambda: not list(journal.glob("*.json")), harness.patience_s)
    assert harness.left() == []
