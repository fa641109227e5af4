"""The challenge and the oracle of hnsw_tpami18: no machine, no hnswlib, small cases solved by hand."""

from __future__ import annotations

import inspect
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.hnsw_tpami18 import hnsw_oracle as oracle
from tasks.hnsw_tpami18 import test_hnsw_tpami18 as task

Result = dict[str, Any]


def saved(vectors: oracle.Floats, labels: oracle.Ints, links: list[list[list[int]]], entry: int) -> bytes:
    """An index as hnswlib saves it, from the neighbours of each element on each of its levels."""
    row, m = 4 + 4 * 2 * oracle.M + 4 * vectors.shape[1] + 8, oracle.M
    at = 4 + 4 * 2 * m
    header = (0, len(vectors), len(vectors), row, row - 8, at, len(links[entry]) - 1, entry, m, 2 * m, m, 0.36, 100)
    parts = [oracle.HEADER.pack(*header)]
    for vector, label, levels in zip(vectors, labels.tolist(), links, strict=True):
        parts += [_link_list(levels[0], 2 * m), vector.astype("<f4").tobytes(), struct.pack("<q", label)]
    for levels in links:
        upper = b"".join(_link_list(level, m) for level in levels[1:])
        parts += [struct.pack("<I", len(upper)), upper]
    return b"".join(parts)


def _link_list(neighbours: list[int], room: int) -> bytes:
    return struct.pack("<I", len(neighbours)) + np.array(neighbours + [0] * (room - len(neighbours)), "<u4").tobytes()


def near_neighbour_index(problem: oracle.Problem) -> bytes:
    """A graph in layers that links each vector to its nearest in each of them."""
    rng = np.random.default_rng(1)
    levels = np.minimum((-np.log(rng.random(oracle.BASE)) / np.log(oracle.M)).astype(int), 3)
    links: list[list[list[int]]] = [[] for _ in problem.base]
    for level in range(levels.max() + 1):
        (members,) = np.nonzero(levels >= level)
        vectors = problem.base[members]
        squares = (vectors**2).sum(1)
        near = np.argsort(squares[:, None] + squares - 2 * vectors @ vectors.T, axis=1)
        width = oracle.M if level else 2 * oracle.M
        for member, row in zip(members, near, strict=True):
            links[member].append(members[row[1 : width + 1]].tolist())
    return saved(problem.base, problem.labels, links, int(levels.argmax()))


def answers(points: oracle.Floats, vectors: oracle.Floats, labels: oracle.Ints, found: oracle.Ints) -> Result:
    place = {label: number for number, label in enumerate(labels.tolist())}
    every = oracle.squared_distances(points, vectors)
    distances = [[row[place[label]] for label in labels] for row, labels in zip(every, found.tolist(), strict=True)]
    return {"labels": found.tolist(), "distances": distances}


@pytest.fixture(scope="module")
def challenge() -> task.NeighbourChallenge:
    return task.draw(3)


@pytest.fixture(scope="module")
def index(challenge: task.NeighbourChallenge) -> bytes:
    return near_neighbour_index(challenge.problem)


@pytest.fixture(scope="module")
def right(challenge: task.NeighbourChallenge, index: bytes) -> Result:
    """The result of a deployment that does everything well: exact where the search is wide."""
    problem, graph = challenge.problem, oracle.read_graph(index)

    def exact(points: oracle.Floats, vectors: oracle.Floats, labels: oracle.Ints) -> Result:
        return answers(points, vectors, labels, oracle.nearest(points, vectors, labels))

    search = {str(oracle.EFS[-1]): exact(problem.queries, problem.base, problem.labels)}
    for ef in oracle.EFS[:-1]:
        found = np.array([oracle.walk(graph, query, ef)[0] for query in problem.queries])
        search[str(ef)] = answers(problem.queries, problem.base, problem.labels, found)
    mask, kept = np.isin(problem.labels, problem.allowed), ~np.isin(problem.labels, problem.deleted)
    vectors = np.concatenate([problem.base[kept], problem.newcomers])
    labels = np.concatenate([problem.labels[kept], problem.new_labels])
    return {
        "search": {str(ef): search[str(ef)] for ef in oracle.EFS},
        "reload": {**search[str(oracle.EFS[-1])], "kept": problem.base[: oracle.K].tolist()},
        "filtered": exact(problem.queries, problem.base[mask], problem.labels[mask]),
        "replaced": {
            "count": oracle.BASE,
            "queries": exact(problem.queries, vectors, labels),
            "newcomers": exact(problem.newcomers, vectors, labels),
        },
        "mapped": ["/home/agent/artifact/hnswlib.cpython-311-x86_64-linux-gnu.so"],
    }


