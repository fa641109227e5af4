"""A throw-away sshd on the loopback, as the current user: the real server that a guest runs, without a guest.

Nothing of the host's own SSH configuration is read or changed, and no system service is started.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from pytest_deploybench.model import Address, Lease, MachineFacts
from pytest_deploybench.transport import SshMachine

FACTS = MachineFacts(provider="sshd", image="host", acceleration="native", speed_factor=1.0)

_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
AllowTcpForwarding yes
SetEnv HOME={folder}/home PATH={folder}/home/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LogLevel ERROR
"""


@dataclass
class Sshd:
    """A server that can be started and stopped, and the lease that opens it."""

    lease: Lease
    folder: Path
    _server: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """The home that a login sees: an empty folder, not the real one. Programs in its `bin` come first."""
        return self.folder / "home"

    def start(self) -> None:
        """Let it listen."""
        config = self.folder / "sshd_config"
        self._server = subprocess.Popen([_program(), "-D", "-e", "-f", config], stdin=subprocess.DEVNULL)

    def drop_connections(self) -> None:
        """Cut what is connected now, and end what runs there; the server goes on listening."""
        for process in self._below():
            process.kill()

    def freeze_connections(self) -> None:
        """Let the other side fall silent with its connections open, as a hung guest does."""
        for process in self._below():
            if process.name().startswith("sshd"):
                process.suspend()

    def stop(self) -> None:
        """End the server and all its connections."""
        self.drop_connections()
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    def _below(self) -> list[psutil.Process]:
        return psutil.Process(self._server.pid).children(recursive=True) if self._server is not None else []


@contextmanager
def running_sshd(folder: Path) -> Iterator[Sshd]:
    """Run a server whose keys lie in `folder` until the block ends. It answers when the block begins."""
    sshd = prepared_sshd(folder)
    sshd.start()
    try:
        with SshMachine(sshd.lease) as machine:
            machine.wait_ready(60)
        yield sshd
    finally:
        sshd.stop()


def prepared_sshd(folder: Path) -> Sshd:
    """A server that does not listen yet."""
    _program()
    (folder / "home" / "bin").mkdir(parents=True)
    host_key, login_key = make_key(folder / "host_key"), make_key(folder / "login_key")
    (folder / "authorized_keys").write_text(login_key)
    port = free_port()
    (folder / "sshd_config").write_text(_CONFIG.format(port=port, folder=folder))
    private = (folder / "login_key").read_text()
    return Sshd(Lease("m-test", Address("127.0.0.1", port, getpass.getuser(), private, host_key), FACTS), folder)


def make_key(path: Path) -> str:
    """Make an ed25519 key pair; the public half as `ssh-ed25519 AAAA...`."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path.with_suffix(".pub").read_text().strip()


def free_port() -> int:
    """A port of the loopback at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not yet collected does not."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _program() -> str:
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.fail(
            "these tests talk to a real sshd, which this host lacks: apt-get install openssh-server "
            "(it need not run as a service: systemctl disable --now ssh)",
            pytrace=False,
        )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd, started by root, locks up its unprivileged half
    return program
