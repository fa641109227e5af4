"""Draws a file of records by its seed, and sorts it in numpy. No I/O but for `driver`."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RECORD_BYTES = 16
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Settings:
    """What the machine makes its records from; they are too many to be sent."""

    seed: int
    records: int
    memory: int
    """Megabytes that the sorting may use."""
    capacity: int
    """Megabytes of each disk file."""

    @property
    def size(self) -> int:
        """Of the file, in bytes."""
        return self.records * RECORD_BYTES

    def as_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def draw_settings(rng: random.Random) -> Settings:
    """An odd number of records, three to five times as many as fit into the memory."""
    return Settings(
        seed=rng.randrange(2**60),
        records=rng.randint(1_200_000, 1_400_000) * 2 + 1,
        memory=rng.randint(8, 11),
        capacity=160,
    )


def draw_records(settings: Settings) -> NDArray[np.uint64]:
    """Key and payload of each record. Of a key only the lowest and the highest byte are random: many keys are equal,
    and half of them are beyond the range of signed numbers.
    """
    content = random.Random(settings.seed).randbytes(settings.size)
    records = np.frombuffer(content, dtype="<u8").reshape(-1, 2).astype(np.uint64)
    records[:, 0] &= np.uint64(0xFF000000000000FF)
    return records


def sorted_digest(records: NDArray[np.uint64]) -> str:
    """SHA-256 of the records by key, then payload, as a file."""
    order = np.lexsort((records[:, 1], records[:, 0]))
    return hashlib.sha256(records[order].astype("<u8").tobytes()).hexdigest()


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "sort_experiment.py").read_bytes()
