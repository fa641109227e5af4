"""The root file system of all machines: the Debian of the virtual machines, unpacked once.

- Its folder is named by the digest of its recipe and by who unpacked it, since its files belong to that user's ids.
- It is complete or absent: made beside its place, under a lock, and renamed when finished. Machines never write to it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.ports import Progress
from pytest_deploybench.providers.local import bootstrap, debian, trust
from pytest_deploybench.providers.rootfs import namespaces

ARCHIVE_BYTES = 2 << 30
"""Room for the system as a tar archive; what it does not fill costs nothing."""
WRITE_ARCHIVE = Path(__file__).with_name("archive.sh")


@dataclass(frozen=True)
class Image:
    """An unpacked root file system."""

    digest: str
    root: Path


def build(cache: Path, progress: Progress) -> Image:
    """The image, from the cache or built now (about a minute).

    Raises:
        MissingToolError: a program or a permission is missing; the message says how to get it.
        InfraError: the build failed; nothing of it is left.
    """
    from filelock import FileLock

    recipe = debian.recipe(trust.additions(), ARCHIVE_BYTES, WRITE_ARCHIVE.read_text())
    digest = hashlib.sha256(repr(recipe).encode()).hexdigest()
    images = cache / "rootfs"
    images.mkdir(parents=True, exist_ok=True)
    folder = images / f"{digest[:16]}-uid{os.geteuid()}"
    with FileLock(images / f"{folder.name}.lock"):
        if not folder.exists():
            bootstrap.check_host(images, ARCHIVE_BYTES)
            progress(f"image: building a Debian {debian.SUITE} root file system once for this cache ({cache})")
            _build(recipe, folder, progress)
            progress(f"image: ready in {folder}")
    return Image(digest, folder)


def _build(recipe: bootstrap.Recipe, folder: Path, progress: Progress) -> None:
    building = folder.with_name(f".{folder.name}.building")
    namespaces.remove(building)
    root = building / "root"
    root.mkdir(parents=True)
    try:
        bootstrap.bootstrap(recipe, building, progress)
        unpack = ["tar", "--extract", "--numeric-owner", "--preserve-permissions", f"--directory={root}"]
        namespaces.run([*unpack, f"--file={building / bootstrap.DISK}"], "unpacking the root file system")
        root.rename(folder)
    finally:
        namespaces.remove(building)
