"""Lets programs on this host log in to the machine with the system's own `ssh`, and with nothing else of this host.

Promises a reviewer can check:
- key, known host and configuration lie in the given private folder only; no file of the host's SSH is read or written;
- the one pinned host key is accepted and the one login key offered: no agent, no passwords, no other identities;
- one connection is made ahead and shared by all that follow, so that a command costs no new login, and what runs over
  it on the machine can be found there as long as it is held.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.errors import MachineLostError, MissingToolError
from pytest_deploybench.model import Address
from pytest_deploybench.process import dying_with_us

HOST = "vm"
"""The machine's name for `ssh`."""
PROGRAMS = ("ssh", "scp", "sftp")
CONNECT_TIMEOUT_S = 120.0

_CONFIG = """\
Host {host}
    HostName {address.host}
    Port {address.port}
    User {address.user}
    IdentityFile "{folder}/login_key"
    IdentitiesOnly yes
    IdentityAgent none
    HostKeyAlias {host}
    UserKnownHostsFile "{folder}/known_hosts"
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    UpdateHostKeys no
    PasswordAuthentication no
    KbdInteractiveAuthentication no
    BatchMode yes
    ForwardAgent no
    ConnectTimeout 60
    ServerAliveInterval 15
    ServerAliveCountMax 8
    ControlMaster no
    ControlPath "{folder}/mux"
    LogLevel ERROR
"""

_WRAPPER = """\
#!/bin/sh
exec {program} -F '{config}' "$@"
"""


@dataclass(frozen=True)
class Login:
    """A way to the machine: `ssh -F config vm`, or `ssh vm` with `programs` first in PATH."""

    config: Path
    programs: Path
    """Folder of wrappers around ssh, scp and sftp that know the configuration."""

    def forward_back(self, port: int) -> int:
        """Let a port of the machine's loopback lead to a port of this host's; the machine chooses and says which.

        Raises:
            MachineLostError: the machine does not forward.
        """
        command = [str(self.programs / "ssh"), "-O", "forward", "-R", f"127.0.0.1:0:127.0.0.1:{port}", HOST]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CONNECT_TIMEOUT_S, check=False)
        if not done.stdout.strip().isdecimal():
            said = " ".join(done.stderr.split())[:300]
            raise MachineLostError(f"the machine lends no port for the way back to the gateway: {said}")
        return int(done.stdout)


@contextmanager
def opened(address: Address, folder: Path) -> Iterator[Login]:
    """Write the files of a login into a private folder and hold a connection until the block ends.

    Raises:
        MissingToolError: this host has no `ssh`.
        MachineLostError: the machine does not answer.
    """
    login = _written(address, folder)
    command = dying_with_us([str(login.programs / "ssh"), "-o", "ControlMaster=yes", "-N", HOST])
    complaints = folder / "mux.log"
    with complaints.open("wb") as stderr:
        # In a session of its own: it must outlive the agent, whose processes are ended as a group.
        master = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, start_new_session=True, env={}
        )
    try:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while not (folder / "mux").exists():
            if master.poll() is not None or time.monotonic() > deadline:
                said = " ".join(complaints.read_text(errors="replace").split())[-300:]
                raise MachineLostError(f"no login for the agent: {said or 'no answer'}")
            time.sleep(0.05)
        yield login
    finally:
        master.terminate()
        try:
            master.wait(5)
        except subprocess.TimeoutExpired:
            master.kill()
            master.wait()


def _written(address: Address, folder: Path) -> Login:
    login = Login(folder / "ssh_config", folder / "bin")
    _private(folder / "login_key", address.login_key.rstrip("\n") + "\n")
    _private(folder / "known_hosts", f"{HOST} {address.host_key}\n")
    _private(login.config, _CONFIG.format(host=HOST, address=address, folder=folder))
    login.programs.mkdir(mode=0o700)
    for name in PROGRAMS:
        program = shutil.which(name)
        if program is None:
            raise MissingToolError(
                f"agents log in with {name!r}, which this host lacks: apt-get install openssh-client"
            )
        wrapper = login.programs / name
        wrapper.write_text(_WRAPPER.format(program=program, config=login.config), encoding="utf-8")
        wrapper.chmod(0o700)
    return login


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
