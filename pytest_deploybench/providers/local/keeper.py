"""The keeper: one small process per machine that outlives its owner just long enough to clean up after it.

Run as `python -I -S keeper.py` in a session of its own. What it promises:

- It imports the standard library only and knows nothing of machines: it is given command lines and runs them.
- It ends everything it started and removes the machine's folder as soon as the owner asks (SIGTERM), the owner dies
  (the pipe on standard input closes, or the owner's process ends), or the lifetime is over.
- When one of its commands (the last is the main one) ends on its own, the rest is ended too and `exit.json` says
  who ended and how. The folder stays until one of the three reasons above, so that the owner can still read the
  evidence.
- When the keeper itself is killed, the kernel kills its commands.
- Whatever the commands print lands in bounded files; a guest cannot fill the host's disk with its console.

Input: one line of JSON, the `Orders`. Output: one line of JSON, `{"error": null}` once every command runs.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KEEPER_FILE = "keeper.json"
EXIT_FILE = "exit.json"
LOG_LIMIT_BYTES = 4_000_000

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class Command:
    """One program to keep alive; `fds` are handed down under the same numbers that `argv` names."""

    name: str
    argv: list[str]
    stdout: str
    """File in the machine's folder."""
    stderr: str
    fds: list[int]


@dataclass(frozen=True)
class Orders:
    """What a keeper is told at its start."""

    folder: str
    owner_pid: int
    lifetime_s: float
    purpose: str
    commands: list[Command]

    @classmethod
    def from_json(cls, line: str) -> Orders:
        raw: dict[str, Any] = json.loads(line)
        return cls(**{**raw, "commands": [Command(**command) for command in raw["commands"]]})

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def started_at(pid: int) -> str | None:
    """Start time of a live process, in ticks since boot; with the pid it names a process for good. None when gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def write_json(path: Path, value: object) -> None:
    """Replace a file in one step, so that a reader never sees half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


