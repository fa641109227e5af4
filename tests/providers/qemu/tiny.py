"""Guests of a few bytes: a boot sector instead of an operating system, so that a test of QEMU takes a second."""

from __future__ import annotations

from pathlib import Path

from pytest_deploybench.model import MachineSize
from pytest_deploybench.providers.qemu import acceleration, guest, template
from pytest_deploybench.providers.qemu.guest import Guest, Hardware, Memory
from pytest_deploybench.providers.qemu.image import Image

SIZE = MachineSize(cpus=1, memory_gb=0.125, disk_gb=1)
SECTOR_AT = 0x7C00
"""Where a BIOS loads the boot sector."""
_COM1 = (0xBA, 0xF8, 0x03)  # mov dx, 0x3f8


def say(text: str) -> tuple[int, ...]:
    """Machine code that writes to the console."""
    return (*_COM1, *(byte for letter in text.encode() for byte in (0xB0, letter, 0xEE)))


WAIT = (0xF4, 0xEB, 0xFD)  # hlt, again and again
POWER_OFF = (0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF)  # ACPI: S5 over port 0x604 of a q35 machine
COUNT_AND_SAY_B = (0xFF, 0x06, 0x00, 0x90, *_COM1, 0xB0, ord("B"), 0xEE, 0xEB, 0xF4)  # inc [0x9000], write, again


def hardware(folder: Path, *code: int) -> Hardware:
    """A machine that boots this code."""
    sector = folder / "sector.raw"
    sector.write_bytes((bytes(code).ljust(510, b"\0") + b"\x55\xaa").ljust(1 << 20, b"\0"))
    return Hardware(Image("tiny", sector, "raw"), SIZE, acceleration.tcg(""))


def started(made: Hardware, folder: Path, memory: Memory | None = None, *, incoming: bool = False) -> Guest:
    folder.mkdir(parents=True)
    disk = folder / "overlay.qcow2"
    template.overlay(disk, made.image.disk, made.image.disk_format, made.size.disk_gb)
    return guest.start(folder, made, disk, memory, incoming=incoming, lifetime_s=600, purpose="a test")
