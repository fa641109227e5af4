"""The `qemu` provider: local virtual machines, restored from a saved state.

- A machine is a folder, a keeper process, and what the keeper started; nothing else. Its id names the folder.
- The keeper ends it when its lifetime is over, when this process ends in whatever way, or when it is told to.
- `destroy` works from any process, in any state of the machine, and only returns once nothing is left.
- Private keys of machines exist in memory only, but for the machines that the user asked to keep.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_deploybench import folders
from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.model import (
    Address,
    Capacity,
    Lease,
    MachineFacts,
    MachineRequest,
    MachineSize,
    MachineState,
    ProviderOptions,
)
from pytest_deploybench.ports import Progress
from pytest_deploybench.providers.local import host, identity, kept
from pytest_deploybench.providers.qemu import acceleration, guest, identity_script, image, preserved, template
from pytest_deploybench.providers.qemu.guest import Guest, Hardware
from pytest_deploybench.providers.qemu.image import Image
from pytest_deploybench.providers.qemu.preserved import Preserved
from pytest_deploybench.providers.qemu.stored import Template

TOOLS = {acceleration.QEMU: "qemu-system-x86", "qemu-img": "qemu-utils", "passt": "passt"}
"""Programs that a machine needs, and the Debian package of each."""
CPU_OVERCOMMIT = 2
"""Machines mostly wait for the network or run one job, so twice the host's cores may be promised."""
_KILLED_BY_SIGNAL = b"terminating on signal"


@dataclass(frozen=True)
class _Held:
    """A machine of this process."""

    guest: Guest
    what: Preserved


