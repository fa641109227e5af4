"""Random graphs and grids, and what can be found in them: by walking, brute force, and Kirchhoff's theorem.

Nothing here uses decision diagrams. No I/O but for `driver`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np

Label = int | str
Members = list[list[int]]
"""Sets of edges, each as the sorted numbers of its edges, in ascending order."""

State = tuple[tuple[int, int], ...]
"""Vertices with their mates, see `Grid.count_paths`."""

VERTICES, EDGES = 8, 13


@dataclass(frozen=True)
class Graph:
    """A weighted graph, two of its vertices, and two of its edges."""

    vertices: Sequence[Label]
    edges: Sequence[tuple[Label, Label, int]]
    """Both ends and the weight."""
    ends: tuple[Label, Label]
    marked: tuple[int, int]
    """Numbers of two edges."""

    def paths(self) -> Members:
        """All simple paths between both ends."""
        return sorted(sorted(path) for path in self._walk(self.ends[0], [], {self.ends[0]}))

    def weight(self, members: Sequence[int]) -> int:
        return sum(self.edges[number][2] for number in members)

    def spanning_trees(self) -> int:
        """By Kirchhoff: any cofactor of the Laplacian."""
        place = {vertex: number for number, vertex in enumerate(self.vertices)}
        laplacian = np.zeros((len(place), len(place)))
        for u, v, _ in self.edges:
            laplacian[[place[u], place[v]], [place[v], place[u]]] -= 1
            laplacian[[place[u], place[v]], [place[u], place[v]]] += 1
        return round(float(np.linalg.det(laplacian[1:, 1:])))

    def matchings(self) -> int:
        """Sets of edges that share no vertex, the empty one too."""
        return sum(
            len({end for u, v, _ in chosen for end in (u, v)}) == 2 * size
            for size in range(len(self.vertices) // 2 + 1)
            for chosen in combinations(self.edges, size)
        )

    def triangles(self) -> Members:
        number = {frozenset((u, v)): place for place, (u, v, _) in enumerate(self.edges)}
        triples = (list(map(frozenset, combinations(triple, 2))) for triple in combinations(self.vertices, 3))
        return sorted(sorted(number[pair] for pair in pairs) for pairs in triples if set(pairs) <= number.keys())

    def _walk(self, here: Label, taken: list[int], visited: set[Label]) -> Iterator[list[int]]:
        if here == self.ends[1]:
            yield taken
            return
        for number, (u, v, _) in enumerate(self.edges):
            if here in (u, v) and (there := v if here == u else u) not in visited:
                yield from self._walk(there, [*taken, number], visited | {there})


@dataclass(frozen=True)
class Grid:
    """A grid of unit squares, some of whose edges may be missing. Vertices are numbered row by row, from 1."""

    edges: Sequence[tuple[int, int]]
    ends: tuple[int, int]
    """Two opposite corners."""

    def count_paths(self) -> int:
        """Simple paths from corner to corner, edge by edge: only how the ends of the pieces are joined is remembered.

        The mate of a vertex is itself while it was not met, the other end of the piece that it ends, 0 within a piece.
        Both corners are mates from the start, as if joined outside: what then closes a circle is a path between them.
        """
        last = {vertex: number for number, edge in enumerate(self.edges) for vertex in edge}
        start, end = self.ends
        states: Counter[State] = Counter({((start, end), (end, start)): 1})
        found = 0
        for number, (u, v) in enumerate(self.edges):
            following: Counter[State] = Counter()
            for state, count in states.items():
                left_out = {u: u, v: v} | dict(state)
                a, b = left_out[u], left_out[v]
                if a == v:
                    found += count * all(mate in (0, vertex) for vertex, mate in state if vertex not in (u, v))
                # In this order: a vertex that was its own mate ends the longer piece, and is not within it.
                taken = left_out | {u: 0, v: 0} | {a: b, b: a} if a and b and a != v else {}
                for mates in filter(None, (left_out, taken)):
                    done = [vertex for vertex in (u, v) if last[vertex] == number]
                    if all(mates.pop(vertex) in (0, vertex) for vertex in done):
                        following[tuple(sorted(mates.items()))] += count
            states = following
        return found


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "graph_experiment.py").read_bytes()


def draw_graph(rng: random.Random, vertices: Sequence[Label]) -> Graph:
    """A connected graph: a random tree and further edges, in random order, each written from a random end."""
    order = rng.sample(list(vertices), len(vertices))
    pairs = {frozenset((order[number], rng.choice(order[:number]))) for number in range(1, len(order))}
    pairs |= set(rng.sample([p for p in map(frozenset, combinations(order, 2)) if p not in pairs], EDGES - len(pairs)))
    ends = [rng.sample(sorted(pair, key=order.index), 2) for pair in sorted(pairs, key=lambda p: sorted(map(str, p)))]
    rng.shuffle(ends)
    edges = [(u, v, rng.randint(1, 1_000)) for u, v in ends]
    first, second = rng.sample(range(EDGES), 2)
    return Graph(vertices, edges, (order[0], order[-1]), (first, second))


def draw_labels(rng: random.Random) -> list[list[Label]]:
    """Small numbers; 0 and multiples of 256, some with the same low byte; words of one length."""
    words: set[str] = set()
    while len(words) < VERTICES:
        words.add("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=4)))
    return [
        list(rng.sample(range(1, 256), VERTICES)),
        [0, 256, 512, 768, *rng.sample(range(257, 512), VERTICES - 4)],
        list(rng.sample(sorted(words), VERTICES)),
    ]


def draw_grid(rng: random.Random, size: int, missing: int) -> Grid:
    """A grid of `size` by `size` squares without some edges, none of them at a corner where paths end."""
    side = size + 1
    cells = list(product(range(side), repeat=2))
    pairs = [
        (row * side + column + 1, there_row * side + there_column + 1)
        for row, column in cells
        for there_row, there_column in ((row, column + 1), (row + 1, column))
        if there_row < side and there_column < side
    ]
    ends = (1, side * side)
    gone = rng.sample([pair for pair in pairs if not set(pair) & set(ends)], missing)
    return Grid([pair for pair in pairs if pair not in gone], ends)
