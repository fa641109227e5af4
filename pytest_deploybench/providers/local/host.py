"""What this host has to give to machines. Read-only."""

from __future__ import annotations

import shutil
import socket
from contextlib import suppress
from pathlib import Path

from pytest_deploybench.model import MachineSize

LOOPBACK = "127.0.0.1"
MEMORY_RESERVE_GB = 1.0
"""Left to the host and to the processes that drive the machines."""


def cpus() -> int:
    """Number of CPUs."""
    import psutil

    return psutil.cpu_count() or 1


def shortage(size: MachineSize, machines: Path) -> str | None:
    """What this host lacks for such a machine, judged by numbers alone, as a sentence; None where it lacks nothing.

    Args:
        machines: the folder of the machines, or where it will be made.
    """
    import psutil

    memory_gb = psutil.virtual_memory().total / 2**30 - MEMORY_RESERVE_GB
    disk_gb = shutil.disk_usage(_existing(machines)).free / 2**30
    shortages = (
        ("CPUs", size.cpus, cpus()),
        ("GB of memory", size.memory_gb, memory_gb),
        ("GB of disk", size.disk_gb, disk_gb),
    )
    for what, wanted, there in shortages:
        if wanted > there:
            return f"needs {wanted:g} {what}, this host can give a machine {there:.4g}"
    return None


def free_port() -> int:
    """A port of the loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def answers_ssh(port: int) -> bool:
    """Whether an SSH server answers at this port of the loopback.

    We speak first: older passts and pastas complete a connection only when the host's side has sent something.
    """
    with suppress(OSError), socket.create_connection((LOOPBACK, port), 5.0) as probe:
        probe.sendall(b"SSH-2.0-deploybench\r\n")
        return probe.recv(4) == b"SSH-"
    return False


def _existing(path: Path) -> Path:
    """The nearest folder that is there."""
    while not path.exists():
        path = path.parent
    return path
