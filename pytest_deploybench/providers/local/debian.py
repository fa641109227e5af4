"""The Debian that machines of this host are made of: its packages, our files in it, and how both become a recipe.

Read-only: this file looks at its own folder `guest/` and returns values. Whoever builds the recipe chooses what the
finished system is written as.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from pytest_deploybench.providers.local import trust
from pytest_deploybench.providers.local.bootstrap import Recipe

SUITE = "bookworm"
PACKAGES = (
    # the machine
    "systemd-sysv", "udev", "dbus", "kmod", "linux-image-cloud-amd64", "tiny-initramfs", "e2fsprogs", "tzdata",
    "netbase", "openssh-server", "openssh-sftp-server", "sudo", "ca-certificates", "iproute2", "iputils-ping", "procps",
    # what people expect of a server before they install anything
    "curl", "wget", "git", "rsync", "xz-utils", "bzip2", "unzip", "zip", "file", "less", "python3",
)  # fmt: skip

GUEST = Path(__file__).parent / "guest"
OVERLAY = GUEST / "overlay"


def recipe(authorities: tuple[bytes, ...], disk_bytes: int, write: str) -> Recipe:
    """The recipe of our Debian on a host that also trusts `authorities` (PEM).

    Args:
        disk_bytes: room for what `write` writes.
        write: shell script that writes the finished system `$1` to file descriptor `$DISK_FD`.
    """
    return Recipe(
        SUITE,
        PACKAGES,
        disk_bytes,
        archive=_archive(guest_files(authorities)),
        customize=(GUEST / "customize.sh").read_text(),
        finish=(GUEST / "finish.sh").read_text() + write,
    )


def guest_files(authorities: tuple[bytes, ...]) -> dict[str, bytes]:
    """The files that we put into a guest, by path relative to its root."""
    files = {path.relative_to(OVERLAY).as_posix(): path.read_bytes() for path in OVERLAY.rglob("*") if path.is_file()}
    for number, authority in enumerate(authorities):
        files[f"usr/local/share/ca-certificates/host-{number}.crt"] = authority
    if authorities:
        files["etc/environment"] = trust.environment().encode()
    return dict(sorted(files.items()))


def mode(content: bytes) -> int:
    """The mode of a guest file: a script is executable, and that is all there is to it."""
    return 0o755 if content.startswith(b"#!") else 0o644


def _archive(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()
