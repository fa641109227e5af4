"""Whether guests really run under KVM here, found out by running one; TCG, QEMU's own emulation, otherwise.

/dev/kvm can exist, open and even create a VM, and still fail every guest: with "KVM internal error", with an
assertion about an MSR, or by silence. So the probe runs a guest of 15 bytes for a few seconds and believes only what
it prints. Its answer is kept for this boot of this host; what costs nothing to ask (is there a device, may we use it)
is asked anew.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.errors import MissingToolError
from pytest_deploybench.ports import Progress

QEMU = "qemu-system-x86_64"
DEVICE = Path("/dev/kvm")

_PROBE_WITHIN_S = 8.0
_HELLO = b"OK"
_BOOT_CODE = bytes(
    [
        *(0xFA,),  # cli
        *(0xB0, ord("O"), 0xE6, 0xE9),  # print to the debug console, port 0xe9
        *(0xB0, ord("K"), 0xE6, 0xE9),
        *(0xB0, 0x10, 0xE6, 0xF4),  # leave through isa-debug-exit
        *(0xF4, 0xF4),  # hlt
    ]
)
_BOOT_DISK = (_BOOT_CODE.ljust(510, b"\0") + b"\x55\xaa").ljust(1 << 20, b"\0")


@dataclass(frozen=True)
class Acceleration:
    """How guests are run."""

    name: str
    """`kvm` or `tcg`."""
    args: tuple[str, ...]
    """QEMU's options for it."""
    reason: str
    """Why it is in use, in one sentence."""


def tcg(reason: str) -> Acceleration:
    """Emulation, which works everywhere. Its translation cache is capped, so that many guests fit into memory."""
    return Acceleration("tcg", ("-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max"), reason)


def kvm(reason: str) -> Acceleration:
    return Acceleration("kvm", ("-accel", "kvm", "-cpu", "host"), reason)


def probe(cache: Path, progress: Progress) -> Acceleration:
    """What guests on this host run under.

    Raises:
        MissingToolError: there is no QEMU.
    """
    obstacle = _obstacle()
    if obstacle:
        return tcg(obstacle)
    moment = [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), platform.release(), qemu_version()]
    known = cache / "acceleration.json"
    failure = _recall(known, moment)
    if failure is None:
        progress("finding out whether KVM really works here")
        failure = failure_of(kvm(""))
        known.parent.mkdir(parents=True, exist_ok=True)
        fresh = known.with_suffix(f".{os.getpid()}.new")
        fresh.write_text(json.dumps({"moment": moment, "failure": failure}))
        fresh.replace(known)
    if failure:
        return tcg(f"machines are emulated because {DEVICE} is there but no guest runs under it: {failure}")
    return kvm("a guest ran under KVM")


def failure_of(candidate: Acceleration) -> str:
    """Run the small guest; what went wrong, or an empty string."""
    with tempfile.NamedTemporaryFile(prefix="deploybench-probe-") as disk:
        disk.write(_BOOT_DISK)
        disk.flush()
        command = [
            *(QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-m", "64M"),
            *candidate.args,
            *("-drive", f"file={disk.name},format=raw,if=none,id=disk,readonly=on"),
            *("-device", "virtio-blk-pci,drive=disk,bootindex=0"),
            *("-debugcon", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
        ]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"it stayed silent for {_PROBE_WITHIN_S:.0f} s"
    if _HELLO in done.stdout:
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return words[-1] if words else f"QEMU ended with status {done.returncode}"


def qemu_version() -> str:
    """The first line of `qemu-system-x86_64 --version`.

    Raises:
        MissingToolError: there is no QEMU.
    """
    try:
        done = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingToolError(
            f"{QEMU} does not run ({error}); run `deploybench doctor --fix`, or install Debian's qemu-system-x86"
        ) from error
    return done.stdout.partition("\n")[0]


def fingerprint(acceleration: Acceleration) -> dict[str, object]:
    """All that a saved guest depends on besides its own hardware: a guest is restored only where this is equal."""
    marks: dict[str, object] = {"qemu": qemu_version(), "args": list(acceleration.args)}
    if acceleration.name == "kvm":
        marks |= {"kernel": platform.release(), "cpu": _cpu_description()}
    return marks


def _obstacle() -> str:
    """Why KVM cannot even be tried; empty if it can."""
    if platform.machine() != "x86_64":
        return f"machines are x86_64 and this host is {platform.machine()}, so they are emulated"
    if not DEVICE.exists():
        return (
            f"machines are emulated because this host has no {DEVICE} (virtualisation is off, or not passed on to it)"
        )
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return (
            f"machines are emulated because {DEVICE} may not be opened; `sudo usermod -aG kvm $USER` and log in again"
        )
    return ""


def _recall(known: Path, moment: list[str]) -> str | None:
    try:
        answer = json.loads(known.read_text())
        return str(answer["failure"]) if answer["moment"] == moment else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _cpu_description() -> list[str]:
    """Model and flags of the first CPU: `-cpu host` hands exactly these to the guest."""
    lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    return [line for line in lines if line.startswith(("vendor_id", "model name", "stepping", "microcode", "flags"))]
