"""Where a running trial stands, written down beside its evidence so that the session's controller can show it.

The process that runs the trial writes `status.json` into the trial's folder and removes it when the trial is over.
Promises a reviewer can check: it is small and holds numbers and the names of phases only, nothing from a guest or a
model; it names its writer, so that a killed one leaves no trial that seems to go on; a full disk costs the news, never
the trial. What an agent did last is read from the end of its transcript, which was redacted before it was written.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_deploybench.agents.script import LOG_NAME
from pytest_deploybench.agents.transcript import EVENTS_NAME
from pytest_deploybench.process import Process

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from pytest_deploybench.trial import Diary

FILE_NAME = "status.json"
LOOK_EVERY_S = 1.0
_FAREWELL_S = 5.0
"""How long a disk that does not answer may hold up the trial's end."""
_LIMIT_BYTES = 4096
_TAIL_BYTES = 16_384


@dataclass(frozen=True)
class Status:
    """What is known of a trial while it runs."""

    writer: Process
    phase: str
    """Of `trial.Diary.phase`; empty before the first."""
    since: float
    """When the phase began, in seconds since the epoch."""
    tries: int
    """How many machines it has asked for."""
    speed_factor: float | None
    """Of its machine; None before there is one."""
    tokens: int | None
    """That the model has used in this try, in and out; None where no model was asked."""
    waited_s: float
    """What its model's provider made it wait in this try."""

    @classmethod
    def of(cls, diary: Diary, writer: Process) -> Status:
        """What a diary says at this moment."""
        use, facts = diary.model_use, diary.facts
        return cls(
            writer=writer,
            phase=diary.under_way,
            since=diary.since,
            tries=diary.begun,
            speed_factor=facts.speed_factor if facts else None,
            tokens=use.input_tokens + use.output_tokens if use else None,
            waited_s=use.waited_s if use else 0.0,
        )


@contextmanager
def told(diary: Diary, folder: Path) -> Iterator[None]:
    """Keep the file up to date for as long as the block lasts, from a thread."""
    over = threading.Event()
    writer = threading.Thread(target=_tell, args=(diary, folder / FILE_NAME, over), name="status", daemon=True)
    try:
        writer.start()
        yield
    finally:
        over.set()
        if writer.is_alive():  # it is not where the trial was stopped while starting it
            writer.join(_FAREWELL_S)


def read(folder: Path) -> Status | None:
    """The status of the trial whose evidence goes into a folder; None where none can be read."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            status: Status = _adapter().validate_json(file.read(_LIMIT_BYTES))
    except (OSError, ValueError):
        return None
    return status


def last_words(folder: Path) -> str:
    """The last command that an agent is known to have given, or else the last line of its log; perhaps empty."""
    for line in reversed(_tail(folder / EVENTS_NAME)):
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict) and event.get("kind") == "command":
                return f"$ {event.get('text', '')}"
    return next((line for line in reversed(_tail(folder / LOG_NAME)) if line.strip()), "")


def _tell(diary: Diary, path: Path, over: threading.Event) -> None:
    me, last = Process.me(), None
    unfinished = path.with_name(f".{path.name}.unfinished")
    while not over.is_set():
        status = Status.of(diary, me)
        if status != last or not path.exists():  # a failed try's evidence is set aside, and this file with it
            with suppress(OSError):
                unfinished.write_text(json.dumps(asdict(status)), encoding="utf-8")
                unfinished.replace(path)
                last = status
        over.wait(LOOK_EVERY_S)
    for each in (path, unfinished):
        with suppress(OSError):
            each.unlink(missing_ok=True)


def _tail(path: Path) -> list[str]:
    """The whole lines at the end of a file; a carriage return ends one, too."""
    try:
        with path.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
            file.seek(start)
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    lines = text.replace("\r", "\n").split("\n")
    return lines[1 if start else 0 : -1]  # the first one may have lost its beginning, the last one waits for its end


@cache
def _adapter() -> TypeAdapter[Status]:
    from pydantic import TypeAdapter

    return TypeAdapter(Status)