def left(folder: Path, result: Result, index: bytes) -> Experiment:
    """An experiment that left this."""
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "index.bin").write_bytes(index)
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def ask(check: Callable[..., None], experiment: Experiment, challenge: task.NeighbourChallenge) -> None:
    fixtures = {"experiment": experiment, "challenge": challenge}
    check(**{name: fixtures[name] for name in inspect.signature(check).parameters})


def test_recall_by_hand() -> None:
    assert oracle.recall(np.array([[1, 2, 3, 4], [9, 8, 7, 6]]), np.array([[4, 3, 2, 0], [6, 7, 8, 9]])) == 0.875


def test_nearest_and_distances_by_hand() -> None:
    vectors = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    assert oracle.squared_distances(np.zeros((1, 2)), vectors).tolist() == [[0, 25, 1]]
    assert oracle.nearest(np.zeros((1, 2)), vectors, np.array([7, 8, 9])).tolist() == [[7, 9, 8]]


def test_a_walk_by_hand_comes_down_and_along_a_chain() -> None:
    """Vectors 0 to 20 in a row; 0 and 16 are in the upper layer; the search starts at 0."""
    line = np.zeros((21, oracle.DIMENSIONS))
    line[:, 0] = range(21)
    links: list[list[list[int]]] = [[[near for near in (i - 1, i + 1) if 0 <= near <= 20]] for i in range(21)]
    links[0].append([16])
    links[16].append([0])
    graph = oracle.read_graph(saved(line, np.arange(100, 121), links, entry=0))
    assert graph.levels.sum() == 2
    found, seen = oracle.walk(graph, line[18] + 0.01, ef=3)
    assert found == [118, 119, 117]
    assert seen == 7, "0 and 16 above, then 15, 17, 18, 19 and 20"


def test_a_seed_draws_one_challenge_and_another_seed_another() -> None:
    assert task.draw(5).inputs == task.draw(5).inputs
    assert task.draw(5).inputs["base.npy"] != task.draw(6).inputs["base.npy"]


def test_what_is_sent_is_what_is_judged(tmp_path: Path, challenge: task.NeighbourChallenge) -> None:
    (tmp_path / "base.npy").write_bytes(challenge.inputs["base.npy"])
    assert (np.load(tmp_path / "base.npy") == challenge.problem.base).all()


CHECKS = (
    task.test_nearly_all_neighbours_are_found,
    task.test_distances_are_those_of_the_vectors,
    task.test_the_saved_index_is_a_small_world_in_layers,
    task.test_a_search_looks_at_a_small_part_of_the_vectors,
    task.test_a_saved_index_answers_as_before,
    task.test_a_filter_lets_only_its_labels_through,
    task.test_new_vectors_take_the_place_of_deleted_ones,
)


def test_a_right_result_passes(tmp_path: Path, challenge: task.NeighbourChallenge, right: Result, index: bytes) -> None:
    experiment = left(tmp_path, right, index)
    for check in CHECKS:
        ask(check, experiment, challenge)


def always_exact(result: Result) -> None:
    result["search"] = dict.fromkeys(result["search"], result["search"]["200"])


def poor(result: Result) -> None:
    for row in result["search"]["200"]["labels"]:
        row[5:] = range(-5, 0)


def root_distances(result: Result) -> None:
    distances = result["search"]["40"]["distances"]
    result["search"]["40"]["distances"] = np.sqrt(distances).tolist()


