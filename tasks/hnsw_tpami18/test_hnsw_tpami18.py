"""hnswlib, built from the given source, finds nearly all nearest neighbours of fresh vectors while it looks at a few.

Vectors are drawn anew. The host knows the exact neighbours by comparing with all, and walks through the saved graph by
the paper's own search to see how much of it a search needs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.hnsw_tpami18 import hnsw_oracle as oracle

CLASS = b"N7hnswlib15HierarchicalNSWIfEE"
"""The index as C++ names its type in a compiled module, stripped or not."""
RECALL = 0.97
"""In the widest search: 0.999 or more in six draws."""
RISE = 0.15
"""From the narrowest search to the widest: 0.2 or more in six draws."""
CLOSE = 1e-4
"""Relative error of single-precision distances."""
PART = 0.3
"""Most of the vectors that a search of middle width may look at on average: 0.18 in six draws."""
WALKS_ALIKE = 0.99
"""Share of answers that are those of the walk: all in six draws, but vectors at equal distances may change places."""


@dataclass(frozen=True)
class NeighbourChallenge(Challenge):
    """The vectors stay with their truth."""

    problem: oracle.Problem


def draw(seed: int) -> NeighbourChallenge:
    problem = oracle.draw_problem(seed)
    asked = {
        "labels": problem.labels.tolist(),
        "k": oracle.K,
        "m": oracle.M,
        "ef_construction": oracle.EF_CONSTRUCTION,
        "efs": oracle.EFS,
        "allowed": problem.allowed.tolist(),
        "deleted": problem.deleted.tolist(),
        "new_labels": problem.new_labels.tolist(),
    }
    return NeighbourChallenge(
        command="python3 hnsw_experiment.py",
        inputs={
            "hnsw_experiment.py": oracle.driver(),
            "challenge.json": json.dumps(asked).encode(),
            "base.npy": oracle.npy(problem.base),
            "queries.npy": oracle.npy(problem.queries),
            "newcomers.npy": oracle.npy(problem.newcomers),
        },
        outputs=("result.json", "index.bin"),
        problem=problem,
    )


def test_the_module_was_built_from_the_given_source(
    server: Host, agent_run: AgentRun, experiment: Experiment, challenge: NeighbourChallenge
) -> None:
    """The module that the experiment loaded is fresh, of no package, and has what came with this version."""
    mapped = experiment.json("result.json")["mapped"]
    assert len(mapped) == 1, f"expected one hnswlib in the experiment's process, got {mapped}; see experiment.log"
    owner = evidence.package_owner(server, mapped[0])
    assert owner is None, f"hnswlib should be built here, but {mapped[0]} is of the package {owner}"
    assert evidence.changed_after_handover(server, mapped[0], agent_run), f"{mapped[0]} is older than the hand-over"
    assert evidence.contains(server, mapped[0], CLASS), f"{mapped[0]} does not hold hnswlib's index"
    kept = _part(experiment, "reload")["kept"]
    expected = challenge.problem.base[: oracle.K].tolist()
    assert kept == expected, (
        "expected get_items with return_type='list', new in 0.8, to give the vectors that were added"
    )


def test_nearly_all_neighbours_are_found(experiment: Experiment, challenge: NeighbourChallenge) -> None:
    """Recall is high in a wide search, and is bought by its width: the paper's trade-off."""
    exact = _exact(challenge.problem)
    recalls = [oracle.recall(_labels(_answers(experiment, "search", ef)), exact) for ef in oracle.EFS]
    shown = dict(zip(oracle.EFS, recalls, strict=True))
    assert recalls[-1] >= RECALL, f"expected a recall of at least {RECALL} in the widest search, by ef it is {shown}"
    assert recalls == sorted(recalls), f"expected the recall to grow with ef, it is {shown}"
    assert recalls[-1] - recalls[0] >= RISE, f"expected narrow searches to find less, by ef the recall is {shown}"


def test_distances_are_those_of_the_vectors(experiment: Experiment, challenge: NeighbourChallenge) -> None:
    """Each answer comes with its squared distance, and in order."""
    problem = challenge.problem
    place = {label: number for number, label in enumerate(problem.labels.tolist())}
    every = oracle.squared_distances(problem.queries, problem.base)
    for ef in oracle.EFS:
        answers = _answers(experiment, "search", ef)
        labels, got = _labels(answers), np.asarray(answers["distances"], dtype=float)
        strange = sorted(set(labels.ravel().tolist()) - place.keys())
        assert not strange, f"ef = {ef}: expected labels that were added, got {strange[:5]} too"
        expected = np.array([[row[place[label]] for label in found] for row, found in zip(every, labels, strict=True)])
        assert got.shape == expected.shape, f"ef = {ef}: expected {expected.shape} distances, got {got.shape}"
        error = float(np.max(np.abs(got - expected) / expected))
        assert error < CLOSE, f"ef = {ef}: expected squared distances, they differ by up to {error:.2g} of themselves"
        assert (np.diff(got) >= 0).all(), f"ef = {ef}: expected distances in ascending order; see result.json"


