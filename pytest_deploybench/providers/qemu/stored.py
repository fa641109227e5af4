"""Templates on disk: what lies in a template's folder, and whether it is still what was written.

    disk.qcow2      what the boot wrote, over the image's disk; every machine's disk is an overlay on this one
    memory          the guest's memory; every machine maps it privately (copy on write), so unused pages are shared
    devices         the state of everything else, as QEMU writes it
    template.json   digests and sizes of the three, the measured speed, and why machines boot cold if they must

A folder that is not what its `template.json` says is treated as absent, with one line that says why.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pytest_deploybench.ports import Progress

_MANIFEST = "template.json"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Template:
    """A saved machine, ready to be restored."""

    folder: Path
    speed_factor: float
    cold_because: str
    """Why machines of this kind boot by themselves instead of being restored; empty when they are restored."""

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def memory(self) -> Path:
        return self.folder / "memory"

    @property
    def devices(self) -> bytes:
        return (self.folder / "devices").read_bytes()


def write_manifest(template: Template) -> None:
    """Describe a finished template, so that `load` accepts it."""
    files = [path for path in template.folder.iterdir() if path.name != _MANIFEST]
    manifest = {
        "speed_factor": template.speed_factor,
        "cold_because": template.cold_because,
        "files": {path.name: {"size": path.stat().st_size, "sha256": digest_of(path)} for path in files},
    }
    (template.folder / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def load(folder: Path, progress: Progress) -> Template | None:
    """The template in a folder; None if there is none or it is damaged, the latter with a line to `progress`."""
    if not folder.exists():
        return None
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        for name, expected in manifest["files"].items():
            path = folder / name
            if path.stat().st_size != expected["size"] or digest_of(path) != expected["sha256"]:
                raise ValueError(f"{name} has changed")
        os.utime(folder)  # for `forget_unused`
        return Template(folder, float(manifest["speed_factor"]), str(manifest["cold_because"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        progress(f"the saved machine {folder} is damaged ({error}); it is made again")
        return None


def lock_of(folder: Path) -> FileLock:
    """Held by whoever makes, checks or removes the template in a folder."""
    return FileLock(folder.with_suffix(".lock"))


def forget_unused(templates: Path, days: float) -> list[Path]:
    """Remove templates, finished or not, that nobody has asked for in so many days; the removed ones.

    One in use elsewhere at this moment is left alone. A machine that runs keeps its memory and disk files open, and its
    template was asked for when it started, so a limit beyond any lifetime never touches it.
    """
    forgotten = []
    for folder in templates.iterdir():
        if not folder.is_dir() or time.time() - folder.stat().st_mtime < days * 86_400:
            continue
        with contextlib.suppress(Timeout), lock_of(folder).acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
            forgotten.append(folder)
    return forgotten


def digest_of(path: Path) -> str:
    """sha256 of a file's blocks that are not all zero, with their places: a sparse memory file costs what it holds."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        for start, end in _data_ranges(file.fileno(), path.stat().st_size):
            file.seek(start)
            for at in range(start, end, _BLOCK):
                block = file.read(_BLOCK)
                if block.count(0) < len(block):
                    digest.update(b"%d:" % at)
                    digest.update(block)
    return digest.hexdigest()


def _data_ranges(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole blocks outside of which a file is all zero; how its data is stored does not matter."""
    at = 0
    while at < size:
        try:
            data = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:  # ENXIO: only a hole is left
            return
        start, end = data // _BLOCK * _BLOCK, -(-os.lseek(fd, data, os.SEEK_HOLE) // _BLOCK) * _BLOCK
        yield start, end
        at = end
