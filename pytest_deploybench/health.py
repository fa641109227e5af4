"""The vital signs of a machine while an agent works on it: memory, disk, and what its kernel killed.

Whether the machine is alive is not decided here but by its provider, from outside; what stands here helps people to see
why a deployment went wrong. Promises a reviewer can check:
- the machine is asked over a connection of its own, by one cheap command, and nothing is installed on it;
- an answer is numbers or nothing: the machine is its agent's, and what it says goes no further than that;
- `health.jsonl` grows by one short line a beat; a host whose disk is full costs lines, never the trial.
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_deploybench.errors import MachineLostError
from pytest_deploybench.model import Completed, Vitals
from pytest_deploybench.ports import Machine

BEAT_EVERY_S = 30.0
ANSWER_WITHIN_S = 30.0
LOG_NAME = "health.jsonl"
QUESTION = "cat /proc/meminfo /proc/vmstat; stat -f -c 'disk %a %S' /"
_ANSWER_LIMIT_BYTES = 32_768
_FAREWELL_S = 15.0
_NUMBER = r"(\d{1,18})"
_MEMORY = re.compile(rf"^MemAvailable: +{_NUMBER} kB$", re.MULTILINE)
_KILLS = re.compile(rf"^oom_kill {_NUMBER}$", re.MULTILINE)
_DISK = re.compile(rf"^disk {_NUMBER} {_NUMBER}$", re.MULTILINE)


@dataclass(frozen=True)
class Beat:
    """What a machine said of itself at one moment; None where it said nothing that can be read."""

    memory_mb: int | None = None
    disk_mb: int | None = None
    oom_kills: int | None = None


def read(answer: str) -> Beat:
    """The numbers in a machine's answer to `QUESTION`."""
    memory, kills, disk = _MEMORY.search(answer), _KILLS.search(answer), _DISK.search(answer)
    return Beat(
        memory_mb=int(memory[1]) // 1024 if memory else None,
        disk_mb=int(disk[1]) * int(disk[2]) // 2**20 if disk else None,
        oom_kills=int(kills[1]) if kills else None,
    )


def fold(vitals: Vitals, beat: Beat | None) -> Vitals:
    """The vital signs with one more beat; None is a beat that was missed."""
    if beat is None:
        return replace(vitals, missed=vitals.missed + 1)
    return Vitals(
        beats=vitals.beats + 1,
        missed=vitals.missed,
        oom_kills=max(vitals.oom_kills, beat.oom_kills or 0),
        least_memory_mb=_least(vitals.least_memory_mb, beat.memory_mb),
        least_disk_mb=_least(vitals.least_disk_mb, beat.disk_mb),
    )


def _least(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


class Watch:
    """Asks a machine now and then in a thread of its own, for as long as the block lasts.

    Args:
        machine: a connection that nobody else uses; it is closed at the end.
        folder: where `health.jsonl` goes.
    """

    def __init__(self, machine: Machine, folder: Path, every_s: float = BEAT_EVERY_S) -> None:
        self.vitals = Vitals()
        self._machine, self._folder, self._every_s = machine, folder, every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="health", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(_FAREWELL_S)  # an answer that is still awaited ends with the connection

    def _listen(self) -> None:
        start = time.monotonic()
        (self._folder / LOG_NAME).unlink(missing_ok=True)
        last = False
        while not last:
            last = self._over.wait(self._every_s)  # the state in which an agent leaves its machine counts, too
            beat = self._ask()
            self.vitals = fold(self.vitals, beat)
            self._note({"at_s": round(time.monotonic() - start, 1), **(asdict(beat) if beat else {"missed": True})})

    def _note(self, beat: dict[str, object]) -> None:
        line = json.dumps(beat) + "\n"
        with suppress(OSError), (self._folder / LOG_NAME).open("a", encoding="utf-8") as log:
            log.write(line)  # on a host whose disk is full the log has gaps; the vital signs have none

    def _ask(self) -> Beat | None:
        try:
            done: Completed = self._machine.run(QUESTION, timeout_s=ANSWER_WITHIN_S, limit_bytes=_ANSWER_LIMIT_BYTES)
        except MachineLostError:
            return None
        return None if done.timed_out else read(done.stdout.decode(errors="replace"))
