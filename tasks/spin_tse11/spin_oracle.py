"""Bounded Petri nets as Promela models, and their state graphs explored by breadth-first search on the host.

The search here shares nothing with Spin: it counts the same states by another algorithm in another language.
This file performs no I/O.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Marking = tuple[int, ...]
"""Tokens in each place."""

Reached = NDArray[np.bool_]
"""Which markings are reachable, indexed by marking."""

PLACES = 5


@dataclass(frozen=True)
class Move:
    """One guarded move: takes tokens from places and puts tokens into places, as one indivisible step."""

    takes: Marking
    puts: Marking


@dataclass(frozen=True)
class Net:
    """Places of limited capacity, a first marking, and moves. All Spin has to explore."""

    start: Marking
    capacity: Marking
    moves: tuple[Move, ...]


def explore(net: Net) -> Reached:
    """Breadth-first search from the net's first marking over whole frontiers at once.

    Raises:
        ValueError: a reachable marking has no move. Spin would rightly report it as an invalid end state.
    """
    reached = np.zeros(np.add(net.capacity, 1), dtype=bool)
    reached[net.start] = True
    frontier = np.array([net.start])
    while len(frontier):
        moved, following = np.zeros(len(frontier), dtype=bool), []
        for move in net.moves:
            after = frontier - move.takes + move.puts
            enabled = (frontier >= move.takes).all(axis=1) & (after <= net.capacity).all(axis=1)
            moved |= enabled
            following.append(np.ravel_multi_index(tuple(after[enabled].T), reached.shape))
        if not moved.all():
            raise ValueError(f"deadlock in {frontier[~moved][0]}")
        new = np.unique(np.concatenate(following))
        new = new[~reached.flat[new]]
        reached.flat[new] = True
        frontier = np.stack(np.unravel_index(new, reached.shape), axis=1)
    return reached


def draw_net(rng: random.Random, size: tuple[int, int], least: int) -> tuple[Net, Reached]:
    """A random net without deadlock and with at least `least` reachable markings; `size` bounds the capacities.

    Every move changes the number of tokens by a multiple of three, so that most markings within the capacities are out
    of reach. Every move has its inverse, so that a depth-first search wanders through nearly all of the graph before it
    first turns back: far deeper than the 10,000 steps for which `pan` makes room by default.
    """
    while True:
        capacity = tuple(rng.randint(*size) for _ in range(PLACES))
        forth = [*_ring(), *(_change_of_three(rng) for _ in range(2))]
        moves = [*forth, *(Move(move.puts, move.takes) for move in forth)]
        rng.shuffle(moves)
        net = Net(tuple(rng.randint(0, most // 2) for most in capacity), capacity, tuple(moves))
        try:
            reached = explore(net)
        except ValueError:
            continue
        if reached.sum() >= least:
            return net, reached


def pick(rng: random.Random, markings: Reached, count: int) -> list[Marking]:
    """Distinct random markings out of a set."""
    return [tuple(map(int, marking)) for marking in rng.sample(list(np.argwhere(markings)), count)]


def promela(net: Net, forbidden: Iterable[Marking] = (), targets: Iterable[Marking] = ()) -> str:
    """The net as a Promela model of two processes.

    Each move is a `d_step`, so that without targets Spin's states are exactly the net's markings. An assertion fails in
    each `forbidden` marking; each marking of `targets` enables a statement of its own, on a line marked
    `/* target N */`.
    """
    half = len(net.moves) // 2
    asserts = [f"    :: d_step {{ {_equals(marking)} -> assert(false) }}" for marking in forbidden]
    aims = [
        f'    :: {_equals(marking)} ->\n       printf("target {number}\\n") /* target {number} */'
        for number, marking in enumerate(targets, start=1)
    ]
    start = "".join(f"byte c{place} = {tokens};\n" for place, tokens in enumerate(net.start))
    return (
        start
        + _process("left", [_step(net, move) for move in net.moves[:half]] + asserts)
        + _process("right", [_step(net, move) for move in net.moves[half:]] + aims)
    )


@dataclass(frozen=True)
class PanReport:
    """What the printed report of one run of `pan` says."""

    version: str
    states: int
    errors: int
    truncated: bool
    """The search stack was too small for the model."""
    reduced: bool
    """Partial-order reduction was on."""
    bitstate: bool
    seed: int | None
    unreached_lines: frozenset[int]


def read_pan(text: str) -> PanReport:
    """Read the report that `pan` prints.

    Raises:
        AssertionError: it is no such report.
    """
    version = re.search(r"\(Spin Version ([\w.]+) -- ", text)
    states = re.search(r"^\s*(\d+) states, stored", text, re.MULTILINE)
    errors = re.search(r"depth reached \d+,.* errors: (\d+)", text)
    if not (version and states and errors):
        raise AssertionError(
            f"not the report of a pan run, which names Spin's version, states and errors: {text[:500]!r}"
        )
    seed = re.search(r"^random seed used: (\d+)", text, re.MULTILINE)
    return PanReport(
        version=version[1],
        states=int(states[1]),
        errors=int(errors[1]),
        truncated="max search depth too small" in text,
        reduced="+ Partial Order Reduction" in text,
        bitstate="Bit statespace search" in text,
        seed=int(seed[1]) if seed else None,
        unreached_lines=frozenset(int(line) for line in re.findall(r"^\t\S+:(\d+), state \d+,", text, re.MULTILINE)),
    )


def target_lines(model: str) -> tuple[int, ...]:
    """Line of target 1, 2, and so on in a model's text."""
    lines = {
        int(found[1]): number
        for number, line in enumerate(model.splitlines(), start=1)
        if (found := re.search(r"/\* target (\d+) \*/$", line))
    }
    return tuple(lines[target] for target in sorted(lines))


