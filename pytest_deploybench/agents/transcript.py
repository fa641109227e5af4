"""What an agent said and did: events.jsonl for programs, agent.log for people.

Promises a reviewer can check: both are bounded, and redacted before they touch the disk, the trial's token included;
a line that is no event goes into the log as it is; a scaffold's last word is believed only if it is well formed.

An event is `{"t": seconds, "kind": ..., "text": ...}`; kinds are `start`, `message`, `command`, `output`, `error` and
`end`. The start's text is the program with its version; the end says `termination`, one of `model.Termination`, and
`claimed_success`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from pytest_deploybench.agents.script import LOG_NAME, AgentLog
from pytest_deploybench.model import Termination
from pytest_deploybench.redact import redact

EVENTS_NAME = "events.jsonl"
EVENT_LIMIT_BYTES = 1_000_000
"""A longer line is no event."""
FILE_LIMIT_BYTES = 50_000_000

_PREFIXES = {"command": "$ ", "message": "> ", "error": "! "}


@dataclass(frozen=True)
class End:
    """A scaffold's last word."""

    termination: Termination
    claimed_success: bool | None
    detail: str


class Transcript:
    """Takes a scaffold's output. Its methods may be called from several threads."""

    def __init__(self, folder: Path, secrets: Iterable[str]) -> None:
        self.end: End | None = None
        self._secrets = tuple(secrets)
        self._log = AgentLog(folder / LOG_NAME, self._secrets)
        self._events = (folder / EVENTS_NAME).open("w", encoding="utf-8")
        self._left = FILE_LIMIT_BYTES
        self._pending = b""
        self._lock = threading.Lock()

    def __enter__(self) -> Transcript:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._line(self._pending)
            self._log.__exit__(kind, error, trace)
            self._events.close()

    def output(self, chunk: bytes) -> None:
        """Take output for people."""
        with self._lock:
            if not self._events.closed:
                self._log.write(chunk)

    def events(self, chunk: bytes) -> None:
        """Take lines of events."""
        with self._lock:
            if self._events.closed:
                return
            *lines, self._pending = (self._pending + chunk).split(b"\n")
            for line in lines:
                self._line(line + b"\n")
            if len(self._pending) > EVENT_LIMIT_BYTES:
                self._log.write(self._pending)
                self._pending = b""

    def note(self, remark: str) -> None:
        """Add a line of our own to the log."""
        with self._lock:
            self._log.note(remark)

    def _line(self, line: bytes) -> None:
        event = _event(line)
        if event is None:
            self._log.write(line)
            return
        event = self._clean(event)
        self.end = _end(event) or self.end
        text = json.dumps(event, ensure_ascii=False)
        size = len(text.encode("utf-8", "replace")) + 1
        if size <= self._left:
            self._left -= size
            self._events.write(text.encode("utf-8", "replace").decode() + "\n")
            self._events.flush()
        said = _PREFIXES.get(event["kind"], "") + str(event.get("text", ""))
        self._log.write(said.rstrip("\n").encode("utf-8", "replace") + b"\n")

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return redact(value, self._secrets)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {self._clean(key): self._clean(item) for key, item in value.items()}
        return value


def _event(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("kind"), str) else None


def _end(event: dict[str, Any]) -> End | None:
    if event["kind"] != "end" or event.get("termination") not in list(Termination):
        return None
    claimed = event.get("claimed_success")
    return End(
        Termination(event["termination"]),
        claimed if isinstance(claimed, bool) else None,
        str(event.get("text", ""))[:2000],
    )
