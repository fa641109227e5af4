"""The common way to act on a machine by a script that lies in the task's folder.

Promises a reviewer can check:
- the script lies outside of the home while it runs and is gone afterwards;
- `agent.log` is bounded and redacted before it touches the disk; apart from that it is what the script printed, escape
  sequences included, so whoever shows it to people passes it through `redact.printable`;
- at the time budget everything that still belongs to the script is ended; a service that it deployed is left alone.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from pytest_deploybench.errors import MachineLostError, TaskFileError
from pytest_deploybench.model import AgentRun, Completed, Task, Termination
from pytest_deploybench.ports import Machine
from pytest_deploybench.redact import redact

LOG_NAME = "agent.log"
LOG_LIMIT_BYTES = 50_000_000
LINE_LIMIT_BYTES = 64_000
"""A longer line is cut: what is redacted is looked at as a whole, and must be bounded for that."""
CLEANING_TIMEOUT_S = 60.0

_LINE_END = re.compile(rb"[\r\n]")
_KEY_BEGINS, _KEY_ENDS = b"-----BEGIN ", b"-----END "


def run_script(name: str, machine: Machine, task: Task, budget_s: float, folder: Path) -> AgentRun:
    """Run a script of the task's folder with bash, in the home of the login user, for at most `budget_s` seconds.

    Exit status 0 is a claim of success, any other the claim of a failure.

    Raises:
        TaskFileError: the task's folder has no such script.
        MachineLostError: the machine went away.
    """
    script = task.folder / name
    if not script.is_file():
        agent = script.stem
        raise TaskFileError(script, name, "it does not exist", f"Write it, or choose another agent than `{agent}`")
    place = f"/tmp/deploybench-{secrets.token_hex(8)}"  # noqa: S108 - on the machine, and not to be guessed
    machine.put(script, f"{place}/{name}", mode=0o755)
    try:
        with AgentLog(folder / LOG_NAME) as log:
            done = machine.run(
                # One stream keeps the order of the lines.
                f"exec bash {shlex.quote(f'{place}/{name}')} 2>&1",
                timeout_s=budget_s,
                sink=log.write,
                limit_bytes=LOG_LIMIT_BYTES,
            )
            if done.truncated:
                log.note(f"output beyond {LOG_LIMIT_BYTES} bytes was dropped")
    finally:
        with suppress(MachineLostError):  # an error that is under way says more
            machine.run(f"rm -rf {place}", timeout_s=CLEANING_TIMEOUT_S)
    return _judged(name, done, budget_s)


def _judged(name: str, done: Completed, budget_s: float) -> AgentRun:
    if done.timed_out:
        detail = f"{name} was ended after {budget_s:.0f} s, its time budget"
        return AgentRun(Termination.TIME_BUDGET, done.seconds, budget_s, detail=detail)
    termination = Termination.FINISHED if done.ok else Termination.CRASHED
    detail = "" if done.ok else f"{name} ended with exit status {done.exit_status}; its last lines are in {LOG_NAME}"
    return AgentRun(termination, done.seconds, budget_s, done.exit_status, claimed_success=done.ok, detail=detail)


class AgentLog:
    """Writes output to a file as it arrives, redacted line by line, so that no secret is missed at a chunk's border."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._secrets = tuple(secrets)
        self._file = path.open("w", encoding="utf-8", newline="")
        self._pending = bytearray()
        self._skipping = False

    def __enter__(self) -> AgentLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release(len(self._pending))
        self._file.close()

    def write(self, chunk: bytes) -> None:
        """Take the next bytes, of any size."""
        if self._skipping:
            end = _LINE_END.search(chunk)
            if not end:
                return
            chunk, self._skipping = chunk[end.end() :], False
        self._pending += chunk
        # A carriage return ends a line too: progress bars know no other end.
        whole = max(self._pending.rfind(b"\n"), self._pending.rfind(b"\r")) + 1
        # A private key spans lines and can only be recognised as a whole.
        key = self._pending.rfind(_KEY_BEGINS, 0, whole)
        if key >= 0 and self._pending.find(_KEY_ENDS, key, whole) < 0 and whole - key < LINE_LIMIT_BYTES:
            whole = key
        self._release(whole)
        if len(self._pending) > LINE_LIMIT_BYTES:
            self._cut()

    def note(self, remark: str) -> None:
        """Add a line of our own."""
        self._release(len(self._pending))
        self._file.write(f"\n[deploybench: {remark}]\n")

    def _cut(self) -> None:
        """Give up on a line without end: keep what stands before its last word within the limit, skip all the rest."""
        head = bytes(self._pending[:LINE_LIMIT_BYTES])
        words = head.split()
        self._pending[:] = head[: head.rindex(words[-1])] if words else b""
        self.note("the rest of a line without end was dropped")
        self._skipping = True

    def _release(self, size: int) -> None:
        text = bytes(self._pending[:size]).decode("utf-8", "replace")
        del self._pending[:size]
        if text:
            self._file.write(redact(text, self._secrets))
            self._file.flush()
