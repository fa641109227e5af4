"""Every provider keeps every promise of `contract.py`, except for the gaps declared here.

A new provider adds a harness and is held to all of them. A declared gap that suddenly works is a failure, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from pytest_deploybench.errors import MachineLostError
from pytest_deploybench.model import MachineSize, ProviderOptions
from pytest_deploybench.ports import Provider
from pytest_deploybench.providers.qemu.provider import QemuProvider
from pytest_deploybench.providers.rootfs.provider import RootfsProvider
from pytest_deploybench.transport import SshMachine
from tests.providers import contract
from tests.providers.contract import PROMISES, Harness, Promise
from tests.providers.ssh.own_hosts import SIZE, OwnHosts, own_hosts

GAPS = {
    ("ssh", "a_kept_machine_wakes_as_it_was_frozen"): "a host's disk is its owner's; a failed trial cannot keep it",
    ("ssh", "the_console_can_be_read"): "a host's console is reached through its owner's tooling, if at all",
    ("ssh", "a_machine_that_switches_itself_off_is_told_from_a_lost_one"): (
        "from outside both are silent; the verdict is INVALID, in the agent's favour"
    ),
    ("ssh", "a_lease_opens_nothing_when_its_machine_is_gone"): (
        "the login key is the user's own and opens the host before and after a trial"
    ),
    ("ssh", "a_machine_ends_by_itself"): "nothing ends an own host but its next reset, which needs a living session",
    ("rootfs", "a_kept_machine_wakes_as_it_was_frozen"): "it is thrown away; whoever wants to look in makes another",
    ("rootfs", "a_rebooted_machine_is_the_same_machine"): "it has no systemd that could reboot it, nor a boot",
}
"""What a provider cannot do, and why."""


class QemuHarness:
    """Machines of this host, from the user's own image and template."""

    size = MachineSize(cpus=2, memory_gb=2, disk_gb=10)
    at_once = 2
    patience_s = 900.0
    short_life_s = 5.0
    life_grace_s = 240.0
    say_on_console: str | None = "sudo tee /dev/console >/dev/null"

    def __init__(self, folder: Path) -> None:
        self._machines = folder / "machines"
        self.recipe = (
            "from pathlib import Path\n"
            "from pytest_deploybench.model import ProviderOptions\n"
            "from pytest_deploybench.providers.qemu.provider import QemuProvider\n"
            f"provider = QemuProvider(ProviderOptions(), print, machines=Path({str(self._machines)!r}))"
        )

    def provider(self) -> Provider:
        return QemuProvider(ProviderOptions(), contract.silent, machines=self._machines)

    def reboot(self, machine: SshMachine) -> None:
        with suppress(MachineLostError):  # it answers on until its SSH server is ended
            machine.run("sudo systemctl reboot; exec sleep 3600", timeout_s=self.patience_s)

    @contextmanager
    def powered_off(self, machine: SshMachine) -> Iterator[None]:
        with suppress(MachineLostError):
            machine.run("sudo systemctl poweroff", timeout_s=self.patience_s)
        yield

    def left(self) -> list[str]:
        return sorted(path.name for path in self._machines.iterdir()) if self._machines.exists() else []


class RootfsHarness:
    """Root file systems in namespaces, from the user's own cache."""

    size = MachineSize(cpus=1, memory_gb=1, disk_gb=4)
    at_once = 3
    patience_s = 300.0
    short_life_s = 60.0  # the lifetime begins before the hand-over, also on a busy host
    life_grace_s = 60.0
    say_on_console: str | None = "sudo tee /dev/console >/dev/null"

    def __init__(self, folder: Path) -> None:
        self._machines = folder / "machines"
        self.recipe = (
            "from pathlib import Path\n"
            "from pytest_deploybench.model import ProviderOptions\n"
            "from pytest_deploybench.providers.rootfs.provider import RootfsProvider\n"
            f"provider = RootfsProvider(ProviderOptions(), print, machines=Path({str(self._machines)!r}))"
        )

    def provider(self) -> Provider:
        return RootfsProvider(ProviderOptions(), contract.silent, machines=self._machines)

    def reboot(self, machine: SshMachine) -> None:
        said = machine.run("sudo systemctl reboot", timeout_s=self.patience_s)
        assert said.ok, said.stderr

    @contextmanager
    def powered_off(self, machine: SshMachine) -> Iterator[None]:
        with suppress(MachineLostError):
            machine.run("sudo systemctl poweroff -ff", timeout_s=self.patience_s)
        yield

    def left(self) -> list[str]:
        mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(self._machines) in line]
        return mounts + (sorted(path.name for path in self._machines.iterdir()) if self._machines.exists() else [])


class SshHarness:
    """Throw-away SSH servers on the loopback, each with a reset command that really wipes its home."""

    size = SIZE
    at_once = 3
    patience_s = 120.0
    short_life_s = 0.5
    life_grace_s = 2.0
    say_on_console: str | None = None

    def __init__(self, hosts: OwnHosts) -> None:
        self._hosts = hosts
        for _ in range(self.at_once):
            hosts.add()
        self.recipe = (
            "from pathlib import Path\n"
            "from pytest_deploybench.model import ProviderOptions\n"
            "from pytest_deploybench.providers.ssh.provider import SshProvider\n"
            f"provider = SshProvider(ProviderOptions(), print, state=Path({str(hosts.state)!r}))"
        )

    def provider(self) -> Provider:
        return self._hosts.provider()

    def reboot(self, machine: SshMachine) -> None:
        """What a reboot looks like from outside: everything ends at once, and the server comes back."""
        with self.powered_off(machine):
            pass

    @contextmanager
    def powered_off(self, machine: SshMachine) -> Iterator[None]:
        port = machine.lease.address.port
        server = next(server for server in self._hosts.servers.values() if server.lease.address.port == port)
        server.stop()
        try:
            yield
        finally:
            server.start()

    def left(self) -> list[str]:
        """Hosts that are not free, and homes that are not as in the beginning."""
        touched = [
            name for name, server in self._hosts.servers.items() if tree(server.home) != tree(server.folder / "base")
        ]
        return self._hosts.records() + touched


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@contextmanager
def qemu(folder: Path) -> Iterator[Harness]:
    yield QemuHarness(folder)


@contextmanager
def rootfs(folder: Path) -> Iterator[Harness]:
    yield RootfsHarness(folder)


@contextmanager
def ssh(folder: Path) -> Iterator[Harness]:
    with own_hosts(folder) as hosts:
        yield SshHarness(hosts)


HARNESSES: dict[str, tuple[Callable[[Path], AbstractContextManager[Harness]], tuple[pytest.MarkDecorator, ...]]] = {
    "qemu": (qemu, (pytest.mark.vm,)),
    "rootfs": (rootfs, (pytest.mark.vm,)),
    "ssh": (ssh, ()),
}
"""How each provider is set up for the tests, and the markers of tests that do."""


@pytest.fixture(scope="module")
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    make, _ = HARNESSES[request.param]
    with make(tmp_path_factory.mktemp(request.param)) as made:
        yield made


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize(
    "harness", [pytest.param(name, marks=marks) for name, (_, marks) in HARNESSES.items()], indirect=True
)
def test_promise(
    harness: Harness,
    promise: Promise,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    provider = request.node.callspec.params["harness"]
    if reason := GAPS.get((provider, promise.__name__)):
        request.applymarker(pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True))
    promise(harness, tmp_path)


def test_every_declared_gap_is_one_of_a_provider_and_a_promise() -> None:
    known = {(name, promise.__name__) for name in HARNESSES for promise in PROMISES}
    assert set(GAPS) <= known
