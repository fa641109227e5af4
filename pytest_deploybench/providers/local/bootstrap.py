"""Runs mmdebstrap: a Debian with our packages and files, written as one ext4 disk beside its kernel and initrd.

- It works the same for root and for an ordinary user with a range of subordinate ids (`/etc/subuid`).
- It writes into the folder it is given and into a temporary folder of mmdebstrap's, nowhere else on the host.
- A tool, a permission or disk space that is missing is found before the minute of work, not after it.
"""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.ports import Progress

TOOLS = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs"}
"""Programs that a build runs, and the Debian package of each."""
TOOLS_WITHOUT_ROOT = {"newuidmap": "uidmap", "newgidmap": "uidmap"}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUBORDINATE_IDS = (Path("/etc/subuid"), Path("/etc/subgid"))

DISK, KERNEL, INITRD = "disk.raw", "vmlinuz", "initrd.img"
UNPACKED_BYTES = 1_500_000_000
"""Room for the unpacked system and its packages while the build runs."""

STAGES = (
    ("I: running apt-get update", "reading package indexes"),
    ("I: downloading packages", "downloading the base system"),
    ("I: extracting archives", "unpacking the base system"),
    ("I: installing remaining packages", "installing packages"),
    ("I: running special hook: download", "writing the disk"),
)
"""What mmdebstrap says, and what it means to a person who waits."""

FAILURES = (
    (
        ("No space left on device",),
        "The disk is full: free some space, or let TMPDIR and XDG_CACHE_HOME name folders with more of it",
    ),
    (
        ("NO_PUBKEY", "EXPKEYSIG", "is not signed"),
        "The archive's signature cannot be checked: bring the package debian-archive-keyring up to date",
    ),
    (
        ("Could not resolve", "Temporary failure", "Failed to fetch", "Could not connect", "Unable to connect"),
        "Debian's package archive cannot be reached: see that `apt-get update` works here (proxy: set http_proxy)",
    ),
    (
        ("newuidmap", "newgidmap", "unshare", "subuid"),
        "User namespaces are closed to this user: build as root, or allow them (kernel.unprivileged_userns_clone=1)",
    ),
)
"""Words in the last lines of a failed build, and what to do about it. The first row that fits counts."""

_PURPOSE = "building the machine image"
_LAST_LINES, _QUOTED_LINES = 60, 15


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a build gives."""

    suite: str
    packages: tuple[str, ...]
    disk_bytes: int
    archive: bytes
    """Files for the guest, as tar; unpacked before the packages are installed."""
    customize: str
    """Shell script, run as root in the guest."""
    finish: str
    """Shell script, run outside of the guest: makes the disk from the folder `$1` on descriptor `$DISK_FD`."""


def check_host(folder: Path, disk_bytes: int) -> None:
    """See that a build can work here before it is begun.

    Raises:
        MissingToolError: a program, the archive's keys or the range of subordinate ids is missing.
        InfraError: not enough disk space.
    """
    tools = TOOLS | ({} if os.geteuid() == 0 else TOOLS_WITHOUT_ROOT)
    require(tools, _PURPOSE)
    if not KEYRING.exists():
        raise MissingToolError(
            f"building the machine image needs {KEYRING}: install the package debian-archive-keyring, "
            "or run `deploybench doctor --fix`"
        )
    if os.geteuid() != 0:
        require_subordinate_ids(getpass.getuser(), _PURPOSE)
    for place, needed in _space(folder, disk_bytes).items():
        free = shutil.disk_usage(place).free
        if free < needed:
            raise InfraError(
                f"building the machine image needs {needed / 1e9:.1f} GB in {place}, but has {free / 1e9:.1f} GB: "
                "free some, or let TMPDIR and XDG_CACHE_HOME name folders with more"
            )


def require(tools: dict[str, str], purpose: str) -> None:
    """Raise a MissingToolError that names every program that is not there and its package."""
    missing = {package for program, package in tools.items() if shutil.which(program, path=search_path()) is None}
    if missing:
        packages = " ".join(sorted(missing))
        raise MissingToolError(
            f"{purpose} needs more programs: run `sudo apt-get install {packages}` or `deploybench doctor --fix`"
        )


def require_subordinate_ids(user: str, purpose: str) -> None:
    """Raise a MissingToolError that says how `user` gets ids beside its own."""
    for file in SUBORDINATE_IDS:
        lines = file.read_text().splitlines() if file.exists() else []
        if not any(line.split(":")[0] in {user, str(os.getuid())} for line in lines):
            raise MissingToolError(
                f"{purpose} as {user} needs a range of subordinate ids in {file}: run "
                f"`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}`, or do it as root"
            )


def search_path() -> str:
    """PATH with the folders of system tools, which an ordinary user's PATH often lacks."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def bootstrap(recipe: Recipe, folder: Path, progress: Progress) -> None:
    """Make DISK, KERNEL and INITRD in `folder`; about a minute.

    Raises:
        InfraError: it failed; the message holds the reason, the remedy and mmdebstrap's last words.
    """
    guest = folder / "guest.tar"
    guest.write_bytes(recipe.archive)
    with (folder / DISK).open("wb") as disk:
        disk.truncate(recipe.disk_bytes)
        # In a user namespace the build runs as another user, which can reach this file only through the descriptor.
        os.fchmod(disk.fileno(), 0o666)
        _run(_command(recipe, guest, folder, disk.fileno()), disk.fileno(), progress)
    guest.unlink()


