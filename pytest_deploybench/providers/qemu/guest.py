"""One QEMU guest: its command line, its start through a keeper, and the three ways to speak with it before SSH.

- the console, which the keeper writes to `console.log`: read for the line that says the guest waits for its identity;
- the identity port, over which the one script goes that makes a restored guest a machine of its own;
- QMP, to save and load the state of the devices, to freeze the disk and to hear whether the guest runs.

All of them, and the network, are anonymous sockets handed down by number. A guest is started in a folder that exists
and that its keeper removes at the end.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import MachineSize
from pytest_deploybench.providers.local import host, kept
from pytest_deploybench.providers.local.keeper import Command
from pytest_deploybench.providers.local.kept import Kept
from pytest_deploybench.providers.qemu import network
from pytest_deploybench.providers.qemu.acceleration import Acceleration
from pytest_deploybench.providers.qemu.image import Image
from pytest_deploybench.providers.qemu.monitor import Monitor, MonitorError

CONSOLE, QEMU_LOG = "console.log", "qemu.log"
DISK, DISK_AFTER_FREEZE = "overlay.qcow2", "overlay-after-freeze.qcow2"
READY_LINE = re.compile(rb"^deploybench: waiting for identity", re.MULTILINE)
IDENTITY_PORT = "deploybench.identity"
END_OF_IDENTITY = "#END-OF-IDENTITY"
MAIN_COMMAND = "qemu"
_POLL_S = 0.02
_START_TRIES = 5
_LAST_WORDS_BYTES = 400
_DISK_DEVICE = "disk"
_MONITOR_WITHIN_S = 30.0
_ALIVE = ("running", "shutdown")
"""QEMU's words for a guest that does as it likes; the others (`io-error`, ...) tell of the host."""


class PortTakenError(InfraError):
    """Somebody took the SSH port between our choice and passt's start; another try chooses another port."""


class SilentError(InfraError):
    """The guest runs, but did not do in time what was expected of it."""


@dataclass(frozen=True)
class Hardware:
    """What a guest is made of. Guests with equal hardware can share one saved state."""

    image: Image
    size: MachineSize
    acceleration: Acceleration


@dataclass(frozen=True)
class Memory:
    """Guest memory in a file; `private` keeps this guest's writes to itself (copy on write)."""

    file: Path
    private: bool


class Guest:
    """A started guest in the hands of its owner."""

    def __init__(self, folder: Path, ssh_port: int, keeper: Kept, lines: Lines) -> None:
        self.folder, self.ssh_port, self.keeper = folder, ssh_port, keeper
        self._lines = lines

    def settle(self) -> None:
        """Give up what only its start needed."""
        self._lines.settle()

    def trouble(self) -> str:
        """Why the guest cannot be said to run, though its processes are there; empty if it does."""
        try:
            status = self._lines.monitor.status(_MONITOR_WITHIN_S)
        except MonitorError as error:
            return f"QEMU does not answer ({error})"
        return "" if status in _ALIVE else f"QEMU says {status}"

    def freeze(self) -> None:
        """Let all further writes to the disk go to a new overlay, so that `DISK` stays what it is now.

        Raises:
            InfraError: QEMU refused.
        """
        try:
            self._lines.monitor.snapshot(_DISK_DEVICE, self.folder / DISK_AFTER_FREEZE, _MONITOR_WITHIN_S)
        except MonitorError as error:
            raise self.failure(f"could not freeze its disk ({error})") from error

    def end(self) -> None:
        """End the guest and remove its folder.

        Raises:
            InfraError: something is still there, and what.
        """
        self._lines.close()
        self.keeper.let_go()
        kept.end(self.folder)

    def await_console(self, pattern: re.Pattern[bytes], timeout_s: float) -> re.Match[bytes]:
        """Wait until the console shows a pattern.

        Raises:
            InfraError: the guest ended, or the time was not enough.
        """
        console = self.folder / CONSOLE
        for _ in self._until(timeout_s, "boot"):
            if console.exists() and (found := pattern.search(console.read_bytes())):
                return found
        raise AssertionError("unreachable: _until ends with an error")

    def become(self, script: str, timeout_s: float) -> None:
        """Send the identity script and wait for its end.

        Raises:
            InfraError: it failed, the guest ended, or the time was not enough.
        """
        port = self._lines.identity
        answer = b""
        try:
            port.settimeout(timeout_s)
            port.sendall(f"{script}\n{END_OF_IDENTITY}\n".encode())
            port.settimeout(_POLL_S)
            for _ in self._until(timeout_s, "take its identity"):
                with contextlib.suppress(TimeoutError):
                    answer += port.recv(4096)
                if b"\n" in answer.partition(b"identity:")[2]:
                    break
        except OSError as error:
            raise self.failure(f"closed its identity port ({error})") from error
        status = answer.partition(b"identity:")[2].split()[0].decode(errors="replace")
        if status != "0":
            raise self.failure(f"could not take its identity: the script ended with status {status}")

    def await_ssh(self, timeout_s: float) -> None:
        """Wait until an SSH server answers at the forwarded port.

        Raises:
            InfraError: the guest ended, or the time was not enough.
        """
        for _ in self._until(timeout_s, "answer over SSH"):
            if host.answers_ssh(self.ssh_port):
                return

    def save_state(self, target: Path, timeout_s: float) -> None:
        """Stop the guest and write the state of its devices to a file; its memory stays where it is.

        Raises:
            InfraError: QEMU refused.
        """
        try:
            self._lines.monitor.save_state(target, timeout_s)
        except MonitorError as error:
            raise self.failure(f"could not save its state ({error})") from error

    def load_state(self, state: bytes, timeout_s: float) -> None:
        """Load the state of the devices into a guest started to wait for it, and let it run.

        Raises:
            InfraError: QEMU refused.
        """
        lines = self._lines
        try:
            lines.monitor.load_state(lines.state_receiver_fd, lines.state_sender, state, timeout_s)
        except MonitorError as error:
            raise self.failure(f"could not load its state ({error})") from error

    def failure(self, what: str) -> InfraError:
        """An error that carries the guest's last words."""
        if network.port_was_taken(self.folder):
            return PortTakenError(f"port {self.ssh_port} was taken while the machine started")
        return InfraError(f"the guest {self.folder.name} {what}. {last_words(self.folder)}")

    def _until(self, timeout_s: float, what: str) -> Iterator[None]:
        """Yield until the time is over or the guest has ended; both are errors."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            yield
            if kept.exit_of(self.folder) is not None or not self.folder.exists():
                raise self.failure(f"ended before it could {what}")
            time.sleep(_POLL_S)
        raise SilentError(str(self.failure(f"did not {what} within {timeout_s:.0f} s")))


class Lines:
    """The owner's ends of the sockets that QEMU was given; `theirs` are QEMU's ends, closed here once it runs."""

    def __init__(self) -> None:
        monitor, monitor_end = socket.socketpair()
        self.monitor = Monitor(monitor)
        self.identity, identity_end = socket.socketpair()
        self.state_sender, state_end = socket.socketpair()
        self.theirs = (monitor_end, identity_end, state_end)
        self.state_receiver_fd = state_end.fileno()

    @property
    def qemu_args(self) -> list[str]:
        monitor_end, identity_end, _ = self.theirs
        return [
            *("-chardev", f"socket,id=monitor,fd={monitor_end.fileno()}", "-mon", "chardev=monitor,mode=control"),
            *("-chardev", f"socket,id=identity,fd={identity_end.fileno()}"),
            *("-device", "virtio-serial-pci", "-device", f"virtserialport,chardev=identity,name={IDENTITY_PORT}"),
        ]

    def hand_over(self) -> None:
        """Close QEMU's ends here: QEMU holds its own copies."""
        for end in self.theirs:
            end.close()

    def settle(self) -> None:
        """Close what is only needed until the guest is a machine of its own."""
        self.hand_over()
        self.identity.close()
        self.state_sender.close()

    def close(self) -> None:
        self.settle()
        self.monitor.close()