def reached_targets(report: PanReport, lines: tuple[int, ...]) -> frozenset[int]:
    """Targets whose statement a run executed."""
    return frozenset(target for target, line in enumerate(lines, start=1) if line not in report.unreached_lines)


def final_marking(replay: str) -> Marking:
    """Where a replay by `spin -k` ended.

    Raises:
        AssertionError: it does not list the places.
    """
    end = dict(re.findall(r"^\s*c(\d+) = (\d+)$", replay.rpartition("#processes:")[2], re.MULTILINE))
    if sorted(end) != [str(place) for place in range(PLACES)]:
        raise AssertionError(f"expected the replay to list c0 to c{PLACES - 1} at its end; it ends: {replay[-300:]!r}")
    return tuple(int(end[str(place)]) for place in range(PLACES))


def whole_number(summary: object, key: str) -> int:
    """An integer out of a JSON object.

    Raises:
        AssertionError: there is none.
    """
    value = summary.get(key) if isinstance(summary, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise AssertionError(f"expected a JSON object with an integer {key!r}, got {summary!r}")
    return value


def _ring() -> list[Move]:
    """One token from each place to the next."""
    return [_move({here: 1}, {(here + 1) % PLACES: 1}) for here in range(PLACES)]


def _change_of_three(rng: random.Random) -> Move:
    a, b, c, d = rng.sample(range(PLACES), 4)
    spare = rng.randint(0, 1)
    return _move({a: 1, b: spare}, {c: 2, d: 2 + spare})


def _move(takes: dict[int, int], puts: dict[int, int]) -> Move:
    return Move(tuple(takes.get(p, 0) for p in range(PLACES)), tuple(puts.get(p, 0) for p in range(PLACES)))


def _step(net: Net, move: Move) -> str:
    guards, acts = [], []
    for place, (take, put) in enumerate(zip(move.takes, move.puts, strict=True)):
        if take:
            guards.append(f"c{place} >= {take}")
        if put > take:
            guards.append(f"c{place} + {put - take} <= {net.capacity[place]}")
        if put != take:
            acts.append(f"c{place} = c{place} {put - take:+d}".replace("+", "+ ").replace("-", "- "))
    return f"    :: d_step {{ {' && '.join(guards)} -> {'; '.join(acts)} }}"


def _equals(marking: Marking) -> str:
    return " && ".join(f"c{place} == {tokens}" for place, tokens in enumerate(marking))


def _process(name: str, options: list[str]) -> str:
    body = "\n".join(options)
    return f"active proctype {name}() {{\n    do\n{body}\n    od\n}}\n"
