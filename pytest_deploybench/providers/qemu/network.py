"""The guest's network: passt carries it, `gate.py` stands between the guest and passt.

Every machine has the same addresses, so that one saved state fits all. What the guest reaches: names (10.0.2.3) and
what the host's network lets the host reach, other machines of a private network included. What it does not reach: the
host itself, by whichever address, and the cloud's metadata service. What reaches the guest: SSH, through a port on
127.0.0.1.

The sockets between QEMU, gate and passt are anonymous pairs handed down by number: nothing lies in the file system,
nobody else can connect, and passt ends when its peer is gone.
"""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.providers.local.host import LOOPBACK, free_port
from pytest_deploybench.providers.local.keeper import Command
from pytest_deploybench.providers.qemu import gate

SSH_PORT = 22
_GATEWAY_MAC = "52:55:0a:00:02:02"
_PORT_TAKEN = "Failed to bind"


@dataclass(frozen=True)
class Network:
    """One machine's way to the outside and its SSH port on the host."""

    ssh_port: int
    qemu_args: list[str]
    qemu_fd: int
    helpers: list[Command]
    """Started before QEMU."""

    def close(self) -> None:
        """Close this process's copies of the sockets; the helpers hold their own."""
        for fd in {self.qemu_fd, *(fd for helper in self.helpers for fd in helper.fds)}:
            os.close(fd)


def plan() -> Network:
    """Choose a port and make the sockets; nothing is started.

    Raises:
        OSError: no free port or no free file descriptor.
    """
    port = free_port()
    guest, gate_inner = _pair()
    gate_outer, passt = _pair()
    return Network(
        ssh_port=port,
        qemu_args=[
            *("-netdev", f"stream,id=net,addr.type=fd,addr.str={guest}"),
            *("-device", f"virtio-net-pci,netdev=net,mac={gate.GUEST_MAC}"),
        ],
        qemu_fd=guest,
        helpers=[
            Command("passt", passt_argv(port, passt), "passt.log", "passt.log", [passt]),
            Command("gate", gate_argv(gate_inner, gate_outer), "gate.log", "gate.log", [gate_inner, gate_outer]),
        ],
    )


def passt_argv(port: int, fd: int) -> list[str]:
    """passt's command line: IPv4 only, one port in, no way to the host's loopback of its own accord."""
    return [
        *("passt", "--foreground", "--stderr", "--fd", str(fd), "--ipv4-only"),
        *("--address", gate.GUEST_ADDRESS, "--netmask", str(gate.PREFIX_LENGTH), "--gateway", gate.GATEWAY_ADDRESS),
        *("--mac-addr", _GATEWAY_MAC, "--dns-forward", gate.DNS_ADDRESS, "--no-map-gw", "--no-dhcp"),
        *("--tcp-ports", f"{LOOPBACK}/{port}:{SSH_PORT}", "--udp-ports", "none"),
    ]


def gate_argv(guest_fd: int, passt_fd: int) -> list[str]:
    return [sys.executable, "-I", "-S", gate.__file__, str(guest_fd), str(passt_fd)]


def port_was_taken(folder: Path) -> bool:
    """Whether passt ended because somebody else took the port between our choice and its start."""
    log = folder / "passt.log"
    return log.exists() and _PORT_TAKEN in log.read_text(errors="replace")


def _pair() -> tuple[int, int]:
    left, right = socket.socketpair()
    return left.detach(), right.detach()
