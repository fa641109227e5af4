"""A guest reaches the host's network and never the host; judged by the log of a canary on the host.

Some networks answer every connect, so what a guest sees proves nothing. The guest here is a socket that speaks Ethernet
to the real passt, with or without the real gate between: whatever a root user in a guest could send, it can send.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pytest_deploybench.providers.local import kept
from pytest_deploybench.providers.local.keeper import Command
from pytest_deploybench.providers.local.kept import Exit
from pytest_deploybench.providers.qemu import network
from tests.providers.local.processes import eventually, open_descriptors
from tests.providers.qemu.canary import Canary
from tests.providers.qemu.frames import DNS, GATEWAY, GUEST, Wire, tcp, udp

pytestmark = pytest.mark.skipif(shutil.which("passt") is None, reason="passt is not installed")

QUERY = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\1"


def own_addresses() -> list[str]:
    """Every IPv4 address of this host but loopback's."""
    entries = [entry for addresses in psutil.net_if_addrs().values() for entry in addresses]
    return [e.address for e in entries if e.family == socket.AF_INET and not e.address.startswith("127.")]


@contextmanager
def machine(folder: Path, plan: network.Network, guest_fd: int, helpers: list[Command]) -> Iterator[Wire]:
    """passt, and perhaps the gate, kept as for a real machine; the main command just waits."""
    folder.mkdir()
    wire = Wire.over(guest_fd)
    main = Command("main", ["sleep", "600"], "out", "err", [])
    keeper = kept.launch(folder, [*helpers, main], lifetime_s=600, purpose="a test")
    plan.close()
    try:
        yield wire
    finally:
        wire.end.close()
        keeper.let_go()


@contextmanager
def with_gate(folder: Path) -> Iterator[Wire]:
    plan = network.plan()
    with machine(folder, plan, plan.qemu_fd, plan.helpers) as wire:
        yield wire


@contextmanager
def careless(folder: Path) -> Iterator[Wire]:
    """passt as it comes: the gateway's address leads to the host's loopback, and no gate."""
    plan = network.plan()
    guest, other = socket.socketpair()
    argv = [argument for argument in network.passt_argv(plan.ssh_port, other.fileno()) if argument != "--no-map-gw"]
    with machine(folder, plan, guest.fileno(), [Command("passt", argv, "log", "log", [other.fileno()])]) as wire:
        guest.close()
        other.close()
        yield wire


def everything_a_guest_may_try(port: int) -> list[bytes]:
    targets = ["127.0.0.1", "127.0.0.53", "0.0.0.0", GATEWAY, GUEST, DNS, "10.0.2.255", *own_addresses()]  # noqa: S104
    return [frame for target in targets for frame in (tcp(target, port), udp(target, port, target.encode()))]


def test_the_host_is_out_of_reach_by_any_address(tmp_path: Path) -> None:
    with Canary() as canary, with_gate(tmp_path / "machine") as wire:
        wire.settle()
        wire.send(*everything_a_guest_may_try(canary.port))
        wire.settle()
        assert canary.hits() == []


def test_the_canary_sees_a_guest_whose_network_is_careless(tmp_path: Path) -> None:
    """The check above can fail: the same frames over passt with its defaults do reach the host."""
    with Canary() as canary, careless(tmp_path / "machine") as wire:
        wire.settle()
        wire.send(tcp(GATEWAY, canary.port))
        assert canary.hits(within_s=20.0) == ["connection from 127.0.0.1"]
        wire.send(udp(GATEWAY, canary.port, b"hello"))
        assert canary.hits(within_s=20.0) == ["datagram b'hello'"]


@pytest.mark.network
def test_names_are_answered(tmp_path: Path) -> None:
    with with_gate(tmp_path / "machine") as wire:
        wire.settle()
        wire.send(udp(DNS, 53, QUERY))
        while (answer := wire.receive())[23] != 17:
            pass
        assert answer[26:30] == socket.inet_aton(DNS)
        assert answer[42:44] == QUERY[:2]


def test_ssh_comes_in_through_loopback_only(tmp_path: Path) -> None:
    plan = network.plan()
    with machine(tmp_path / "machine", plan, plan.qemu_fd, plan.helpers) as wire:
        wire.settle()
        with socket.create_connection(("127.0.0.1", plan.ssh_port), 20.0):
            while (frame := wire.receive())[23] != 6:
                pass
            assert frame[26:30] == socket.inet_aton(GATEWAY)
            assert int.from_bytes(frame[36:38], "big") == network.SSH_PORT
        for address in own_addresses():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((address, plan.ssh_port), 20.0)


def test_a_port_taken_by_somebody_else_is_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        plan = network.plan()
        passt = plan.helpers[0]
        (fd,) = passt.fds
        argv = network.passt_argv(taken.getsockname()[1], fd)
        with machine(folder, plan, plan.qemu_fd, [Command("passt", argv, passt.stdout, passt.stderr, [fd])]):
            assert eventually(lambda: kept.exit_of(folder)) == Exit("passt", 1)
            assert network.port_was_taken(folder)


def test_a_plan_leaves_no_descriptor_behind() -> None:
    before = open_descriptors()
    network.plan().close()
    assert open_descriptors() == before