class QemuProvider:
    """Makes machines on this host."""

    spares = True

    def __init__(
        self, options: ProviderOptions, progress: Progress, *, cache: Path | None = None, machines: Path | None = None
    ) -> None:
        self._options, self._progress = options, progress
        self._cache = cache or folders.cache()
        self._machines = machines or folders.state() / "qemu"
        self._guests: dict[str, _Held] = {}
        self._templates: dict[MachineSize, tuple[Hardware, Template]] = {}
        self._making_templates = threading.Lock()

    @property
    def capacity(self) -> Capacity:
        """CPUs by number; memory as it would be free if none of our machines ran; machines without limit."""
        import psutil

        free = psutil.virtual_memory().available + sum(map(self._memory_held, list(self._guests)))
        return Capacity(cpus=CPU_OVERCOMMIT * host.cpus(), memory_gb=max(0.0, free / 2**30 - host.MEMORY_RESERVE_GB))

    def refusal(self, size: MachineSize) -> str | None:
        """Whether such a machine can ever run here, judged by numbers alone."""
        if size.accelerator:
            return f"needs an NVIDIA GPU ({size.accelerator}), local QEMU has none"
        return host.shortage(size, self._machines)

    def create(self, request: MachineRequest) -> Lease:
        """A machine that answers over SSH. The first of its size boots once, which takes longer.

        Raises:
            MissingToolError: QEMU or passt is not installed.
            InfraError: it could not be made; nothing of it is left.
        """
        _check_tools()
        if request.kept:
            return self._wake(request, Path(request.kept))
        hardware, saved = self._template(request.size)
        who = identity.fresh(request.machine_id)
        machine = template.awaken(
            saved,
            hardware,
            self._folder(request.machine_id),
            lambda: identity_script.script(who),
            lifetime_s=request.lifetime_s * saved.speed_factor,
            purpose=request.purpose,
        )
        address = Address(host.LOOPBACK, machine.ssh_port, identity.USER, who.login_key.private, who.host_key.public)
        facts = MachineFacts(
            provider="qemu",
            image=hardware.image.digest,
            acceleration=hardware.acceleration.name,
            speed_factor=saved.speed_factor,
            note=hardware.acceleration.reason,
        )
        return self._lease(request.machine_id, machine, Preserved(hardware.image, hardware.size, address, facts))

    def destroy(self, machine_id: str) -> None:
        """End the machine and everything of it.

        Raises:
            InfraError: something is still there, and what.
        """
        held = self._guests.pop(machine_id, None)
        if held is not None:
            held.guest.end()
        kept.end(self._folder(machine_id))

    def state(self, machine_id: str) -> MachineState:
        """Running, switched off by its guest, or lost for any other reason, such as a QEMU that does not answer."""
        folder = self._folder(machine_id)
        held = self._guests.get(machine_id)
        if kept.runs(folder) and (held is None or not held.guest.trouble()):
            return MachineState.RUNNING
        kept.await_word(folder)
        ended = kept.exit_of(folder)
        by_itself = ended is not None and ended.command == guest.MAIN_COMMAND and ended.status == 0
        log = folder / guest.QEMU_LOG
        if by_itself and log.exists() and _KILLED_BY_SIGNAL not in log.read_bytes():
            return MachineState.POWERED_OFF
        return MachineState.LOST

    def console(self, machine_id: str) -> bytes:
        """The end of its serial console, which its keeper writes down."""
        return kept.printed(self._folder(machine_id) / guest.CONSOLE)

    def freeze(self, machine_id: str) -> None:
        """Hold the disk still, without a pause of the machine. What the guest has not written yet is not on it.

        Raises:
            InfraError: QEMU refused, or this process did not make the machine.
        """
        self._held(machine_id).guest.freeze()

    def keep(self, machine_id: str, folder: Path) -> None:
        """End the machine and leave its frozen disk in `folder`; about as long as copying what the machine wrote.

        Raises:
            InfraError: it was not frozen, or could not be kept.
        """
        held = self._held(machine_id)
        if not (held.guest.folder / guest.DISK_AFTER_FREEZE).exists():
            raise InfraError(f"machine {machine_id} was not frozen, so there is nothing to keep of it")
        preserved.write(folder, held.what, held.guest.folder / guest.DISK, lambda: self.destroy(machine_id))

    def _wake(self, request: MachineRequest, folder: Path) -> Lease:
        what = preserved.read(folder)
        # The acceleration of today: a disk, unlike a saved state, does not depend on it.
        hardware = Hardware(what.image, what.size, acceleration.probe(self._cache, self._progress))
        self._progress(f"booting the kept machine {folder.name} from its disk")
        machine = template.wake(
            Preserved.disk(folder),
            hardware,
            self._folder(request.machine_id),
            lifetime_s=request.lifetime_s * what.facts.speed_factor,
            purpose=request.purpose,
        )
        address = replace(what.address, host=host.LOOPBACK, port=machine.ssh_port)
        return self._lease(request.machine_id, machine, replace(what, address=address))

    def _lease(self, machine_id: str, machine: Guest, what: Preserved) -> Lease:
        machine.settle()
        self._guests[machine_id] = _Held(machine, what)
        return Lease(machine_id, what.address, what.facts)

    def _held(self, machine_id: str) -> _Held:
        if (held := self._guests.get(machine_id)) is None:
            raise InfraError(f"machine {machine_id} was not made by this process, or is gone")
        return held

    def _memory_held(self, machine_id: str) -> int:
        """Bytes that ending the machine would give back."""
        import psutil

        held = 0
        for pid in kept.pids(self._folder(machine_id)):
            with contextlib.suppress(psutil.Error):
                held += psutil.Process(pid).memory_full_info().uss
        return held

    def _folder(self, machine_id: str) -> Path:
        return kept.folder_of(machine_id, self._machines)

    def _template(self, size: MachineSize) -> tuple[Hardware, Template]:
        """One at a time: a template takes the whole host to boot, and the others of its size wait for it anyway."""
        with self._making_templates:
            if size not in self._templates:
                self._templates[size] = self._prepare(size)
            return self._templates[size]

    def _prepare(self, size: MachineSize) -> tuple[Hardware, Template]:
        base, found = self._image(), acceleration.probe(self._cache, self._progress)
        hardware = Hardware(base, size, found)
        try:
            return hardware, template.ensure(hardware, self._cache, self._machines, self._progress)
        except InfraError as error:
            if found.name == "tcg":
                raise
            hardware = Hardware(base, size, acceleration.tcg(f"the machine did not boot under KVM: {error}"))
            return hardware, template.ensure(hardware, self._cache, self._machines, self._progress)

    def _image(self) -> Image:
        if self._options.image is None:
            return image.build(self._cache, self._progress)
        return image.from_cloud_image(Path(self._options.image).expanduser(), self._cache, self._progress)


def _check_tools() -> None:
    missing = {program: package for program, package in TOOLS.items() if shutil.which(program) is None}
    if missing:
        raise MissingToolError(
            f"not installed: {', '.join(missing)}. Run `deploybench doctor --fix`, or install the Debian "
            f"package{'s' if len(missing) > 1 else ''} {' '.join(missing.values())}"
        )