class BoundedLog:
    """A file that keeps the first and the latest output and drops what lies between."""

    def __init__(self, path: Path, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
        self._path, self._limit, self._dropped = path, limit_bytes, 0
        self._file = path.open("w+b", buffering=0)
        self._size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._size += len(data)
        if self._size > self._limit:
            self._shrink()

    def _shrink(self) -> None:
        """Halve the file: its first quarter, one line that says so, its last quarter."""
        part = self._limit // 4
        self._file.seek(0)
        head = self._file.read(part)
        self._file.seek(self._size - part)
        tail = self._file.read(part)
        self._dropped += self._size - len(head) - len(tail)
        kept = head + b"\n[deploybench: about %d bytes dropped here]\n" % self._dropped + tail
        self._file.seek(0)
        self._file.write(kept)
        self._file.truncate(len(kept))
        self._size = len(kept)


class Keeper:
    """Starts the commands, waits for a reason to stop, and leaves nothing behind."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._folder = Path(orders.folder)
        self._deadline = time.monotonic() + orders.lifetime_s
        self._selector = selectors.DefaultSelector()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, BoundedLog] = {}
        self._stop_reason: str | None = None
        self._own_end = select.poll()  # asked by children; a child in a pid namespace of its own knows no pid of ours
        self._own_end.register(os.pidfd_open(os.getpid()), select.POLLIN)

    def start(self) -> None:
        """Run every command.

        Raises:
            OSError: a command cannot be run, or the folder is gone.
        """
        self._watch_signals()
        self._record()
        for command in self._orders.commands:
            self._spawn(command)
        for fd in {fd for command in self._orders.commands for fd in command.fds}:
            os.close(fd)
        self._record()

    def watch(self) -> str:
        """Wait until there is a reason to stop and return it."""
        self._on(0, self._owner_spoke)
        try:
            self._on(os.pidfd_open(self._orders.owner_pid), self._owner_died)
        except ProcessLookupError:
            return "the owner died"
        while self._stop_reason is None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                return "the lifetime is over"
            for key, _ in self._selector.select(min(left, 3600.0)):
                key.data(key.fd)
        return self._stop_reason

    def end(self) -> None:
        """Kill every command and remove the folder."""
        self._kill_all()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- starting ---

    def _spawn(self, command: Command) -> None:
        keeper = select.poll()
        keeper.register(
            os.pidfd_open(os.getpid()), select.POLLIN
        )  # not by its pid: a new pid namespace has no name for it

        def die_with_keeper() -> None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if self._own_end.poll(0):  # the keeper died before the kernel knew
                os._exit(1)

        # preexec_fn is safe here: this process has a single thread.
        child = subprocess.Popen(
            command.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=command.fds,
            cwd=self._folder,
            preexec_fn=die_with_keeper,  # noqa: PLW1509
        )
        self._children[command.name] = child
        assert child.stdout is not None  # noqa: S101 - for mypy: both are pipes
        assert child.stderr is not None  # noqa: S101
        self._copy(child.stdout.fileno(), command.stdout)
        self._copy(child.stderr.fileno(), command.stderr)
        self._on(os.pidfd_open(child.pid), lambda fd: self._command_ended(command.name, fd))

    def _copy(self, fd: int, filename: str) -> None:
        os.set_blocking(fd, False)
        log = self._logs.setdefault(filename, BoundedLog(self._folder / filename))
        self._on(fd, lambda fd: self._drain(fd, log))

    def _record(self) -> None:
        def identity(pid: int) -> dict[str, object]:
            return {"pid": pid, "started": started_at(pid)}

        write_json(
            self._folder / KEEPER_FILE,
            {
                "keeper": identity(os.getpid()),
                "owner": identity(self._orders.owner_pid),
                "commands": {name: identity(child.pid) for name, child in self._children.items()},
                "purpose": self._orders.purpose,
                "ends_at": time.time() + self._deadline - time.monotonic(),
            },
        )

    # --- watching ---

    def _on(self, fd: int, react: Callable[[int], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, react)

    def _watch_signals(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        self._on(reader, lambda _fd: self._stop("told to stop"))
        for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(stop, lambda *_: None)  # a Python handler, so that the pipe is written to

    def _stop(self, reason: str) -> None:
        self._stop_reason = reason

    def _owner_spoke(self, fd: int) -> None:
        if not os.read(fd, 4096):
            self._stop("the owner let go")

    def _owner_died(self, _fd: int) -> None:
        self._stop("the owner died")

    def _drain(self, fd: int, log: BoundedLog) -> None:
        if fd not in self._selector.get_map():
            return
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return
        if data:
            log.write(data)
        else:
            self._selector.unregister(fd)

    def _command_ended(self, name: str, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)
        self._children[name].wait()
        exit_file = self._folder / EXIT_FILE
        if exit_file.exists():
            return
        first = self._first_to_end(name)
        for key in list(self._selector.get_map().values()):
            if key.fd in self._output_fds(first):  # its last words belong into the log before the exit is known
                key.data(key.fd)
        write_json(exit_file, {"command": first, "status": self._children[first].returncode, "at": time.time()})
        self._kill_all()

    def _first_to_end(self, name: str) -> str:
        """Helpers end when the main command does, and may be noticed first: give it a moment before blaming them."""
        main_command = self._orders.commands[-1].name
        try:
            self._children[main_command].wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return name
        return main_command

    def _output_fds(self, name: str) -> set[int]:
        child = self._children[name]
        return {stream.fileno() for stream in (child.stdout, child.stderr) if stream is not None}

    def _kill_all(self) -> None:
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()


def main() -> None:
    keeper = Keeper(Orders.from_json(sys.stdin.readline()))
    try:
        keeper.start()
    except OSError as error:
        keeper.end()
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        sys.exit(1)
    sys.stdout.write(json.dumps({"error": None}) + "\n")
    sys.stdout.flush()
    keeper.watch()
    keeper.end()


if __name__ == "__main__":
    main()
