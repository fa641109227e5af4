"""Runs the user's own command that makes a host fresh again: reimage, roll back a snapshot.

It runs on this side, never on the host, and knows the host by its environment:

    DEPLOYBENCH_NAME  DEPLOYBENCH_HOST  DEPLOYBENCH_PORT  DEPLOYBENCH_USER  DEPLOYBENCH_KEY_FILE  DEPLOYBENCH_MACHINE

It must return only when what ran before is gone: whoever answers afterwards is taken for the fresh host.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from pytest_deploybench.providers.ssh.inventory import Host
from pytest_deploybench.redact import printable, redact

_KEPT_BYTES = 65_536
_SHOWN_CHARACTERS = 500


def run(host: Host, machine_id: str, log: Path, lock: int) -> str | None:
    """Run the host's reset command; None when it succeeded, else what went wrong, in words.

    Args:
        host: has a reset command.
        machine_id: the machine that the host was.
        log: where the end of the command's output goes, without secrets.
        lock: descriptor of the host's lock, which the command holds on to if this process dies.
    """
    with tempfile.TemporaryFile() as output:
        trouble = _run(host, machine_id, output, lock)
        output.seek(max(0, output.seek(0, os.SEEK_END) - _KEPT_BYTES))
        said = redact(output.read().decode(errors="replace"))
    log.write_text(said, encoding="utf-8")
    if trouble is None:
        return None
    last = printable(" ".join(said.split()))[-_SHOWN_CHARACTERS:]
    return f"{trouble} and said last: {last} (see {log})" if last else f"{trouble} and said nothing"


def _run(host: Host, machine_id: str, output: IO[bytes], lock: int) -> str | None:
    assert host.reset is not None  # noqa: S101 - for mypy: the caller asks only then
    try:
        process = subprocess.Popen(
            host.reset.command,
            cwd=host.inventory.parent,
            env=os.environ | _environment(host, machine_id),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock,),
        )
    except OSError as error:
        return f"the reset command cannot be run: {host.reset.command[0]}: {error.strerror}"
    try:
        status = process.wait(host.reset.limit_s)
    except subprocess.TimeoutExpired:
        return f"the reset command did not end within its limit of {host.reset.limit_s:g} s"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status == 0:
        return None
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"the reset command {how}"


def _environment(host: Host, machine_id: str) -> dict[str, str]:
    return {
        "DEPLOYBENCH_NAME": host.name,
        "DEPLOYBENCH_HOST": host.host,
        "DEPLOYBENCH_PORT": str(host.port),
        "DEPLOYBENCH_USER": host.user,
        "DEPLOYBENCH_KEY_FILE": str(host.key_file),
        "DEPLOYBENCH_MACHINE": machine_id,
    }
