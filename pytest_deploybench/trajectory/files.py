"""Writes trajectory.json from what a trial's folder holds: llm.jsonl, events.jsonl, agent.log.

All of these were redacted before they were written, so the trajectory holds no secret either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_deploybench.agents.script import LOG_NAME
from pytest_deploybench.agents.transcript import EVENTS_NAME
from pytest_deploybench.gateway.wire import CALLS_NAME
from pytest_deploybench.model import AgentRun, TrialKey
from pytest_deploybench.ports import Progress
from pytest_deploybench.trajectory.atif import TEXT_LIMIT, Sources, trajectory

FILENAME = "trajectory.json"
_LOG_BYTES = 4 * TEXT_LIMIT


def write(folder: Path, key: TrialKey, agent_run: AgentRun | None, progress: Progress) -> None:
    """Write the trajectory of a trial whose agent has ended. It never raises: no verdict is lost over it.

    Args:
        folder: the trial's.
        key: names it.
        agent_run: how the agent ended; None where it was not judged.
        progress: is told if it cannot be written.
    """
    try:
        text = json.dumps(trajectory(key, _sources(folder), agent_run), indent=1, ensure_ascii=False)
        (folder / FILENAME).write_bytes(text.encode("utf-8", "replace") + b"\n")
    except Exception as error:  # what a model or a guest has said may be of any form
        progress(f"{key.task}: {FILENAME} is not written: {type(error).__name__}: {error}")


def _sources(folder: Path) -> Sources:
    program = f"pytest_deploybench {version('pytest_deploybench')}"
    tail: list[dict[str, Any]] = []
    for event in _lines(folder / EVENTS_NAME):
        if event.get("kind") == "start":
            program = str(event.get("text"))
        elif event.get("kind") == "command":
            tail = [event]
        elif event.get("kind") == "output" and tail:
            tail.append(event)
    return Sources(_lines(folder / CALLS_NAME), program, tuple(tail), _both_ends(folder / LOG_NAME))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; none if there is no such file."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):  # cut off by a full disk
                continue
            if isinstance(value, dict):
                yield value


def _both_ends(path: Path) -> str:
    """A log, or what of it is ever shown if it is long."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        head = file.read(_LOG_BYTES)
        if path.stat().st_size > 2 * _LOG_BYTES:
            file.seek(-_LOG_BYTES, 2)
        return (head + file.read(_LOG_BYTES)).decode("utf-8", "replace")
