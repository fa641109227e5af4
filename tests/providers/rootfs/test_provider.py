"""Machines in namespaces: what they refuse, what they keep from the host, and that nothing is left of them."""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import MachineRequest, MachineSize, MachineState, ProviderOptions
from pytest_deploybench.providers.local import identity
from pytest_deploybench.providers.local.keeper import KEEPER_FILE
from pytest_deploybench.providers.rootfs import provider as room
from pytest_deploybench.providers.rootfs.provider import RootfsProvider
from pytest_deploybench.transport import SshMachine
from tests.providers.local.processes import eventually, keeper_pid
from tests.providers.qemu.canary import Canary

SIZE = MachineSize(cpus=1, memory_gb=1, disk_gb=4)
REQUEST = MachineRequest("one", SIZE, 3600.0, purpose="tests of rootfs")
PATIENCE_S = 300.0
SLEEPER = "sleep 86123.5"
"""A command that nobody else runs."""


def silent(_line: str) -> None:
    """Nobody reads the progress of a test."""


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    return tmp_path / "machines"


@pytest.fixture
def provider(machines: Path) -> RootfsProvider:
    return RootfsProvider(ProviderOptions(), silent, machines=machines)


@contextmanager
def one(provider: RootfsProvider) -> Iterator[SshMachine]:
    try:
        with SshMachine(provider.create(REQUEST)) as machine:
            yield machine
    finally:
        provider.destroy("one")


def said(machine: SshMachine, command: str) -> str:
    done = machine.run(command, timeout_s=PATIENCE_S)
    return (done.stdout + done.stderr).decode().strip()


def sleepers() -> list[int]:
    words = SLEEPER.split()
    return [process.pid for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == words]


def mounts(machines: Path) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(machines) in line]


# --- without a machine -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "why"),
    [
        (replace(SIZE, accelerator="nvidia-tesla-t4"), "needs an NVIDIA GPU"),
        (replace(SIZE, cpus=10_000), "needs 10000 CPUs, this host can give"),
        (replace(SIZE, memory_gb=1e6), "GB of memory"),
        (replace(SIZE, disk_gb=10**9), "GB of disk"),
    ],
)
def test_what_the_host_cannot_give_is_refused(provider: RootfsProvider, size: MachineSize, why: str) -> None:
    assert why in (provider.refusal(size) or "")


def test_an_ordinary_size_is_not_refused(provider: RootfsProvider) -> None:
    assert provider.refusal(SIZE) is None


@pytest.mark.parametrize("options", [ProviderOptions(image="mine.qcow2"), ProviderOptions()], ids=["image", "kept"])
def test_it_makes_nothing_out_of_images_and_kept_machines(options: ProviderOptions, machines: Path) -> None:
    request = replace(REQUEST, kept=None if options.image else "somewhere")
    with pytest.raises(InfraError, match="its own machines only"):
        RootfsProvider(options, silent, machines=machines).create(request)


@pytest.mark.parametrize("machine_id", ["", "../one", "a/b"])
def test_an_id_must_name_a_folder(provider: RootfsProvider, machine_id: str) -> None:
    with pytest.raises(InfraError, match="no machine id"):
        provider.destroy(machine_id)


def test_secret_files_of_an_identity_are_for_their_owners_only() -> None:
    who = identity.fresh("one")
    files = room._identity_files(who)
    assert who.login_key.private.encode() not in files
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        entries = {entry.name: (oct(entry.mode), entry.uid) for entry in archive}
    assert entries["etc/ssh/ssh_host_ed25519_key"] == ("0o600", 0)
    assert entries["home/agent/.ssh"] == ("0o700", 1000)
    assert entries["home/agent/.ssh/authorized_keys"] == ("0o600", 1000)


# --- with one --------------------------------------------------------------------------------------------------------


@pytest.mark.vm
def test_a_machine_is_a_world_of_its_own(provider: RootfsProvider) -> None:
    with one(provider) as machine:
        assert said(machine, "cat /proc/1/comm; hostname; id -un") == "sshd\none\nagent"
        assert said(machine, "ip -4 -o address show dev eth0 | grep -c 10.0.2.15/24") == "1"
        assert said(machine, "sudo -n ls /proc/1/root/home") == "agent"
        assert machine.facts.no_benchmark


@pytest.mark.vm
def test_it_does_not_reach_the_host_s_loopback(provider: RootfsProvider) -> None:
    with Canary() as canary, one(provider) as machine:
        for address in ("127.0.0.1", "10.0.2.2"):
            said(machine, f"curl -s -m 5 http://{address}:{canary.port}")
        assert canary.hits() == []
        with socket.create_connection(("127.0.0.1", canary.port)):
            assert canary.hits(within_s=20.0)  # the canary does sing


@pytest.mark.vm
@pytest.mark.parametrize(
    "accident",
    [
        "sysctl -w vm.swappiness=7",
        "date -s 2001-01-01",
        "mknod /tmp/disk b 254 0",
        "touch /sys/kernel",
        "sh -c 'echo 1 >/proc/sys/kernel/panic'",
    ],
)
def test_accidents_do_not_reach_the_host(provider: RootfsProvider, accident: str) -> None:
    with one(provider) as machine:
        assert not machine.run(f"sudo -n {accident}", timeout_s=PATIENCE_S).ok


@pytest.mark.vm
def test_without_an_overlay_the_image_is_copied(
    provider: RootfsProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = tmp_path / "bin" / "mount"
    mount.parent.mkdir()
    mount.write_text(f'#!/bin/sh\ncase "$*" in "-t overlay"*) exit 32;; esac\nexec {shutil.which("mount")} "$@"\n')
    mount.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mount.parent}:{os.environ['PATH']}")
    with one(provider) as machine:
        assert said(machine, "findmnt -n -o FSTYPE /") != "overlay"
        assert said(machine, "sudo -n id -u") == "0"


@pytest.mark.vm
@pytest.mark.parametrize("victim", ["keeper", "machine"])
def test_nothing_runs_on_when_a_process_of_it_is_killed(provider: RootfsProvider, machines: Path, victim: str) -> None:
    with one(provider) as machine:
        said(machine, f"nohup {SLEEPER} >/dev/null 2>&1 </dev/null &")
        assert sleepers()
        folder = machines / "one"
        pid = keeper_pid(folder) if victim == "keeper" else psutil.Process(keeper_pid(folder)).children()[0].pid
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: not sleepers() or None)
        assert mounts(machines) == []
        assert provider.state("one") is MachineState.LOST
    assert list(machines.iterdir()) == []


@pytest.mark.vm
def test_a_machine_goes_with_its_owner(machines: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\n"
        "from pytest_deploybench.model import MachineRequest, MachineSize, ProviderOptions\n"
        "from pytest_deploybench.providers.rootfs.provider import RootfsProvider\n"
        f"provider = RootfsProvider(ProviderOptions(), print, machines=Path({str(machines)!r}))\n"
        "provider.create(MachineRequest('one', MachineSize(1, 1, 4), 3600.0))\n"
        "print('made', flush=True)\ntime.sleep(3600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert any(line == "made\n" for line in owner.stdout)
        assert (machines / "one" / KEEPER_FILE).exists()
        owner.kill()
    deadline = time.monotonic() + PATIENCE_S
    while list(machines.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list(machines.iterdir()) == []
    assert mounts(machines) == []
