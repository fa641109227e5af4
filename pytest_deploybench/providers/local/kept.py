"""The owner's side of the keeper: start one, ask how its machine fares, end it, also from another process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_deploybench.errors import InfraError
from pytest_deploybench.providers.local import keeper
from pytest_deploybench.providers.local.keeper import Command, Orders

_END_WITHIN_S = 15.0
_WORD_WITHIN_S = 5.0
_POLL_S = 0.05
_PF_EXITING = 0x4
"""Among the flags in /proc/PID/stat, see proc(5)."""


@dataclass(frozen=True)
class Exit:
    """How a machine's commands ended on their own."""

    command: str
    """Which one ended first."""
    status: int
    """Its exit status, negative for a signal."""


class Kept:
    """A running keeper in the hands of its owner. Letting go of it ends the machine."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def let_go(self) -> None:
        """Ask the keeper to end everything and wait for it."""
        assert self._process.stdin is not None  # noqa: S101 - for mypy: launch() made the pipes
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.close()
        self._process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_WITHIN_S)


def folder_of(machine_id: str, machines: Path) -> Path:
    """The folder of a machine among those of a provider.

    Raises:
        InfraError: it cannot have one.
    """
    if not machine_id or Path(machine_id).name != machine_id:
        raise InfraError(f"{machine_id!r} is no machine id: it must be usable as the name of a folder")
    return machines / machine_id


def launch(
    folder: Path, commands: list[Command], *, lifetime_s: float, purpose: str, prefix: Sequence[str] = ()
) -> Kept:
    """Start a keeper and, through it, the commands; the last of them is the main one.

    The folder must exist. It belongs to the keeper from now on.

    Args:
        prefix: a command that runs the keeper, in the same process, in another setting.

    Raises:
        InfraError: a command cannot be run.
    """
    orders = Orders(str(folder), os.getpid(), lifetime_s, purpose, commands)
    process = subprocess.Popen(
        [*prefix, sys.executable, "-I", "-S", keeper.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        pass_fds=sorted({fd for command in commands for fd in command.fds}),
    )
    kept = Kept(process)
    try:
        assert process.stdin is not None  # noqa: S101 - for mypy
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(orders.to_json() + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        problem = json.loads(answer)["error"] if answer else "it ended without an answer"
        if problem:
            raise InfraError(f"the keeper of {folder} could not start the machine: {problem}")
    except BaseException:
        kept.let_go()
        raise
    return kept


def exit_of(folder: Path) -> Exit | None:
    """How the machine in this folder ended on its own; None while it runs, or when it was ended by its keeper."""
    try:
        raw = json.loads((folder / keeper.EXIT_FILE).read_text())
    except FileNotFoundError:
        return None
    return Exit(raw["command"], raw["status"])


def runs(folder: Path) -> bool:
    """Whether the machine runs as far as its keeper knows.

    Its commands are not looked at: between the end of one and the keeper's word about it a moment passes.
    """
    record = _record(folder)
    return record is not None and _alive(record["keeper"]) and exit_of(folder) is None


def commands_run(folder: Path) -> bool:
    """Whether every command of the machine is there and does not just end, which its keeper may not know yet."""
    record = _record(folder)
    return record is not None and all(
        _alive(entry) and not _is_ending(entry["pid"]) for entry in record["commands"].values()
    )


def await_word(folder: Path) -> None:
    """Give the keeper of a machine that has just ended a moment to say how."""
    deadline = time.monotonic() + _WORD_WITHIN_S
    while runs(folder) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def pids(folder: Path) -> list[int]:
    """The processes of a machine, its keeper among them."""
    record = _record(folder)
    entries = [] if record is None else [record["keeper"], *record["commands"].values()]
    return [int(entry["pid"]) for entry in entries if _alive(entry)]


def printed(log: Path, limit_bytes: int = 65_536) -> bytes:
    """The end of what a command has printed into one of its files; nothing if that is not there."""
    return log.read_bytes()[-limit_bytes:] if log.exists() else b""


def remove_tree(folder: Path) -> None:
    """Remove as much of a folder as this user can."""
    shutil.rmtree(folder, ignore_errors=True)


def end(folder: Path, remove: Callable[[Path], None] = remove_tree) -> None:
    """End whatever runs for this folder and remove it. From any process; a missing folder is fine.

    Args:
        remove: removes the folder; needed where files of other users lie in it.

    Raises:
        InfraError: something is still there, and what.
    """
    record = _record(folder)
    if record is not None:
        for entry in (record["keeper"], *record["commands"].values()):  # the keeper first: nothing new starts then
            _kill(entry)
        if left := pids(folder):
            raise InfraError(f"processes {', '.join(map(str, left))} of {folder} do not end; see them with ps")
    if folder.exists():
        remove(folder)
    if folder.exists():
        raise InfraError(f"{folder} cannot be removed; check its owner and permissions, then remove it by hand")


def _record(folder: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads((folder / keeper.KEEPER_FILE).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return record


def _alive(entry: dict[str, Any]) -> bool:
    return entry["started"] is not None and keeper.started_at(entry["pid"]) == entry["started"]


def _is_ending(pid: int) -> bool:
    """Whether a process is on its way out. The first one of a pid namespace waits there until all others are gone."""
    try:
        return bool(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[6]) & _PF_EXITING)
    except (FileNotFoundError, ProcessLookupError):
        return True


def _kill(entry: dict[str, Any]) -> None:
    """Kill exactly this process, never one that inherited its number, and wait until it is gone."""
    with _handle(entry) as handle:
        if handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            poller.poll(_END_WITHIN_S * 1000)


@contextlib.contextmanager
def _handle(entry: dict[str, Any]) -> Iterator[int | None]:
    try:
        handle = os.pidfd_open(entry["pid"])
    except ProcessLookupError:
        yield None
        return
    try:
        yield handle if _alive(entry) else None
    finally:
        os.close(handle)
