"""The provider says quickly what it cannot host, tells a switched-off machine from a lost one, and makes real machines.

The tests marked `vm` restore real machines from the user's own cache; the first run makes image and template.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.model import Lease, MachineRequest, MachineSize, MachineState, ProviderOptions
from pytest_deploybench.providers.local import kept
from pytest_deploybench.providers.local.host import MEMORY_RESERVE_GB
from pytest_deploybench.providers.qemu.gate import GATEWAY_ADDRESS, GUEST_ADDRESS
from pytest_deploybench.providers.qemu.provider import QemuProvider
from pytest_deploybench.transport import SshMachine
from tests.providers.local.processes import Watched, command_pids, eventually, keeper_pid
from tests.providers.qemu import tiny
from tests.providers.qemu.canary import Canary
from tests.providers.qemu.test_network import own_addresses

SIZE = MachineSize(cpus=2, memory_gb=2, disk_gb=10)
"""What the smoke tasks use, so that one template serves both."""
CLOCK_ERROR_S = 0.3
"""How far a restored machine's clock may be off: what the host's scheduler may delay the one message that sets it."""


def silent(_line: str) -> None:
    """Nobody reads the progress of a test."""


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    return tmp_path / "machines"


@pytest.fixture
def provider(machines: Path) -> QemuProvider:
    return QemuProvider(ProviderOptions(), silent, machines=machines)


# --- what it cannot host ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (replace(SIZE, accelerator="nvidia-tesla-t4"), "needs an NVIDIA GPU (nvidia-tesla-t4), local QEMU has none"),
        (replace(SIZE, cpus=4096), f"needs 4096 CPUs, this host can give a machine {psutil.cpu_count()}"),
        (replace(SIZE, memory_gb=1e6), "needs 1e+06 GB of memory, this host can give a machine"),
        (replace(SIZE, disk_gb=10**7), "needs 1e+07 GB of disk, this host can give a machine"),
    ],
    ids=["a GPU", "CPUs", "memory", "disk"],
)
def test_a_refusal_names_what_is_wanted_and_what_is_there(
    provider: QemuProvider, size: MachineSize, words: str
) -> None:
    assert (provider.refusal(size) or "").startswith(words)


def test_a_machine_that_fits_is_not_refused_and_asking_makes_nothing(provider: QemuProvider, machines: Path) -> None:
    assert provider.refusal(SIZE) is None
    assert not machines.exists()


def test_capacity_follows_the_host(provider: QemuProvider) -> None:
    capacity = provider.capacity
    assert capacity.machines is None
    assert capacity.cpus == 2 * (psutil.cpu_count() or 1)
    assert 0 <= (capacity.memory_gb or 0.0) < psutil.virtual_memory().total / 2**30


def test_a_host_without_the_tools_learns_how_to_get_them(
    provider: QemuProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingToolError, match=r"doctor --fix.*qemu-system-x86 qemu-utils passt"):
        provider.create(MachineRequest("machine", SIZE, lifetime_s=60))


@pytest.mark.parametrize("machine_id", ["", "../other", "a/b", "."])
def test_an_id_can_only_name_a_folder_of_its_own(provider: QemuProvider, machine_id: str) -> None:
    with pytest.raises(InfraError, match="no machine id"):
        provider.destroy(machine_id)


# --- state, with guests of a few bytes -------------------------------------------------------------------------------


@contextmanager
def tiny_machine(tmp_path: Path, machines: Path, *code: int) -> Iterator[Watched]:
    machine = tiny.started(tiny.hardware(tmp_path, *code), machines / "tiny")
    yield Watched.everything(machine.folder)
    machine.end()


def test_a_running_machine_runs_and_a_destroyed_one_is_gone(
    provider: QemuProvider, machines: Path, tmp_path: Path
) -> None:
    with tiny_machine(tmp_path, machines, *tiny.WAIT) as watched:
        assert provider.state("tiny") is MachineState.RUNNING
        provider.destroy("tiny")
        assert watched.ended(0.0)
        assert provider.state("tiny") is MachineState.LOST
        provider.destroy("tiny")


def test_a_guest_that_switches_itself_off_is_powered_off(
    provider: QemuProvider, machines: Path, tmp_path: Path
) -> None:
    with tiny_machine(tmp_path, machines, *tiny.say("bye"), *tiny.POWER_OFF):
        assert eventually(lambda: kept.exit_of(machines / "tiny"))
        assert provider.state("tiny") is MachineState.POWERED_OFF


def settled(state: MachineState) -> MachineState | None:
    """None while the keeper has not yet said how its machine ended."""
    return None if state is MachineState.RUNNING else state


@pytest.mark.parametrize("victim", ["qemu", "passt", "gate", "keeper"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_machine_whose_processes_are_killed_is_lost(
    provider: QemuProvider, machines: Path, tmp_path: Path, victim: str, how: signal.Signals
) -> None:
    """QEMU ends with status 0 on SIGTERM, as it does when its guest switches itself off."""
    with tiny_machine(tmp_path, machines, *tiny.WAIT) as watched:
        pids = {"keeper": keeper_pid(machines / "tiny"), **command_pids(machines / "tiny")}
        os.kill(pids[victim], how)
        assert watched.of("qemu", "gate", "passt").ended()
        assert eventually(lambda: settled(provider.state("tiny"))) is MachineState.LOST


# --- real machines ---------------------------------------------------------------------------------------------------


@contextmanager
def real_machine(provider: QemuProvider, machine_id: str) -> Iterator[tuple[Lease, SshMachine]]:
    lease = provider.create(MachineRequest(machine_id, SIZE, lifetime_s=3600, purpose="a test"))
    try:
        with SshMachine(lease) as machine:
            yield lease, machine
    finally:
        provider.destroy(machine_id)


def said(machine: SshMachine, command: str, timeout_s: float = 300) -> str:
    done = machine.run(command, timeout_s=timeout_s)
    assert done.ok, (command, done.exit_status, done.stdout[-500:], done.stderr[-500:])
    return done.stdout.decode().strip()


SELF_PORTRAIT = {
    "machine id": "cat /etc/machine-id",
    "host key": "cat /etc/ssh/ssh_host_*_key.pub",
    "name": "hostname",
    "randomness": "head -c 32 /dev/urandom | od -An -tx1",
    "login key": "cat ~/.ssh/authorized_keys",
}


@pytest.mark.vm
def test_restored_machines_are_machines_of_their_own(provider: QemuProvider, machines: Path) -> None:
    """The login key works, the host key is the promised one, and no two machines are the same."""
    portraits = []
    for name in ("one", "two"):
        with real_machine(provider, name) as (lease, machine):
            asked = time.time()
            guest_clock = float(said(machine, "date +%s.%N"))
            assert asked - CLOCK_ERROR_S < guest_clock < time.time() + CLOCK_ERROR_S
            assert said(machine, "cat /sys/devices/system/clocksource/clocksource0/current_clocksource") != "hpet"
            assert said(machine, "id -un; sudo id -un").split() == ["agent", "root"]
            assert provider.state(name) is MachineState.RUNNING
            assert (provider.capacity.memory_gb or 0) > psutil.virtual_memory().available / 2**30 - MEMORY_RESERVE_GB
            portraits.append({what: said(machine, how) for what, how in SELF_PORTRAIT.items()})
            assert lease.address.host_key in portraits[-1]["host key"]
            assert lease.address.login_key not in "".join(p.read_text(errors="replace") for p in texts(machines / name))
        assert not (machines / name).exists()
    for what in SELF_PORTRAIT:
        assert portraits[0][what] != portraits[1][what], what


def texts(folder: Path) -> list[Path]:
    """What lies in a machine's folder, except for the disk."""
    return [path for path in folder.iterdir() if path.suffix != ".qcow2"]