def start(
    folder: Path,
    hardware: Hardware,
    disk: Path,
    memory: Memory | None,
    *,
    incoming: bool,
    lifetime_s: float,
    purpose: str,
) -> Guest:
    """Start a guest in an existing folder. `incoming` makes it wait for a saved state.

    Raises:
        InfraError: it cannot be started; the folder is gone then.
    """
    net = network.plan()
    lines = Lines()
    try:
        argv = [
            *_machine_args(hardware, disk, memory),
            *lines.qemu_args,
            *net.qemu_args,
            *(("-incoming", "defer", "-S") if incoming else ()),
        ]
        qemu_fds = [net.qemu_fd, *(end.fileno() for end in lines.theirs)]
        qemu = Command(MAIN_COMMAND, argv, CONSOLE, QEMU_LOG, qemu_fds)
        keeper = kept.launch(folder, [*net.helpers, qemu], lifetime_s=lifetime_s, purpose=purpose)
    except BaseException:
        lines.close()
        kept.end(folder)
        raise
    finally:
        net.close()
    lines.hand_over()
    return Guest(folder, net.ssh_port, keeper, lines)


def _machine_args(hardware: Hardware, disk: Path, memory: Memory | None) -> list[str]:
    image, size = hardware.image, hardware.size
    return [
        *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none"),
        *hardware.acceleration.args,
        *("-smp", str(size.cpus), *_memory_args(round(size.memory_gb * 1024), memory)),
        *("-drive", f"file={_quoted(disk)},format=qcow2,if=none,id={_DISK_DEVICE},cache=unsafe,discard=unmap"),
        *("-device", f"virtio-blk-pci,drive={_DISK_DEVICE}"),
        *(_seed_args(image.seed) if image.seed else ()),
        *("-device", "virtio-rng-pci", "-rtc", "base=utc,clock=host"),
        *("-serial", "stdio"),
        *(("-kernel", str(image.kernel), "-append", image.append) if image.kernel else ()),
        *(("-initrd", str(image.initrd)) if image.initrd else ()),
    ]


def _memory_args(size_mb: int, memory: Memory | None) -> list[str]:
    if memory is None:
        return ["-machine", "q35", "-m", f"{size_mb}M"]
    share = "off" if memory.private else "on"
    return [
        *("-machine", "q35,memory-backend=ram", "-m", f"{size_mb}M"),
        *("-object", f"memory-backend-file,id=ram,size={size_mb}M,mem-path={_quoted(memory.file)},share={share}"),
    ]


def _seed_args(seed: Path) -> list[str]:
    drive = f"file={_quoted(seed)},format=raw,if=none,id=seed,readonly=on"
    return ["-drive", drive, "-device", "virtio-blk-pci,drive=seed"]


def _quoted(path: Path) -> str:
    """A path within a QEMU option, where a comma separates and two are one."""
    return str(path).replace(",", ",,")


def last_words(folder: Path) -> str:
    """The end of what the command that ended first said, or else the guest, for an error message."""
    ended = kept.exit_of(folder)
    logs = [QEMU_LOG, CONSOLE] if ended is None or ended.command == MAIN_COMMAND else [f"{ended.command}.log"]
    for log in (folder / name for name in logs):
        text = kept.printed(log, _LAST_WORDS_BYTES).decode(errors="replace").strip()
        if text:
            return f"{log.name} ends: {text}"
    return "It left no output."
