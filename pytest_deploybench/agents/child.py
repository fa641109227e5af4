"""Runs an agent's program as a child of this process, with an environment of its own, until it ends or is ended.

Promises a reviewer can check:
- the child sees no variable of this process but PATH; its HOME is a private folder;
- whatever happens, when `run_child` returns or raises, nothing of the child runs on this host any more: neither its
  process group nor a process that left it and still has the child's HOME;
- the child dies with this process, even when that is killed;
- no more than the stated number of bytes a stream is handed on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pytest_deploybench.ports import Sink
from pytest_deploybench.process import dying_with_us

LOOK_EVERY_S = 0.5
POLITE_S = 5.0
"""How long a child has between being asked to end and being killed."""
OUTPUT_LIMIT_BYTES = 50_000_000
_CHUNK = 65536
_DRAIN_S = 5.0


@dataclass(frozen=True)
class Launch:
    """A program to be run."""

    argv: Sequence[str]
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside what every child has."""


def run_child(launch: Launch, home: Path, programs: Path, *, out: Sink, err: Sink, end_now: Callable[[], bool]) -> int:
    """Run a program in `home` and give back its exit status, negative for a signal.

    Args:
        launch: what to run.
        home: private folder, also the child's temporary and working folder.
        programs: goes first in PATH.
        out: receives stdout, from a thread.
        err: receives stderr, from another.
        end_now: asked twice a second; the child is ended when it says so, or raises.
    """
    with tempfile.TemporaryFile() as stdin:
        stdin.write(launch.stdin)
        stdin.seek(0)
        process = subprocess.Popen(
            dying_with_us(launch.argv),
            cwd=home,
            env={**_environment(home, programs), **launch.environment},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    streams = ((process.stdout, out), (process.stderr, err))
    pumps = [threading.Thread(target=_pump, args=pair, daemon=True) for pair in streams]
    try:
        for pump in pumps:
            pump.start()
        while process.poll() is None and not end_now():
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY_S)
    finally:
        _end(process, home)
        deadline = time.monotonic() + _DRAIN_S
        for pump in filter(threading.Thread.is_alive, pumps):  # whoever was stopped above may not have started all
            pump.join(max(0.0, deadline - time.monotonic()))
    return process.returncode


def _environment(home: Path, programs: Path) -> dict[str, str]:
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


def _pump(stream: IO[bytes], sink: Sink) -> None:
    """Hand on what arrives, and go on reading beyond the limit, so that the child is never held up by us."""
    left = OUTPUT_LIMIT_BYTES
    with stream:
        while chunk := os.read(stream.fileno(), _CHUNK):
            if left > 0:
                sink(chunk[:left])
            left -= len(chunk)


def _end(process: subprocess.Popen[bytes], home: Path) -> None:
    """End the child with all that belongs to it: first politely, if it still runs."""
    if process.poll() is None:
        _signal(process, home, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLITE_S)
    deadline = time.monotonic() + POLITE_S  # the kernel may hold a process that waits for a disk
    while _signal(process, home, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.wait()


def _signal(process: subprocess.Popen[bytes], home: Path, number: signal.Signals) -> int:
    """Send a signal to all that belongs to the child; how many processes that were."""
    import psutil

    if process.poll() is None:  # else its number may be another's by now
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    count = 0
    for other in psutil.process_iter():
        with suppress(psutil.Error):
            if other.environ().get("HOME") == str(home) and other.status() != psutil.STATUS_ZOMBIE:
                other.send_signal(number)
                count += 1
    return count