TRIES = """
import socket, sys
port, targets = int(sys.argv[1]), sys.argv[2:]
for target in targets:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as end:
            end.settimeout(2)
            try:
                end.connect((target, port))
                end.send(b"hello from " + target.encode())
            except OSError:
                pass
"""
LOOPBACK_THROUGH_THE_NETWORK = (
    "sudo sysctl -qw net.ipv4.conf.all.route_localnet=1 net.ipv4.conf.eth0.route_localnet=1 && "
    "sudo ip rule add pref 100 lookup local && sudo ip rule del pref 0 && "
    "sudo ip rule add pref 10 to 127.0.0.1 lookup 99 && "
    f"sudo ip route add 127.0.0.1 via {GATEWAY_ADDRESS} dev eth0 src {GUEST_ADDRESS} table 99 && "
    "ip route get 127.0.0.1"
)
"""What root can do to make the guest's own kernel send packets for 127.0.0.1 out of the machine."""


@pytest.mark.vm
@pytest.mark.network
def test_a_machine_reaches_the_registries_but_never_the_host(provider: QemuProvider) -> None:
    with Canary() as canary, real_machine(provider, "one") as (_, machine):
        machine.put(TRIES.encode(), "tries.py")
        targets = " ".join(["127.0.0.1", GATEWAY_ADDRESS, GUEST_ADDRESS, "10.0.2.3", *own_addresses()])
        said(machine, f"python3 tries.py {canary.port} {targets}")
        assert f"via {GATEWAY_ADDRESS}" in said(machine, LOOPBACK_THROUGH_THE_NETWORK)
        said(machine, f"python3 tries.py {canary.port} 127.0.0.1")
        assert canary.hits() == []
        said(machine, "sudo apt-get update")
        assert "six" in said(machine, f"curl --fail --silent --show-error --location {PYPI_SIMPLE_ENDPOINT}six/")


OWNER = """
import sys, time
from pathlib import Path
from pytest_deploybench.model import MachineRequest, MachineSize, ProviderOptions
from pytest_deploybench.providers.qemu.provider import QemuProvider
provider = QemuProvider(ProviderOptions(), lambda line: None, machines=Path(sys.argv[1]))
provider.create(MachineRequest("orphan", MachineSize(2, 2, 10), lifetime_s=3600))
print("ready", flush=True)
time.sleep(3600)
"""


@pytest.mark.vm
def test_a_killed_owner_leaves_no_machine(machines: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(machines)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    watched = Watched.everything(machines / "orphan")
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert watched.ended()
    assert not (machines / "orphan").exists()


@pytest.mark.vm
def test_a_machine_comes_back_from_a_reboot_and_then_switches_itself_off(
    provider: QemuProvider, machines: Path
) -> None:
    with real_machine(provider, "one") as (lease, machine):
        boot = said(machine, "cat /proc/sys/kernel/random/boot_id")
        machine.run("sudo systemctl reboot", timeout_s=60)
        with SshMachine(lease) as again:
            again.wait_ready(400)
            assert said(again, "cat /proc/sys/kernel/random/boot_id") != boot
            again.run("sudo systemctl poweroff", timeout_s=60)
        assert eventually(lambda: kept.exit_of(machines / "one"), within_s=200)
        assert provider.state("one") is MachineState.POWERED_OFF
