"""The guest's disk: a small Debian that boots straight into waiting for its identity.

- `build` makes it once; the folder is named by the digest of its recipe, so a changed recipe never meets an old disk.
- A folder in the cache is complete or absent: it is made beside its place under a lock and renamed when finished.
- What is read back is checked against `image.json` first; a damaged image is built again.
- Files of the cache are never written after that: machines put an overlay on the disk.
- An image holds no key, no machine-id and no running sshd: those come with the identity.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.ports import Progress
from pytest_deploybench.providers.qemu import trust

SUITE = "bookworm"
PACKAGES = (
    # the machine
    "systemd-sysv", "udev", "dbus", "kmod", "linux-image-cloud-amd64", "tiny-initramfs", "e2fsprogs", "tzdata", "netbase",
    "openssh-server", "openssh-sftp-server", "sudo", "ca-certificates", "iproute2", "iputils-ping", "procps",
    # what people expect of a server before they install anything
    "curl", "wget", "git", "rsync", "xz-utils", "bzip2", "unzip", "zip", "file", "less", "python3",
)  # fmt: skip
DISK_BYTES = 2 << 30
"""Size of the base disk; machines get a larger overlay and grow the file system at boot."""
BUILD_BYTES = 3 << 30
"""Free space that a build needs: the unpacked system, its packages and the disk."""
APPEND = (
    "root=/dev/vda rootfstype=ext4 rootflags=noatime rw console=ttyS0 quiet loglevel=3 net.ifnames=0 fsck.mode=skip "
    "systemd.show_status=false systemd.log_level=warning mitigations=off no_timer_check nowatchdog"
)
TOOLS = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "qemu-img": "qemu-utils"}
"""Programs that a build runs, and the Debian package of each."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

GUEST = Path(__file__).parent / "guest"
DISK, KERNEL, INITRD, MANIFEST = "disk.raw", "vmlinuz", "initrd.img", "image.json"

STAGES = {
    "I: running apt-get update": "reading package indexes",
    "I: downloading packages": "downloading packages",
    "I: extracting archives": "unpacking the base system",
    "I: installing remaining packages": "installing packages",
    "I: running special hook: download": "making the disk",
}
"""What mmdebstrap says, and what it means to a person who waits."""


@dataclass(frozen=True)
class Image:
    """What a machine boots from. All files are read-only."""

    digest: str
    """Digest of the recipe, or sha256 of the user's own image."""
    disk: Path
    disk_format: str
    """`raw` or `qcow2`."""
    kernel: Path | None = None
    """None: the disk boots by its own loader."""
    initrd: Path | None = None
    append: str = ""
    """Kernel command line."""
    seed: Path | None = None
    """A second, read-only raw disk that the first boot needs: the cloud-init seed of the user's own image."""


def build(cache: Path, progress: Progress) -> Image:
    """Our own image, from the cache or built now (about a minute). Needs no root where user namespaces work.

    Raises:
        MissingToolError: a program or a permission is missing; the message says how to get it.
        InfraError: the build failed (network, disk space...); nothing of it is left.
    """
    from filelock import FileLock

    authorities = trust.additions()
    digest = recipe_digest(authorities)
    images = cache / "images"
    images.mkdir(parents=True, exist_ok=True)
    folder = images / digest[:16]
    with FileLock(images / f"{digest[:16]}.lock"):
        if not _intact(folder, progress):
            _check_host(images)
            with _partial(folder) as partial:
                _bootstrap(partial, authorities, progress)
                _write_manifest(partial, digest)
    return Image(digest, folder / DISK, "raw", folder / KERNEL, folder / INITRD, APPEND)


def recipe_digest(authorities: tuple[bytes, ...]) -> str:
    """Changes whenever a new build would give something else (but for newer packages)."""
    recipe = hashlib.sha256(repr((SUITE, PACKAGES, DISK_BYTES)).encode())
    for path in _guest_files():
        recipe.update(repr((path.relative_to(GUEST).as_posix(), path.read_bytes())).encode())
    for authority in authorities:
        recipe.update(authority)
    return recipe.hexdigest()


def _guest_files() -> list[Path]:
    return sorted(path for path in GUEST.rglob("*") if path.is_file())


def _intact(folder: Path, progress: Progress) -> bool:
    """Whether the folder holds what its manifest says. Contents are read again only where size or time moved."""
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
    (folder / MANIFEST).write_text(json.dumps({"digest": digest, "suite": SUITE, "files": files}, indent=1))


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


def _bootstrap(folder: Path, authorities: tuple[bytes, ...], progress: Progress) -> None:
    guest = folder / "guest.tar"
    guest.write_bytes(guest_archive(authorities))
    disk = folder / DISK
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
        # In a user namespace the build runs as another user, which has only this descriptor to write to.
        os.fchmod(file.fileno(), 0o666)
        command = [
            "mmdebstrap", "--variant=minbase", "--format=null", "--skip=cleanup", f"--include={','.join(PACKAGES)}",
            f"--essential-hook=tar-in {shlex.quote(str(guest))} /",
            f"--customize-hook=chroot \"$1\" sh -c {shlex.quote((GUEST / 'customize.sh').read_text())}",
            f"--customize-hook=download /tmp/kernel {shlex.quote(str(folder / KERNEL))}",
            f"--customize-hook=download /tmp/initrd {shlex.quote(str(folder / INITRD))}",
            f"--customize-hook=DISK_FD={file.fileno()}\n{(GUEST / 'finish.sh').read_text()}",
            SUITE, "/dev/null",
        ]  # fmt: skip
        _run(command, file.fileno(), progress)
    guest.unlink()


def guest_archive(authorities: tuple[bytes, ...]) -> bytes:
    """The tar archive of all files that we put into a guest; all belong to root."""
    overlay = GUEST / "overlay"
    files = {
        path.relative_to(overlay).as_posix(): path.read_bytes()
        for path in _guest_files()
        if path.is_relative_to(overlay)
    }
    for number, authority in enumerate(authorities):
        files[f"usr/local/share/ca-certificates/host-{number}.crt"] = authority
    if authorities:
        files["etc/environment"] = trust.environment().encode()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def _run(command: list[str], descriptor: int, progress: Progress) -> None:
    started = time.monotonic()
    tail: deque[str] = deque(maxlen=40)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "PATH": _path(), "LC_ALL": "C.UTF-8"},
        pass_fds=[descriptor],
    )
    assert process.stderr is not None
    for line in process.stderr:
        tail.append(line.rstrip())
        for opening, stage in STAGES.items():
            if line.startswith(opening):
                progress(f"image: {stage} ({time.monotonic() - started:.0f} s)")
    if process.wait() != 0:
        raise InfraError("\n".join(tail))
    progress(f"image: built ({time.monotonic() - started:.0f} s)")


def _path() -> str:
    """System tools live in sbin, which an ordinary user's PATH often lacks."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def _check_host(images: Path) -> None:
    pass
