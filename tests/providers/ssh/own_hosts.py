"""Own hosts for tests: throw-away SSH servers on the loopback, and the inventory that lists them.

Each host is a folder: `base` is what a fresh host holds in its home, `home` what this one holds now. The reset command
really replaces the one by the other. Nothing outside of these folders is touched.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import MachineRequest, MachineSize, ProviderOptions
from pytest_deploybench.providers.ssh.leases import Leases
from pytest_deploybench.providers.ssh.provider import SshProvider
from pytest_deploybench.transport import SshMachine
from tests.support.sshd import Sshd, prepared_sshd

SIZE = MachineSize(cpus=2, memory_gb=4, disk_gb=10)
RESET = 'cd "$DEPLOYBENCH_NAME" && echo "$DEPLOYBENCH_MACHINE" >>../resets && rm -rf home && cp -a base home'
ANSWER_WITHIN_S = 20.0

_SUDO = """\
#!/bin/sh
[ "$1" != -n ] || shift
exec "$@"
"""


class OwnHosts:
    """The hosts `höst-1`, `höst-2`... and what the user wrote about them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "hosts.yaml"
        self.state = folder / "state"
        self.leases = Leases(self.state)
        self.servers: dict[str, Sshd] = {}
        self.entries: list[dict[str, Any]] = []
        self.said: list[str] = []
        """What providers told people."""

    def add(self, **changes: Any) -> Sshd:
        """One more host that answers; changes to its entry, None to leave a key out."""
        name = f"höst-{len(self.servers) + 1}"
        server = self.servers[name] = prepared_sshd(self.folder / name)
        sudo = server.home / "bin" / "sudo"
        sudo.write_text(_SUDO)  # the stand-in for a user who may: these hosts are whoever runs the tests
        sudo.chmod(0o755)
        shutil.copytree(server.home, server.folder / "base")
        address = server.lease.address
        entry = {
            "name": name,
            "host": address.host,
            "port": address.port,
            "user": address.user,
            "key_file": f"{name}/login_key",
            "host_key": address.host_key,
            "cpus": 4,
            "memory_gb": 8,
            "disk_gb": 20,
            "reset": {"command": RESET, "limit_s": 60},
        } | changes
        self.entries.append({key: value for key, value in entry.items() if value is not None})
        self.write()
        server.start()
        with SshMachine(server.lease) as machine:
            machine.wait_ready(60)
        return server

    def write(self) -> None:
        """Put the entries into the inventory file, after a change."""
        self.file.write_text(yaml.safe_dump({"hosts": self.entries}, allow_unicode=True), encoding="utf-8")

    def provider(self) -> SshProvider:
        """A provider as a session makes it."""
        options = ProviderOptions(inventory=str(self.file))
        return SshProvider(options, self.said.append, state=self.state, answer_within_s=ANSWER_WITHIN_S)

    def address(self, name: str = "höst-1") -> str:
        """What its record goes by."""
        return f"127.0.0.1:{self.servers[name].lease.address.port}"

    def record(self, name: str = "höst-1") -> Path:
        """The file that says why it is not free."""
        return self.leases.path(self.address(name))

    def resets(self) -> list[str]:
        """Machines after which a host was reset, in order."""
        log = self.folder / "resets"
        return log.read_text().split() if log.exists() else []

    def records(self) -> list[str]:
        """Hosts that are not free, each with its standing."""
        found = [self.leases.read(self.address(name)) for name in self.servers]
        return [f"{record.name} {record.standing.value}" for record in found if record]

    def stop(self) -> None:
        """End all servers."""
        for server in self.servers.values():
            server.stop()


@contextmanager
def own_hosts(folder: Path) -> Iterator[OwnHosts]:
    """No host yet; whatever is added ends with the block."""
    hosts = OwnHosts(folder)
    try:
        yield hosts
    finally:
        hosts.stop()


def request(machine_id: str, size: MachineSize = SIZE) -> MachineRequest:
    """What a fleet asks for."""
    return MachineRequest(machine_id, size, lifetime_s=600, purpose=f"run-7 task of {machine_id}")


def failure(provider: SshProvider, machine_id: str) -> InfraError:
    """Why no machine can be made."""
    with pytest.raises(InfraError) as caught:
        provider.create(request(machine_id))
    return caught.value
