"""Writes what went through the gateway into the trial's folder: llm.jsonl, one line for each call and each refusal.

Promises a reviewer can check: keys and tokens are removed before anything touches the disk; bodies and file are
bounded, and a line says what was left out; the event loop never waits for it, since one thread does all the work.

A conversation grows by being sent again with every call, so a line holds only what is new: `continues` says with which
call's request it begins, and how many items of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pytest_deploybench.gateway.wire import CALLS_NAME
from pytest_deploybench.redact import redact

BODY_LIMIT = 1_000_000
"""Characters of one body."""
FILE_LIMIT_BYTES = 200_000_000
"""From here on bodies are left out; the lines themselves go on."""

_LONGEST_SECRET = 2_000
_MOST_QUEUED = 64
_DELAY_S = 0.1
_HISTORIES = ("messages", "input", "contents")

_Entry = tuple[dict[str, Any], bytes, Any]


class CallLog:
    """The file of one trial. All calls of one event loop; `close` waits until everything is on disk."""

    def __init__(self, folder: Path, secrets: Collection[str], thread: ThreadPoolExecutor) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / CALLS_NAME
        self._secrets = tuple(secrets)
        self._thread = thread
        self._queued: list[_Entry] = []
        self._timer: asyncio.TimerHandle | None = None
        self._jobs: set[asyncio.Future[None]] = set()
        self._written = 0
        self._history: list[int] = []
        self._history_call = 0
        self.problem: str | None = None
        """Why the log is not complete."""

    async def add(self, line: dict[str, Any], request: bytes = b"", response: Any = None) -> None:
        """Append a line with the bodies of a call; a bytes `response` is a body that is not JSON."""
        self._queued.append((line, request, response))
        if len(self._queued) >= _MOST_QUEUED:
            self._start()
            if len(self._jobs) > 1:
                await asyncio.wait(self._jobs)
        elif self._timer is None:
            # Not at once: the thread would compete with the answer that is about to be sent.
            self._timer = asyncio.get_running_loop().call_later(_DELAY_S, self._start)

    async def close(self) -> None:
        """Wait for the lines that are not yet on disk."""
        self._start()
        if self._jobs:
            await asyncio.wait(self._jobs)

    def _start(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._queued:
            entries, self._queued = self._queued, []
            job = asyncio.get_running_loop().run_in_executor(self._thread, self._write, entries)
            self._jobs.add(job)
            job.add_done_callback(self._jobs.discard)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _write(self, entries: Iterable[_Entry]) -> None:
        for entry in entries:
            try:
                self._append(*entry)
            except Exception as error:  # whatever it is, the trial goes on, and is told
                self.problem = f"{self._path} is not complete: {type(error).__name__}: {error}"

    def _append(self, line: dict[str, Any], request: bytes, response: Any) -> None:
        if request and self._written < FILE_LIMIT_BYTES:
            sent, continues = self._news(line["call"], _parsed(request))
            said = _parsed(response) if isinstance(response, bytes) else response
            line = {**line, **continues, "request": sent, "response": said}
        elif request:
            line = {**line, "bodies": f"left out: the log has reached {FILE_LIMIT_BYTES} bytes"}
        # JSON is written out anew before secrets are looked for: one in it could be spelt with escapes.
        text = json.dumps(line, ensure_ascii=False)
        clean = redact(text, self._secrets) if len(text) <= BODY_LIMIT else ""
        if not _is_json(clean):
            parts = {key: self._harmless(part) for key, part in line.items()}
            clean = json.dumps(parts, ensure_ascii=False)
        data = clean.encode("utf-8", "replace") + b"\n"
        with self._path.open("ab") as file:
            file.write(data)
        self._written += len(data)

    def _news(self, call: int, request: Any) -> tuple[Any, dict[str, Any]]:
        """The request without the items that the last one had already."""
        key = next(
            (key for key in _HISTORIES if isinstance(request, dict) and isinstance(request.get(key), list)), None
        )
        if key is None:
            return request, {}
        before, self._history = self._history, [hash(json.dumps(item)) for item in request[key]]
        earlier, self._history_call = self._history_call, call
        if not before or self._history[: len(before)] != before:
            return request, {}
        news = {**request, key: request[key][len(before) :]}
        return news, {"continues": {"call": earlier, key: len(before)}}

    def _harmless(self, part: Any) -> Any:
        """A part of a line without secrets and not longer than allowed: JSON if it still is, else text."""
        text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        clean = redact(text[: BODY_LIMIT + _LONGEST_SECRET], self._secrets)
        if len(text) > BODY_LIMIT:
            # What the cut left of a secret at the end is no longer recognised, so the end goes.
            return f"{clean[:-_LONGEST_SECRET]} [cut: {len(text)} characters]"
        return clean if isinstance(part, str) or not _is_json(clean) else json.loads(clean)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _parsed(body: bytes) -> Any:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
