"""A machine that outlived its trial: its disk as it was when the agent ended, and all that wakes it again.

    disk.qcow2      over the image's disk alone, so that no template has to be kept for it
    machine.json    hardware, speed, user and host key
    login_key       the private key that opens it, for its owner's eyes only

A folder appears in one rename. The image that the disk lies on must still be in the cache when the machine is woken.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_deploybench.errors import InfraError
from pytest_deploybench.model import Address, MachineFacts, MachineSize
from pytest_deploybench.providers.qemu.image import Image

_DISK, _MANIFEST, _KEY = "disk.qcow2", "machine.json", "login_key"


@dataclass(frozen=True)
class Preserved:
    """What `machine.json` and the key say."""

    image: Image
    size: MachineSize
    address: Address
    """Host and port are those of its former life."""
    facts: MachineFacts

    @staticmethod
    def disk(folder: Path) -> Path:
        return folder / _DISK


def write(folder: Path, machine: Preserved, frozen: Path, release: Callable[[], None]) -> None:
    """Keep a frozen disk.

    Args:
        folder: must not exist yet.
        frozen: the disk, still in use; it is taken from there by a hard link where that is possible.
        release: ends whatever uses the disk, and may remove `frozen`.

    Raises:
        InfraError: it could not be kept; nothing of the folder is left.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700, parents=True)
        try:
            os.link(frozen, partial / _DISK)
        except OSError:  # another file system
            shutil.copyfile(frozen, partial / _DISK)
        release()
        _rebase(partial / _DISK, machine.image)
        (partial / _KEY).touch(mode=0o600)
        (partial / _KEY).write_text(machine.address.login_key)
        (partial / _MANIFEST).write_text(json.dumps(_dump(machine), indent=1))
        partial.rename(folder)
    except OSError as error:
        raise InfraError(f"the machine could not be kept in {folder}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read(folder: Path) -> Preserved:
    """The kept machine of a folder.

    Raises:
        InfraError: it is damaged, or the image under it is gone.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        raw = json.loads((folder / _MANIFEST).read_text())
        raw["address"]["login_key"] = (folder / _KEY).read_text()
        found = TypeAdapter(Preserved).validate_python(raw)
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        words = str(error) if isinstance(error, OSError) else type(error).__name__
        raise InfraError(f"{folder} holds no kept machine that can be woken: {words}. Remove it") from error
    missing = [str(path) for path in (Preserved.disk(folder), found.image.disk) if not path.exists()]
    if missing:
        raise InfraError(f"the machine kept in {folder} cannot be woken: {', '.join(missing)} is gone. Remove it")
    return found


def _dump(machine: Preserved) -> dict[str, Any]:
    image = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(machine.image).items()}
    address = {name: value for name, value in asdict(machine.address).items() if name != "login_key"}
    return {"image": image, "size": asdict(machine.size), "address": address, "facts": asdict(machine.facts)}


def _rebase(disk: Path, image: Image) -> None:
    """Take over what lies between the disk and the image's disk, so that nothing else is needed."""
    command = ["qemu-img", "rebase", "-b", str(image.disk), "-F", image.disk_format, str(disk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"qemu-img rebase: {done.stderr.strip()}")
