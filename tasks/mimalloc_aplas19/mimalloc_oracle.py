"""Draws a trace of allocations over threads, and knows by plain bookkeeping what memory must hold at its end.

No I/O but for `material`.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from pathlib import Path

THREADS, PHASES, SLOTS = 4, 12, 800
OPERATIONS = 150
"""For each thread in each phase."""
SIZES = ((0.888, 1, 1 << 10), (0.1, 1 << 10, 1 << 16), (0.01, 1 << 16, 1 << 20), (0.002, 1 << 20, 1 << 23))
"""Share, least and most bytes: mimalloc treats small, medium, large and huge blocks by different means."""
ALIGNMENTS = tuple(1 << power for power in range(4, 17))


@dataclass(frozen=True)
class Operation:
    """One line of a trace: thread `thread` does `kind` to slot `slot` in phase `phase`."""

    phase: int
    thread: int
    kind: str
    """m(alloc), c(alloc), a(ligned), r(ealloc) or f(ree)."""
    slot: int
    size: int = 0
    align: int = 0

    def __str__(self) -> str:
        return f"{self.phase} {self.thread} {self.kind} {self.slot} {self.size} {self.align}"


@dataclass(frozen=True)
class Ending:
    """What is so when a trace has been replayed."""

    allocated: int
    """Calls that gave a block."""
    live: int
    crc: int
    """CRC-32 of all live blocks, slot after slot."""


def material(name: str) -> bytes:
    """A file of the experiment that the verifier brings along."""
    return (Path(__file__).parent / name).read_bytes()


def draw_trace(rng: random.Random) -> list[Operation]:
    """In each phase a slot belongs to another thread, so that most blocks are freed where they were not allocated."""
    trace, used = [], set[int]()
    for phase in range(PHASES):
        for thread in range(THREADS):
            own = range((thread - phase) % THREADS, SLOTS, THREADS)
            for _ in range(OPERATIONS):
                slot = rng.choice(own)
                kind = rng.choice("rf" if slot in used else "mmca")
                size = 0 if kind == "f" else _draw_size(rng)
                trace.append(Operation(phase, thread, kind, slot, size, rng.choice(ALIGNMENTS) if kind == "a" else 0))
                used ^= {slot} if kind != "r" else set()
    return trace


def ending(trace: list[Operation]) -> Ending:
    """Each block is filled with the pattern of the operation that made it, and stays so until it is freed."""
    blocks: dict[int, bytes] = {}
    for number, operation in enumerate(trace):
        if operation.kind == "f":
            del blocks[operation.slot]
        else:
            blocks[operation.slot] = pattern(number, operation.size)
    return Ending(
        allocated=sum(operation.kind != "f" for operation in trace),
        live=len(blocks),
        crc=zlib.crc32(b"".join(content for _, content in sorted(blocks.items()))),
    )


def pattern(number: int, size: int) -> bytes:
    """Content of a block that line `number` of the trace made: it repeats after 256 bytes."""
    period = bytes((number + 7 * i) % 256 for i in range(256))
    return (period * (size // 256 + 1))[:size]


def _draw_size(rng: random.Random) -> int:
    ((_, least, most),) = rng.choices(SIZES, [share for share, _, _ in SIZES])
    return rng.randint(least, most)
