"""The template of a kind of machine: booted once, saved while it waits for its identity, restored for every machine.

The key names everything that a saved state depends on. Making a template is serialised over processes by a lock,
appears in one rename, and ends with a proof: a guest restored from it runs the speed workload. Where saving or
restoring does not work (some guests under some KVMs), the template says so and each machine boots by itself, through
the same identity port. A template that is not what its digests say is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from pytest_deploybench.errors import InfraError
from pytest_deploybench.ports import Progress
from pytest_deploybench.providers.qemu import acceleration, guest, stored
from pytest_deploybench.providers.qemu.guest import Guest, Hardware, Memory, PortTakenError
from pytest_deploybench.providers.qemu.stored import Template

_RECIPE = 1
"""Raised when a change of this room makes older templates useless."""
_BOOT_WITHIN_S = 900.0
_STATE_WITHIN_S = 120.0
_IDENTITY_WITHIN_S = 300.0
_WAKE_WITHIN_S = 300.0
_RESULT_WITHIN_S = 60.0
_BUILD_LIFETIME_S = 3600.0
_PORT_TRIES = 5
_UNUSED_FOR_DAYS = 30.0

_WORKLOAD = """
import lzma, random, time
data = random.Random(1).randbytes(60_000) * 4
def work():
    start = time.perf_counter()
    lzma.compress(data, preset=6)
    words = {}
    for number in range(150_000):
        words[str(number % 5000)] = words.get(str(number % 5000), 0) + number * number % 7
    return time.perf_counter() - start
print("deploybench: workload %.4f s" % min(work() for _ in range(3)))
"""
"""Compression in C and work in the interpreter, about half each; the same text runs on the host and in the guest."""
_WORKLOAD_RESULT = re.compile(rb"deploybench: workload (\d+\.\d+) s")


def ensure(hardware: Hardware, cache: Path, scratch: Path, progress: Progress) -> Template:
    """The template for this hardware; made now if there is none, or if the one there is damaged.

    Args:
        scratch: where the folders of running guests lie.

    Raises:
        InfraError: it could not be made.
    """
    folder = cache / "templates" / _key(hardware)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with stored.lock_of(folder):
        found = stored.load(folder, progress)
        if found is None:
            stored.forget_unused(folder.parent, _UNUSED_FOR_DAYS)
            _make(hardware, folder, scratch, progress)
            found = stored.load(folder, progress)
        if found is None:
            raise InfraError(f"the template {folder} was damaged while it was made; check the disk it lies on")
        return found


def overlay(disk: Path, backing: Path, backing_format: str, size_gb: int) -> None:
    """Make a copy-on-write disk.

    Raises:
        InfraError: qemu-img refused.
    """
    command = [
        "qemu-img",
        "create",
        "-q",
        "-f",
        "qcow2",
        "-F",
        backing_format,
        "-b",
        str(backing),
        str(disk),
        f"{size_gb}G",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfraError(f"qemu-img could not make {disk}: {done.stderr.strip()}")


def _key(hardware: Hardware) -> str:
    parts = {
        "recipe": _RECIPE,
        "image": hardware.image.digest,
        "size": asdict(hardware.size),
        "host": acceleration.fingerprint(hardware.acceleration),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def awaken(
    template: Template,
    hardware: Hardware,
    folder: Path,
    script: Callable[[], str],
    *,
    lifetime_s: float,
    purpose: str,
) -> Guest:
    """A running machine in a folder of its own that has taken the identity which `script()` gives it.

    Args:
        folder: must not exist yet; it goes with the machine.
        script: called at the last moment, because it carries the time.

    Raises:
        InfraError: it could not be made; nothing of it is left.
    """
    return _on_a_free_port(
        folder,
        lambda: _awaken_once(template, hardware, folder, script, lifetime_s=lifetime_s, purpose=purpose),
    )


def _awaken_once(
    template: Template,
    hardware: Hardware,
    folder: Path,
    script: Callable[[], str],
    *,
    lifetime_s: float,
    purpose: str,
) -> Guest:
    warm = not template.cold_because
    with _new_folder(folder) as undo:
        disk = folder / guest.DISK
        backing = (template.disk, "qcow2") if warm else (hardware.image.disk, hardware.image.disk_format)
        overlay(disk, *backing, hardware.size.disk_gb)
        memory = Memory(template.memory, private=True) if warm else None
        woken = guest.start(folder, hardware, disk, memory, incoming=warm, lifetime_s=lifetime_s, purpose=purpose)
        undo.callback(woken.end)
        if warm:
            woken.load_state(template.devices, _STATE_WITHIN_S)
        else:
            woken.await_console(guest.READY_LINE, _BOOT_WITHIN_S)
        woken.become(script(), _IDENTITY_WITHIN_S)
        return woken


def wake(disk: Path, hardware: Hardware, folder: Path, *, lifetime_s: float, purpose: str) -> Guest:
    """A machine that boots from the disk of an earlier one, with the identity that lies on it.

    It need not answer: whoever had the earlier one may have broken it.

    Args:
        disk: stays as it is; the machine writes to an overlay.
        folder: must not exist yet; it goes with the machine.

    Raises:
        InfraError: it could not be started; nothing of it is left.
    """
    return _on_a_free_port(folder, lambda: _wake_once(disk, hardware, folder, lifetime_s=lifetime_s, purpose=purpose))


def _wake_once(disk: Path, hardware: Hardware, folder: Path, *, lifetime_s: float, purpose: str) -> Guest:
    with _new_folder(folder) as undo:
        own = folder / guest.DISK
        overlay(own, disk, "qcow2", hardware.size.disk_gb)
        woken = guest.start(folder, hardware, own, None, incoming=False, lifetime_s=lifetime_s, purpose=purpose)
        undo.callback(woken.end)
        with contextlib.suppress(guest.SilentError):
            woken.await_ssh(_WAKE_WITHIN_S)
        return woken


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[contextlib.ExitStack]:
    """A guest's folder. What breaks the block, an interrupt too, undoes the folder and what the block adds."""
    folder.mkdir(mode=0o700, parents=True)
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        yield undo
        undo.pop_all()