def test_the_saved_index_is_a_small_world_in_layers(experiment: Experiment, challenge: NeighbourChallenge) -> None:
    """As the paper builds it: all vectors in the bottom layer, one of M in the next, and bounded numbers of links."""
    graph = oracle.read_graph(experiment.bytes("index.bin"))
    assert sorted(graph.labels) == sorted(challenge.problem.labels), "index.bin: expected all labels that were added"
    raised = float((graph.levels > 0).mean()) * oracle.M
    assert 0.6 < raised < 1.4, f"index.bin: expected 1 of {oracle.M} elements above the bottom, it is {raised:.2f}"
    widest = [
        max(len(level) for levels in graph.links for level in levels[low:high]) for low, high in ((0, 1), (1, 99))
    ]
    bounds = [2 * oracle.M, oracle.M]
    assert np.less_equal(widest, bounds).all(), f"index.bin: expected at most {bounds} links, there are {widest}"


def test_a_search_looks_at_a_small_part_of_the_vectors(experiment: Experiment, challenge: NeighbourChallenge) -> None:
    """The paper's claim: walked through by its algorithm, the saved graph gives the same answers for little work."""
    graph, ef = oracle.read_graph(experiment.bytes("index.bin")), oracle.EFS[1]
    walks = [oracle.walk(graph, query, ef) for query in challenge.problem.queries]
    expected = np.array([labels for labels, _ in walks])
    alike = oracle.recall(_labels(_answers(experiment, "search", ef)), expected)
    assert alike >= WALKS_ALIKE, f"ef = {ef}: expected the answers of the paper's search in index.bin, {alike:.3f} are"
    part = float(np.mean([seen for _, seen in walks])) / oracle.BASE
    assert part <= PART, f"ef = {ef}: expected a search to look at {PART:.0%} of the vectors at most, it was {part:.0%}"


def test_a_saved_index_answers_as_before(experiment: Experiment) -> None:
    """Loaded again, it gives the same neighbours at the same distances."""
    before, after = _answers(experiment, "search", oracle.EFS[-1]), _part(experiment, "reload")
    assert (_labels(after) == _labels(before)).all(), "expected the labels of the index that was saved, others came"
    assert after["distances"] == before["distances"], "expected the distances of the index that was saved, others came"


def test_a_filter_lets_only_its_labels_through(experiment: Experiment, challenge: NeighbourChallenge) -> None:
    """And among those the nearest are found."""
    problem = challenge.problem
    found = _labels(_part(experiment, "filtered"))
    others = np.setdiff1d(found, problem.allowed)
    assert not len(others), f"expected labels that the filter lets through, got {others[:5]} too"
    mask = np.isin(problem.labels, problem.allowed)
    recall = oracle.recall(found, oracle.nearest(problem.queries, problem.base[mask], problem.labels[mask]))
    assert recall >= RECALL, f"expected a recall of at least {RECALL} under the filter, got {recall:.3f}"


def test_new_vectors_take_the_place_of_deleted_ones(experiment: Experiment, challenge: NeighbourChallenge) -> None:
    """A full index takes as many vectors as were deleted; those are never found again, the new ones are."""
    problem, part = challenge.problem, _part(experiment, "replaced")
    assert part["count"] == oracle.BASE, f"expected {oracle.BASE} elements after the replacement, got {part['count']}"
    kept = ~np.isin(problem.labels, problem.deleted)
    vectors = np.concatenate([problem.base[kept], problem.newcomers])
    labels = np.concatenate([problem.labels[kept], problem.new_labels])
    for name, points in (("queries", problem.queries), ("newcomers", problem.newcomers)):
        found = _labels(part[name])
        gone = np.intersect1d(found, problem.deleted)
        assert not len(gone), f"{name}: expected no deleted labels, got {gone[:5]}"
        recall = oracle.recall(found, oracle.nearest(points, vectors, labels))
        assert recall >= RECALL, (
            f"{name}: expected a recall of at least {RECALL} after the replacement, got {recall:.3f}"
        )


def _exact(problem: oracle.Problem) -> oracle.Ints:
    return oracle.nearest(problem.queries, problem.base, problem.labels)


def _part(experiment: Experiment, name: str) -> dict[str, Any]:
    """What one part of the experiment found."""
    result = experiment.json("result.json")
    part = result.get(name) if isinstance(result, dict) else None
    assert isinstance(part, dict), f"expected a part {name!r} in result.json, got {part!r:.200}"
    assert "error" not in part, f"{name}: expected answers, the experiment met {part['error']}; see result.json"
    return part


def _answers(experiment: Experiment, part: str, ef: int) -> dict[str, Any]:
    answers = _part(experiment, part).get(str(ef))
    assert isinstance(answers, dict), f"{part}: expected answers for ef = {ef}, got {answers!r:.200}"
    return answers


def _labels(answers: dict[str, Any]) -> oracle.Ints:
    labels = np.asarray(answers["labels"], dtype=np.int64)
    assert labels.shape[1:] == (oracle.K,), f"expected {oracle.K} neighbours for each query, got {labels.shape}"
    return labels