def remedy(lines: Iterable[str]) -> str:
    """What to do about a failed build, judged by its last lines; empty when nobody foresaw it."""
    text = "\n".join(lines)
    return next((advice for words, advice in FAILURES if any(word in text for word in words)), "")


def _command(recipe: Recipe, guest: Path, folder: Path, descriptor: int) -> list[str]:
    return [
        "mmdebstrap",
        "--variant=minbase",
        "--format=null",
        "--skip=cleanup",
        f"--include={','.join(recipe.packages)}",
        f"--essential-hook=tar-in {shlex.quote(str(guest))} /",
        f'--customize-hook=chroot "$1" sh -c {shlex.quote(recipe.customize)}',
        f"--customize-hook=download /tmp/kernel {shlex.quote(str(folder / KERNEL))}",
        f"--customize-hook=download /tmp/initrd {shlex.quote(str(folder / INITRD))}",
        f"--customize-hook=DISK_FD={descriptor}\n{recipe.finish}",
        recipe.suite,
        "/dev/null",
    ]


def _run(command: Sequence[str], descriptor: int, progress: Progress) -> None:
    started = time.monotonic()
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd="/",  # the build's mapped user may not enter the folder of the user who builds
        env={**os.environ, "PATH": search_path(), "LC_ALL": "C.UTF-8"},
        pass_fds=[descriptor],
    ) as process:
        try:
            _follow(process.stderr or (), last, started, progress)
        except BaseException:
            # mmdebstrap unmounts and removes its folder on SIGTERM; killing it would leave both behind.
            process.terminate()
            raise
    if process.returncode != 0:
        advice = remedy(last) or "Its last words may tell why; a build can be tried again at any time"
        said = "\n".join(f"    {line}" for line in list(last)[-_QUOTED_LINES:])
        raise InfraError(f"building the machine image failed. {advice}.\n{said}")


def _follow(lines: Iterable[str], last: deque[str], started: float, progress: Progress) -> None:
    stages = list(STAGES)
    for line in lines:
        last.append(line.rstrip())
        if stages and line.startswith(stages[0][0]):
            progress(f"image: {stages.pop(0)[1]} ({time.monotonic() - started:.0f} s)")


def _space(folder: Path, disk_bytes: int) -> dict[Path, int]:
    """Bytes needed by place; one entry where the temporary folder lies on the same file system."""
    temporary = Path(tempfile.gettempdir())
    written = disk_bytes // 2  # the disk is sparse
    if temporary.stat().st_dev == folder.stat().st_dev:
        return {folder: UNPACKED_BYTES + written}
    return {folder: written, temporary: UNPACKED_BYTES}