def _on_a_free_port(folder: Path, make: Callable[[], Guest]) -> Guest:
    """Make a guest, again if somebody took its port meanwhile."""
    for _ in range(_PORT_TRIES):
        with contextlib.suppress(PortTakenError):
            return make()
    raise InfraError(f"the SSH port of {folder.name} was taken {_PORT_TRIES} times by others while the machine started")


# --- making ----------------------------------------------------------------------------------------------------------


def _make(hardware: Hardware, folder: Path, scratch: Path, progress: Progress) -> None:
    building = folder.with_suffix(".building")
    for stale in (building, folder):
        shutil.rmtree(stale, ignore_errors=True)
    building.mkdir(mode=0o700)
    size = hardware.size
    progress(
        f"booting a machine with {size.cpus} CPUs, {size.memory_gb:g} GB memory and {size.disk_gb} GB disk once; "
        f"all machines of this size are restored from it ({hardware.acceleration.name})"
    )
    try:
        template = _save(hardware, building, scratch)
        try:
            seconds = _workload_seconds(template, hardware, scratch)
        except InfraError as error:
            if template.cold_because:
                raise
            template = _made_cold(template, f"restoring does not work here: {error}")
            seconds = _workload_seconds(template, hardware, scratch)
        template = replace(template, speed_factor=max(1.0, round(seconds / _host_seconds(), 2)))
        stored.write_manifest(template)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    progress(
        f"saved: CPU work takes {template.speed_factor:.1f} times as long on such a machine as on this host"
        + (f"; every machine boots by itself, {template.cold_because}" if template.cold_because else "")
    )


def _save(hardware: Hardware, building: Path, scratch: Path) -> Template:
    """Boot a machine up to where it waits for its identity, and save it there."""
    image = hardware.image
    template = Template(building, speed_factor=1.0, cold_because="")
    overlay(template.disk, image.disk, image.disk_format, hardware.size.disk_gb)
    place = _place(scratch)
    place.mkdir(mode=0o700, parents=True)
    memory = Memory(template.memory, private=False)
    booted = guest.start(
        place, hardware, template.disk, memory, incoming=False, lifetime_s=_BUILD_LIFETIME_S, purpose="template"
    )
    try:
        booted.await_console(guest.READY_LINE, _BOOT_WITHIN_S)
        try:
            booted.save_state(building / "devices", _STATE_WITHIN_S)
        except InfraError as error:
            return _made_cold(template, f"saving does not work here: {error}")
    finally:
        booted.end()
    return template


def _made_cold(template: Template, because: str) -> Template:
    """A template that keeps nothing but the fact that its machines boot by themselves."""
    for leftover in template.folder.iterdir():
        leftover.unlink()
    return replace(template, cold_because=because)


def _workload_seconds(template: Template, hardware: Hardware, scratch: Path) -> float:
    """Run the speed workload on a throw-away machine, which also proves that the template can be restored."""
    script = f"import sys; sys.stdout = open('/dev/ttyS0', 'w', buffering=1)\n{_WORKLOAD}"
    machine = awaken(template, hardware, _place(scratch), lambda: script, lifetime_s=_BUILD_LIFETIME_S, purpose="speed")
    try:
        found = machine.await_console(_WORKLOAD_RESULT, _RESULT_WITHIN_S)
    finally:
        machine.end()
    return float(found[1])


def _host_seconds() -> float:
    done = subprocess.run([sys.executable, "-I", "-S", "-c", _WORKLOAD], capture_output=True, check=True)
    found = _WORKLOAD_RESULT.search(done.stdout)
    if found is None:
        raise InfraError(f"the speed workload printed {done.stdout[:200]!r} on the host")
    return float(found[1])


def _place(scratch: Path) -> Path:
    return scratch / f"template-{uuid.uuid4().hex[:12]}"
