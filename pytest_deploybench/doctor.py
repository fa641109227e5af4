"""Finds out what this host lacks for the local provider and how to get it.

A table of requirements; each is looked at, none is changed. Only `fix` changes the host, through its package manager.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pytest_deploybench.errors import MissingToolError
from pytest_deploybench.providers.local import bootstrap

GB = 1_000_000_000
DISK_NEEDED_GB = 8
MEMORY_NEEDED_GB = 3


class State(StrEnum):
    """What an examination found."""

    FINE = "ok"
    MISSING = "missing"
    WARNING = "note"


@dataclass(frozen=True)
class Diagnosis:
    """One finding, with the remedy where there is one."""

    name: str
    state: State
    detail: str
    package: str | None = None
    """Debian or Ubuntu package that `fix` would install."""


@dataclass(frozen=True)
class Tool:
    """A program that the local provider calls."""

    program: str
    package: str
    purpose: str
    only_unprivileged: bool = False
    only_for_tests: bool = False
    optional: bool = False
    """Without it some tests are skipped and say so; not every distribution has it."""


TOOLS = (
    Tool("qemu-system-x86_64", "qemu-system-x86", "runs the machines"),
    Tool("qemu-img", "qemu-utils", "makes their disks"),
    Tool("passt", "passt", "connects them to the network, and to nothing on this host"),
    Tool("ssh", "openssh-client", "logs you in to machines that you kept"),
    Tool("mmdebstrap", "mmdebstrap", "builds their Debian image"),
    Tool("mke2fs", "e2fsprogs", "formats it"),
    Tool("apt-get", "apt", "fetches pinned Debian sources"),
    Tool("newuidmap", "uidmap", "lets mmdebstrap work without root", only_unprivileged=True),
    Tool("sshd", "openssh-server", "is what the tests of the SSH transport talk to", only_for_tests=True),
    Tool(
        "chromium-headless-shell",
        "chromium-headless-shell",
        "opens HTML reports in tests",
        only_for_tests=True,
        optional=True,
    ),
)
SBIN = ("/usr/sbin", "/sbin")
"""Debian keeps mke2fs and sshd where an ordinary user's PATH does not look."""


def examine(cache: Path, for_tests: bool = False) -> list[Diagnosis]:
    """Look at every requirement of the local provider; `cache` is the folder that will hold the image.

    `for_tests` adds what only the project's own tests need.
    """
    looks: tuple[Callable[[], Iterable[Diagnosis]], ...] = (
        lambda: _tools(for_tests),
        _keyring,
        _subordinate_ids,
        lambda: [_disk(cache)],
        lambda: [_memory()],
    )
    return [diagnosis for look in looks for diagnosis in look()]


def fix(diagnoses: Iterable[Diagnosis]) -> list[str]:
    """Install the missing packages through apt, with sudo where we are not root, and the optional ones if it has them.

    Returns:
        The packages that were installed.

    Raises:
        MissingToolError: apt or sudo is missing or failed; the message says what to install by hand.
    """
    wanted = {diagnosis.package: diagnosis.state for diagnosis in diagnoses if diagnosis.package}
    if not wanted:
        return []
    packages = sorted(package for package, state in wanted.items() if state is State.MISSING)
    optional = sorted(wanted.keys() - set(packages))
    by_hand = f"Install these by hand: {' '.join(packages + optional)}"
    if not shutil.which("apt-get"):
        raise MissingToolError(f"this host has no apt-get. {by_hand} (Debian package names)")
    if os.geteuid() != 0 and not shutil.which("sudo"):
        raise MissingToolError(f"not root, and there is no sudo. {by_hand}")
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    install = ["install", "--yes", "--no-install-recommends"]
    for step in (["update"], [*install, *packages]):
        command = [*prefix, *environment, "apt-get", *step]
        if subprocess.run(command, check=False).returncode != 0:
            raise MissingToolError(f"`{' '.join(command)}` failed; its own message stands above. {by_hand}")
    command = [*prefix, *environment, "apt-get", *install]
    return packages + [each for each in optional if subprocess.run([*command, each], check=False).returncode == 0]


def _tools(for_tests: bool) -> Iterable[Diagnosis]:
    for tool in TOOLS:
        if (tool.only_unprivileged and os.geteuid() == 0) or (tool.only_for_tests and not for_tests):
            continue
        found = shutil.which(tool.program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *SBIN]))
        if found:
            yield Diagnosis(tool.program, State.FINE, found)
        else:
            state = State.WARNING if tool.optional else State.MISSING
            yield Diagnosis(tool.program, state, f"{tool.purpose}; package {tool.package}", tool.package)


def _keyring() -> Iterable[Diagnosis]:
    # Ubuntu does not bring the keys with which Debian signs its archive.
    if not bootstrap.KEYRING.exists():
        package = "debian-archive-keyring"
        yield Diagnosis(package, State.MISSING, f"verifies the packages of the image; package {package}", package)


def _subordinate_ids() -> Iterable[Diagnosis]:
    if os.geteuid() == 0:
        return
    user = os.environ.get("USER") or str(os.geteuid())
    for file in bootstrap.SUBORDINATE_IDS:
        lines = file.read_text().splitlines() if file.exists() else []
        if not any(line.split(":")[0] in (user, str(os.geteuid())) for line in lines):
            remedy = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            yield Diagnosis(str(file), State.MISSING, f"no range for {user}, so mmdebstrap needs root. Run: {remedy}")


def _disk(cache: Path) -> Diagnosis:
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free_gb = shutil.disk_usage(there).free / GB
    state = State.FINE if free_gb >= DISK_NEEDED_GB else State.WARNING
    return Diagnosis("disk", state, f"{free_gb:.0f} GB free at {there}; image and machines want {DISK_NEEDED_GB} GB")


def _memory() -> Diagnosis:
    import psutil

    free_gb = psutil.virtual_memory().available / GB
    state = State.FINE if free_gb >= MEMORY_NEEDED_GB else State.WARNING
    return Diagnosis("memory", state, f"{free_gb:.0f} GB available; one smoke machine wants {MEMORY_NEEDED_GB} GB")