def unsorted(result: Result) -> None:
    for row in (*result["search"]["10"]["labels"], *result["search"]["10"]["distances"]):
        row.reverse()


def unknown_label(result: Result) -> None:
    result["search"]["10"]["labels"][0][0] = -3


def other_answers(result: Result) -> None:
    result["search"]["40"] = result["search"]["10"]


def reloaded_otherwise(result: Result) -> None:
    result["reload"]["labels"][7].reverse()


def filter_ignored(result: Result) -> None:
    result["filtered"] = result["search"]["200"]


def no_filter(result: Result) -> None:
    result["filtered"] = {"error": "TypeError: knn_query(): incompatible function arguments"}


def deleted_found(result: Result) -> None:
    result["replaced"]["queries"] = result["search"]["200"]


def too_many(result: Result) -> None:
    result["replaced"]["count"] = oracle.BASE + oracle.NEW


def few_neighbours(result: Result) -> None:
    result["filtered"]["labels"] = [row[:3] for row in result["filtered"]["labels"]]


@pytest.mark.parametrize(
    ("change", "check", "complaint"),
    [
        (always_exact, task.test_nearly_all_neighbours_are_found, "expected narrow searches to find less"),
        (poor, task.test_nearly_all_neighbours_are_found, "expected a recall of at least 0.97 in the widest"),
        (root_distances, task.test_distances_are_those_of_the_vectors, "ef = 40: expected squared distances"),
        (unsorted, task.test_distances_are_those_of_the_vectors, "ef = 10: expected distances in ascending order"),
        (unknown_label, task.test_distances_are_those_of_the_vectors, r"ef = 10: expected labels .* got \[-3\] too"),
        (other_answers, task.test_a_search_looks_at_a_small_part_of_the_vectors, "answers of the paper's search"),
        (reloaded_otherwise, task.test_a_saved_index_answers_as_before, "others came"),
        (filter_ignored, task.test_a_filter_lets_only_its_labels_through, "labels that the filter lets through"),
        (no_filter, task.test_a_filter_lets_only_its_labels_through, "filtered: expected answers, .* TypeError"),
        (deleted_found, task.test_new_vectors_take_the_place_of_deleted_ones, "queries: expected no deleted labels"),
        (too_many, task.test_new_vectors_take_the_place_of_deleted_ones, "expected 4000 elements .* got 4400"),
        (few_neighbours, task.test_a_filter_lets_only_its_labels_through, r"expected 10 neighbours .* \(100, 3\)"),
    ],
)
def test_each_wrong_result_fails(
    tmp_path: Path,
    challenge: task.NeighbourChallenge,
    right: Result,
    index: bytes,
    *,
    change: Callable[[Result], None],
    check: Callable[..., None],
    complaint: str,
) -> None:
    result = json.loads(json.dumps(right))  # a deep copy would keep what is shared
    change(result)
    with pytest.raises(AssertionError, match=complaint):
        ask(check, left(tmp_path, result, index), challenge)


def one_layer(problem: oracle.Problem) -> bytes:
    return saved(problem.base, problem.labels, [[[(i + 1) % oracle.BASE]] for i in range(oracle.BASE)], 0)


def cut_off(problem: oracle.Problem) -> bytes:
    return one_layer(problem)[: oracle.BASE * 100]


def link_into_nothing(problem: oracle.Problem) -> bytes:
    return saved(problem.base, problem.labels, [[[oracle.BASE]]] * oracle.BASE, 0)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (one_layer, "expected 1 of 16 elements above the bottom, it is 0.00"),
        (cut_off, "not a saved index"),
        (link_into_nothing, "links to elements that are not there"),
    ],
)
def test_no_hierarchical_graph_is_refused(
    tmp_path: Path,
    challenge: task.NeighbourChallenge,
    right: Result,
    make: Callable[[oracle.Problem], bytes],
    complaint: str,
) -> None:
    experiment = left(tmp_path, right, make(challenge.problem))
    with pytest.raises(AssertionError, match=complaint):
        ask(task.test_the_saved_index_is_a_small_world_in_layers, experiment, challenge)
