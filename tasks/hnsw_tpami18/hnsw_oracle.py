"""Draws vectors, finds their exact neighbours, and walks through the saved graph as the paper's search does. In numpy.

No I/O but for `driver`.
"""

from __future__ import annotations

import heapq
import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BASE, QUERIES, NEW, DIMENSIONS = 4000, 100, 400, 24
K, M, EF_CONSTRUCTION = 10, 16, 100
EFS = (10, 40, 200)
HEADER = struct.Struct("<6QiI3Qd1Q")
"""As `saveIndex` of hnswalg.h writes it: sizes and offsets, top level, entry, maxM, maxM0, M, mult, ef_construction."""


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (Path(__file__).parent / "hnsw_experiment.py").read_bytes()


@dataclass(frozen=True)
class Problem:
    """Vectors with labels, and what is asked about them."""

    base: Floats
    labels: Ints
    """Of the base vectors, in their order."""
    queries: Floats
    allowed: Ints
    """Labels that the filter lets through."""
    deleted: Ints
    """Labels whose vectors make room."""
    newcomers: Floats
    new_labels: Ints


def draw_problem(seed: int) -> Problem:
    """Standard normal vectors, as single-precision numbers; labels say nothing about the order."""
    rng = np.random.default_rng(seed)

    def vectors(count: int) -> Floats:
        return rng.normal(size=(count, DIMENSIONS)).astype(np.float32).astype(np.float64)

    labels = rng.choice(10**9, BASE + NEW, replace=False)
    return Problem(
        base=vectors(BASE),
        labels=labels[:BASE],
        queries=vectors(QUERIES),
        allowed=rng.choice(labels[:BASE], BASE // 4, replace=False),
        deleted=rng.choice(labels[:BASE], NEW, replace=False),
        newcomers=vectors(NEW),
        new_labels=labels[BASE:],
    )


def npy(vectors: Floats) -> bytes:
    """Single-precision vectors as a file of numpy's."""
    file = io.BytesIO()
    np.save(file, vectors.astype(np.float32))
    return file.getvalue()


def squared_distances(points: Floats, vectors: Floats) -> Floats:
    """Between each point and each vector."""
    return np.asarray(((points[:, None, :] - vectors) ** 2).sum(2))


def nearest(points: Floats, vectors: Floats, labels: Ints) -> Ints:
    """Labels of the K nearest vectors of each point, by comparing with all."""
    order = np.argsort(squared_distances(points, vectors), axis=1)[:, :K]
    return np.asarray(labels[order])


def recall(found: Ints, exact: Ints) -> float:
    """Mean share of the exact neighbours that were found."""
    return float(np.mean([len(set(row) & set(truth)) / len(truth) for row, truth in zip(found, exact, strict=True)]))


@dataclass(frozen=True)
class Graph:
    """An index as it was saved."""

    entry: int
    labels: Ints
    vectors: Floats
    links: list[list[Ints]]
    """links[element][level]: neighbours there; an element has as many levels as it takes part in."""

    @property
    def levels(self) -> Ints:
        """Highest level of each element."""
        return np.array([len(levels) - 1 for levels in self.links])


def read_graph(content: bytes) -> Graph:
    """Read a file that `save_index` wrote.

    Raises:
        AssertionError: it is no such file.
    """
    try:
        return _read_graph(content)
    except (struct.error, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise AssertionError(f"not a saved index with vectors of {DIMENSIONS} dimensions: {error}") from None


def _read_graph(content: bytes) -> Graph:
    _, _, count, row, label_at, vector_at, _, entry, max_m, *_ = HEADER.unpack_from(content)
    end = HEADER.size + count * row
    if not vector_at + 4 * DIMENSIONS <= label_at <= row - 8 or end > len(content):
        raise ValueError(f"{count} elements of {row} bytes in {len(content)} bytes")
    rows = [content[start : start + row] for start in range(HEADER.size, end, row)]
    upper, links = memoryview(content)[end:], []
    for element in rows:
        (size,) = struct.unpack_from("<I", upper)
        levels = [_neighbours(element)]
        levels += [_neighbours(upper[start:]) for start in range(4, 4 + size, 4 * max_m + 4)]
        links.append(levels)
        upper = upper[4 + size :]
    if any(neighbour >= count for levels in links for level in levels for neighbour in level) or entry >= count:
        raise ValueError("links to elements that are not there")
    return Graph(
        entry=entry,
        labels=np.array([struct.unpack_from("<q", element, label_at)[0] for element in rows]),
        vectors=np.array([np.frombuffer(element, "<f4", DIMENSIONS, vector_at) for element in rows], dtype=float),
        links=links,
    )


def _neighbours(content: bytes | memoryview) -> Ints:
    (count,) = struct.unpack_from("<H", content)
    return np.frombuffer(content, "<u4", count, 4).astype(np.int64)


def walk(graph: Graph, query: Floats, ef: int) -> tuple[list[int], int]:
    """The paper's search for K neighbours (its algorithm 5): their labels, and how many vectors it looked at."""
    seen: dict[int, float] = {}

    def distance(element: int) -> float:
        if element not in seen:
            seen[element] = float(((graph.vectors[element] - query) ** 2).sum())
        return seen[element]

    here = graph.entry
    for level in range(len(graph.links[here]) - 1, 0, -1):
        while (best := min([here, *graph.links[here][level]], key=distance)) != here:
            here = best
    found = _search_bottom(graph, here, ef, distance)
    return [int(graph.labels[element]) for element in found[:K]], len(seen)


def _search_bottom(graph: Graph, start: int, ef: int, distance: Callable[[int], float]) -> list[int]:
    """The paper's algorithm 2: the ef nearest elements that links lead to, nearest first."""
    candidates, found, known = [(distance(start), start)], [(-distance(start), start)], {start}
    while candidates:
        near, element = heapq.heappop(candidates)
        if near > -found[0][0] and len(found) >= ef:
            break
        for neighbour in set(graph.links[element][0].tolist()) - known:
            known.add(neighbour)
            if len(found) < ef or distance(neighbour) < -found[0][0]:
                heapq.heappush(candidates, (distance(neighbour), neighbour))
                heapq.heappush(found, (-distance(neighbour), neighbour))
            if len(found) > ef:
                heapq.heappop(found)
    return [element for _, element in sorted(found, reverse=True)]
