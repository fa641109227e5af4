"""Draws what is written to the cluster, and says what of a history contradicts Raft. No I/O but for `driver`.

No second etcd is asked. Each key is written once, so an acknowledged write must be there at the end, with its value, at
the revision that its acknowledgement named, and on every member; a write that was not acknowledged may or may not be.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

MEMBERS = 5
FIRST_WRITES, CALM_WRITES = 60, 20
SPARE_WRITES = 900
"""For tries during elections: one each 50 ms at most, for as long as the program has patience."""
VALUES = 'abcdefghijklmnopqrstuvwxyz0123456789 äßéπ中\n"\\{}'


@dataclass(frozen=True)
class Plan:
    """What the program is to do."""

    prefix: str
    writes: tuple[tuple[str, str], ...]
    heartbeat_ms: int
    victim: int
    """Which of the last three members is killed."""

    @property
    def election_ms(self) -> int:
        """Ten heartbeats: enough for a machine that is much slower than those that etcd is tuned for."""
        return 10 * self.heartbeat_ms

    def as_input(self) -> bytes:
        """What the machine is given."""
        return json.dumps(
            {
                "heartbeat_ms": self.heartbeat_ms,
                "election_ms": self.election_ms,
                "prefix": self.prefix,
                "victim": self.victim,
                "first_writes": FIRST_WRITES,
                "calm_writes": CALM_WRITES,
                "writes": self.writes,
            }
        ).encode()


@dataclass(frozen=True)
class Write:
    """One try to write."""

    phase: str
    index: int
    """Which of the plan's writes it was."""
    revision: int | None
    """None when it was not acknowledged."""
    sent: float
    answered: float


@dataclass(frozen=True)
class Status:
    """A member's view of who leads."""

    member: str
    term: int
    leader: str
    """The id of a member; "0" while it knows none."""


@dataclass(frozen=True)
class Kill:
    """A leader that was killed, and how many statuses and writes were on record by then."""

    id: str
    statuses: int
    writes: int


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "raft_experiment.py").read_bytes()


def draw_plan(seed: int) -> Plan:
    """Fresh keys, values, timeouts and a fresh victim."""
    rng = random.Random(seed)
    prefix = f"{rng.getrandbits(64):016x}/"
    keys = rng.sample(range(10**9), FIRST_WRITES + 5 * CALM_WRITES + SPARE_WRITES)
    return Plan(
        prefix=prefix,
        writes=tuple((f"{prefix}{key}", "".join(rng.choices(VALUES, k=rng.randint(1, 60)))) for key in keys),
        heartbeat_ms=rng.randrange(360, 401, 5),
        victim=rng.randrange(3),
    )


def rivals(statuses: Iterable[Status]) -> dict[int, set[str]]:
    """Terms that more than one leader was seen in."""
    leaders: dict[int, set[str]] = {}
    for status in statuses:
        if status.leader != "0":
            leaders.setdefault(status.term, set()).add(status.leader)
    return {term: ids for term, ids in leaders.items() if len(ids) > 1}


def steps_back(statuses: Iterable[Status]) -> list[tuple[str, int, int]]:
    """Members that went back to an earlier term: the member, its term and the earlier one."""
    terms: dict[str, int] = {}
    found = []
    for status in statuses:
        before = terms.get(status.member, 0)
        if status.term < before:
            found.append((status.member, before, status.term))
        terms[status.member] = status.term
    return found


def successor(statuses: Sequence[Status], kill: Kill) -> Status | None:
    """The first view after a kill that has another leader in a later term."""
    term = max((status.term for status in statuses[: kill.statuses]), default=0)
    later = (status for status in statuses[kill.statuses :] if status.term > term)
    return next((status for status in later if status.leader not in ("0", kill.id)), None)


def silence(writes: Sequence[Write], kill: Kill) -> float | None:
    """Seconds from sending the last write that was acknowledged before a kill to the first acknowledgement after it."""
    before = [write for write in writes[: kill.writes] if write.revision is not None]
    after = [write for write in writes[kill.writes :] if write.revision is not None]
    return after[0].answered - before[-1].sent if before and after else None


def disorder(writes: Iterable[Write]) -> list[tuple[int, int]]:
    """Pairs of acknowledgements, one after the other, whose revisions did not grow."""
    revisions = [write.revision for write in writes if write.revision is not None]
    return [(one, two) for one, two in pairwise(revisions) if two <= one]


def wrongs(plan: Plan, writes: Iterable[Write], held: Sequence[tuple[str, str, int]]) -> list[str]:
    """What is wrong with the pairs that a member holds at the end: key, value, and revision of each."""
    found = {key: (value, revision) for key, value, revision in held}
    wrong = []
    sent: dict[str, str] = {}
    for write in writes:
        key, value = plan.writes[write.index]
        sent[key] = value
        if write.revision is None:
            continue
        if key not in found:
            wrong.append(f"{key}, acknowledged in phase {write.phase!r} at revision {write.revision}, is lost")
        elif found[key][1] != write.revision:
            wrong.append(f"{key} was acknowledged at revision {write.revision} and is held at {found[key][1]}")
    wrong += [f"{key} was never written" for key in found if key not in sent]
    wrong += [
        f"{key} has another value than was written" for key in found if key in sent and found[key][0] != sent[key]
    ]
    return wrong


def shape_of(value: Any, example: Any) -> bool:
    """Whether a value that came as JSON is built like the example: types, the keys of objects, the items of lists."""
    if isinstance(example, Mapping):
        return isinstance(value, dict) and all(key in value and shape_of(value[key], example[key]) for key in example)
    if isinstance(example, list):
        return isinstance(value, list) and all(shape_of(item, example[0]) for item in value)
    if isinstance(example, tuple):  # one of several
        return any(shape_of(value, choice) for choice in example)
    if isinstance(example, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is type(example)
