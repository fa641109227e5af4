"""A throw-away sshd on the loopback, as the current user: the real server that a guest runs, without a guest.

Nothing of the host's own SSH configuration is read or changed, and no system service is started.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_deploybench.model import Address, Lease, MachineFacts

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
AllowTcpForwarding local
LogLevel ERROR
"""


@dataclass
class Sshd:
    """A running server and the lease that opens it."""

    lease: Lease
    server: subprocess.Popen[bytes]

    def drop_connections(self) -> None:
        """Cut what is connected now; the server goes on listening."""
        for pid in _children(self.server.pid):
            os.kill(pid, signal.SIGKILL)

    def freeze_connections(self) -> None:
        """Let the other side fall silent with its connections open, as a hung guest does."""
        for pid in _children(self.server.pid):
            os.kill(pid, signal.SIGSTOP)

    def stop(self) -> None:
        """End the server and all its connections."""
        self.drop_connections()
        self.server.kill()
        self.server.wait()


@contextmanager
def running_sshd(folder: Path) -> Iterator[Sshd]:
    """Run a server whose keys lie in `folder` until the block ends."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.fail(
            "these tests talk to a real sshd, which this host lacks: apt-get install openssh-server "
            "(it need not run as a service: systemctl disable --now ssh)",
            pytrace=False,
        )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd, started by root, locks up its unprivileged half
    host_key, login_key = make_key(folder / "host_key"), make_key(folder / "login_key")
    (folder / "authorized_keys").write_text(login_key)
    port = _free_port()
    config = folder / "sshd_config"
    config.write_text(_CONFIG.format(port=port, folder=folder))
    server = subprocess.Popen([program, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL)
    private = (folder / "login_key").read_text()
    sshd = Sshd(Lease("m-test", Address("127.0.0.1", port, getpass.getuser(), private, host_key), FACTS), server)
    try:
        yield sshd
    finally:
        sshd.stop()


def make_key(path: Path) -> str:
    """Make an ed25519 key pair; the public half as `ssh-ed25519 AAAA...`."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path.with_suffix(".pub").read_text().strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(pid: int) -> list[int]:
    import psutil

    return [child.pid for child in psutil.Process(pid).children(recursive=True) if child.name().startswith("sshd")]
