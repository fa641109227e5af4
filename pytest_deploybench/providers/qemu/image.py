"""What a machine boots from: a small Debian of our own, or the user's cloud image.

- Our image is made once; its folder is named by the digest of its recipe, so a changed recipe never meets an old disk.
- A folder in the cache is complete or absent: it is made beside its place, under a lock, and renamed when finished.
- What lies in the cache is checked against `image.json` before use; a damaged image is built again.
- No file of an image is written after that: machines put an overlay on the disk. The user's image stays where it is.
- An image holds no key, no machine-id and no running sshd: those come with the identity.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.ports import Progress
from pytest_deploybench.providers.local import bootstrap, debian, trust
from pytest_deploybench.providers.local.bootstrap import DISK, INITRD, KERNEL
from pytest_deploybench.providers.qemu import cloud

DISK_BYTES = 2 << 30
"""Size of the base disk; machines get a larger overlay, and the guest grows its file system at boot."""
APPEND = (
    "root=/dev/vda rootfstype=ext4 rootflags=noatime,noinit_itable rw console=ttyS0 quiet loglevel=4 net.ifnames=0 "
    "fsck.mode=skip systemd.show_status=false systemd.log_level=warning mitigations=off no_timer_check nowatchdog "
    "audit=0 cryptomgr.notests 8250.nr_uarts=1 tsc=reliable"
)
"""Kernel command line. `loglevel=4`: the console shows what the kernel calls an error, such as a killed process.
`tsc=reliable`: the CPUs of an emulated guest share one time stamp counter, which its kernel doubts;
every look at the clock would then be a trip to an emulated timer (2.2 times as long, measured)."""

WRITE_DISK = Path(__file__).with_name("disk.sh")
MANIFEST = "image.json"


@dataclass(frozen=True)
class Image:
    """What a machine boots from. All files are read-only."""

    digest: str
    """Of everything that decides what boots; a saved state belongs to one digest."""
    disk: Path
    disk_format: str
    """`raw` or `qcow2`."""
    kernel: Path | None = None
    """None: the disk boots by its own loader."""
    initrd: Path | None = None
    append: str = ""
    """Kernel command line."""
    seed: Path | None = None
    """A second, read-only raw disk that the boot needs: the cloud-init seed of the user's own image."""


def build(cache: Path, progress: Progress) -> Image:
    """Our own image, from the cache or built now (about a minute). Needs no root where user namespaces work.

    Raises:
        MissingToolError: a program or a permission is missing; the message says how to get it.
        InfraError: the build failed (network, disk space...); nothing of it is left.
    """
    from filelock import FileLock

    recipe = our_recipe(trust.additions())
    digest = hashlib.sha256(repr((recipe, APPEND)).encode()).hexdigest()
    images = cache / "images"
    images.mkdir(parents=True, exist_ok=True)
    folder = images / digest[:16]
    with FileLock(images / f"{folder.name}.lock"):
        if not _intact(folder, progress):
            bootstrap.check_host(images, recipe.disk_bytes)
            progress(
                f"image: building a Debian {debian.SUITE} image once for this cache ({cache}); "
                "it takes a minute or more"
            )
            with _partial(folder) as partial:
                bootstrap.bootstrap(recipe, partial, progress)
                _write_manifest(partial, digest)
            progress(f"image: ready in {folder}")
    return Image(digest, folder / DISK, "raw", folder / KERNEL, folder / INITRD, APPEND)


def from_cloud_image(path: Path, cache: Path, progress: Progress) -> Image:
    """The user's own cloud image, with the seed that makes it our guest at its first boot.

    Raises:
        UsageError: the image cannot be used as it is; the message says why and what to do.
        MissingToolError: qemu-img is missing.
    """
    from filelock import FileLock

    path = path.expanduser().resolve()
    disk_format = cloud.inspect(path)
    files = cloud.seed_files(debian.guest_files(trust.additions()), digest="adopted")
    digest = hashlib.sha256(repr((_sha256(path), files)).encode()).hexdigest()
    seeds = cache / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    seed = seeds / f"{digest[:16]}.raw"
    with FileLock(seeds / f"{seed.stem}.lock"):
        if not seed.exists():
            partial = seed.with_suffix(".partial")
            cloud.write_seed(files, partial)
            partial.chmod(0o444)
            partial.rename(seed)
    progress(f"image: {path} ({disk_format}) is adopted by cloud-init at the first boot")
    return Image(digest, path, disk_format, seed=seed)


def our_recipe(authorities: tuple[bytes, ...]) -> bootstrap.Recipe:
    """The recipe of our image on a host that also trusts `authorities` (PEM)."""
    return debian.recipe(authorities, DISK_BYTES, WRITE_DISK.read_text())


def _intact(folder: Path, progress: Progress) -> bool:
    """Whether the folder holds what its manifest says. Contents are read again only where a file's time moved."""
    if not folder.exists():
        return False
    try:
        files = json.loads((folder / MANIFEST).read_text())["files"]
        for name in (DISK, KERNEL, INITRD):
            recorded, found = files[name], (folder / name).stat()
            if found.st_size != recorded["bytes"]:
                raise ValueError(f"{name} has {found.st_size} bytes instead of {recorded['bytes']}")
            if found.st_mtime_ns != recorded["mtime_ns"] and _sha256(folder / name) != recorded["sha256"]:
                raise ValueError(f"{name} is not what was built")
    except (OSError, ValueError, KeyError, TypeError) as problem:
        progress(f"image: the cached image {folder} is damaged ({problem}); building it again")
        return False
    return True


def _write_manifest(folder: Path, digest: str) -> None:
    files = {}
    for name in (DISK, KERNEL, INITRD):
        path = folder / name
        path.chmod(0o444)
        found = path.stat()
        files[name] = {"bytes": found.st_size, "mtime_ns": found.st_mtime_ns, "sha256": _sha256(path)}
    (folder / MANIFEST).write_text(json.dumps({"digest": digest, "suite": debian.SUITE, "files": files}, indent=1))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _partial(folder: Path) -> Iterator[Path]:
    """A fresh folder that takes the place of `folder` if the block ends well, and vanishes if not."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
