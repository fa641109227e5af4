"""Draws challenges of a task in a process of its own, so that no task's code runs in the process that judges it."""

from __future__ import annotations

import hashlib
import importlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TIMEOUT_S = 300.0
SEEDS = (1, 2)


@dataclass(frozen=True)
class Drawn:
    """What a task module draws from a seed, and whether it keeps to the seed."""

    command: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    repeats: bool
    """The same seed gives the same challenge."""
    varies: bool
    """Another seed gives another challenge."""


def draw(module: Path) -> Drawn | None:
    """Draw from the task module at this path; None where it cannot be imported, draws nothing or takes too long."""
    command = [sys.executable, "-B", "-m", __name__, str(module)]  # nothing is written into a task's folder
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return None
    return Drawn(**{**answer, "inputs": tuple(answer["inputs"]), "outputs": tuple(answer["outputs"])})


def _draw_here(path: Path) -> Drawn:
    # As pytest imports it: `from tasks.<id> import ...` works when the folder above `tasks` is on the path.
    folder = path.parent
    sys.path[:0] = [str(folder.parent.parent)]
    module = importlib.import_module(f"{folder.parent.name}.{folder.name}.{path.stem}")
    first, other = (module.draw(seed) for seed in SEEDS)
    return Drawn(
        command=first.command,
        inputs=tuple(first.inputs),
        outputs=tuple(first.outputs),
        repeats=_digest(first) == _digest(module.draw(SEEDS[0])),
        varies=_digest(first) != _digest(other),
    )


def _digest(challenge: Any) -> str:
    total = hashlib.sha256(repr((challenge.command, challenge.outputs)).encode())
    for name, content in sorted(challenge.inputs.items()):
        total.update(b"%d:%s%d:" % (len(name.encode()), name.encode(), len(content)) + content)
    return total.hexdigest()


if __name__ == "__main__":
    print(json.dumps(asdict(_draw_here(Path(sys.argv[1])))))
