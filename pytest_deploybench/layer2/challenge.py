"""The challenge: input drawn from a recorded seed, whose right answer the host computes on its own.

This file performs no I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Challenge:
    """What the experiment is run on. A task module subclasses it and adds the truth as fields of its own.

    The verifier makes a fresh folder on the machine, writes `inputs` there, sources the agent's `env.sh`, runs
    `command` in bash from within that folder, and fetches `outputs` from it.

    Raises:
        ValueError: a path leaves the folder.
    """

    command: str
    inputs: Mapping[str, bytes]
    """Content by relative path."""
    outputs: tuple[str, ...]
    """Relative paths of the files that the experiment must leave."""

    def __post_init__(self) -> None:
        for name in (*self.inputs, *self.outputs):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or name in ("", "."):
                raise ValueError(f"challenge path {name!r} must stay inside the challenge folder")


def trial_seed(run_seed: int, task: str, attempt: int) -> int:
    """Seed of one trial's challenge: the same for every agent and model, so that they are compared on equal input.

    A non-negative number below 2**63.
    """
    digest = hashlib.sha256(f"{run_seed}/{task}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
