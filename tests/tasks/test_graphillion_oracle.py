"""The challenge and the oracle of graphillion_sttt14: no machine, no Graphillion, small cases solved by hand."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment, evidence
from tasks.graphillion_sttt14 import graphillion_oracle as oracle
from tasks.graphillion_sttt14 import test_graphillion_sttt14 as task

SQUARE = oracle.Graph(
    vertices=("a", "b", "c", "d"),
    edges=(("a", "b", 1), ("b", "c", 5), ("c", "d", 1), ("d", "a", 9), ("a", "c", 7)),
    ends=("a", "c"),
    marked=(0, 3),
)
"""A square with one diagonal, on which the ends lie."""


@pytest.fixture(scope="module")
def challenge() -> task.GraphChallenge:
    return task.draw(5)


def right(challenge: task.GraphChallenge) -> dict[str, Any]:
    """The result of a deployment that does everything well."""
    answers = []
    for graph in challenge.graphs:
        paths = graph.paths()
        one, other = ({tuple(path) for path in paths if number in path} for number in graph.marked)
        answers.append(
            {
                "paths": paths,
                "lightest": [min(paths, key=graph.weight)],
                "others": 2 ** len(graph.edges) - len(paths),
                "algebra": [len(one | other), len(one & other), len(one - other)],
                "trees": graph.spanning_trees(),
                "matchings": graph.matchings(),
                "cliques": graph.triangles(),
                "reloaded": paths,
            }
        )
    return {
        "version": "0.98",
        "names": task.NAMES,
        "mapped": ["/home/agent/artifact/_graphillion.so"],
        "graphs": answers,
        "grid": {"paths": challenge.grid_paths, "took": 2.0},
        "walked": {"paths": challenge.small_grid_paths, "took": 0.5},
    }


def left(folder: Path, result: dict[str, Any]) -> Experiment:
    (folder / "result.json").write_text(json.dumps(result))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def test_a_square_by_hand() -> None:
    assert SQUARE.paths() == [[0, 1], [2, 3], [4]]
    assert [SQUARE.weight(path) for path in SQUARE.paths()] == [6, 10, 7]
    assert SQUARE.spanning_trees() == 8
    assert SQUARE.matchings() == 1 + 5 + 2
    assert SQUARE.triangles() == [[0, 1, 4], [2, 3, 4]]


@pytest.mark.parametrize(("size", "paths"), [(1, 2), (2, 12), (3, 184), (4, 8512), (5, 1_262_816)])
def test_paths_of_whole_grids_are_those_that_everyone_finds(size: int, paths: int) -> None:
    assert oracle.draw_grid(random.Random(1), size, 0).count_paths() == paths


@pytest.mark.parametrize("seed", range(5))
def test_counting_paths_of_a_grid_agrees_with_walking_them(seed: int) -> None:
    grid = oracle.draw_grid(random.Random(seed), 3, 4)
    graph = oracle.Graph(range(1, 17), [(u, v, 1) for u, v in grid.edges], grid.ends, (0, 1))
    assert grid.count_paths() == len(graph.paths())


def test_a_seed_draws_one_challenge_and_another_seed_another(challenge: task.GraphChallenge) -> None:
    assert task.draw(5).inputs == challenge.inputs
    assert task.draw(6).graphs != challenge.graphs


def test_vertices_are_called_what_is_hard_to_carry_over(challenge: task.GraphChallenge) -> None:
    small, large, words = (graph.vertices for graph in challenge.graphs)
    assert {0, 256, 512} <= set(large)
    assert all(isinstance(vertex, int) and vertex < 256 for vertex in small)
    assert {len(str(word)) for word in words} == {4}
    for graph in challenge.graphs:
        assert graph.spanning_trees() > 0
        assert len({frozenset(edge[:2]) for edge in graph.edges}) == oracle.EDGES
        assert all(u != v for u, v, _ in graph.edges)


RESULTS = (
    task.test_paths_are_those_that_walking_finds,
    task.test_spanning_trees_are_as_many_as_kirchhoff_says,
    task.test_matchings_and_cliques_are_those_of_brute_force,
    task.test_sets_are_complemented_united_and_intersected,
    task.test_the_first_by_weight_is_a_lightest_path,
    task.test_another_process_loads_what_was_dumped,
    task.test_all_paths_of_a_grid_are_counted,
    task.test_paths_are_found_faster_than_by_walking,
)


def test_a_right_result_passes(tmp_path: Path, challenge: task.GraphChallenge) -> None:
    for claim in RESULTS:
        claim(left(tmp_path, right(challenge)), challenge)


@pytest.mark.parametrize(
    ("claim", "wrong", "complaint"),
    [
        (0, ("paths", []), r"expected paths \[\[.*, got \[\]"),
        (1, ("trees", 0), r"expected spanning trees \d+, got 0"),
        (2, ("matchings", 1), r"expected matchings \d+, got 1"),
        (2, ("cliques", [[0, 1, 2]]), r"expected triangles .*, got \[\[0, 1, 2\]\]"),
        (3, ("others", 0), r"expected members of ~paths \d+, got 0"),
        (3, ("algebra", [1, 1, 99]), r"expected members of \|, & and - .*, got \[1, 1, 99\]"),
        (4, ("lightest", []), r"expected a path first .*, got \[\]"),
        (4, ("lightest", "heaviest"), r"expected a path of weight \d+ first, got one of \d+"),
        (5, ("reloaded", []), r"expected paths from a file .*, got \[\]"),
    ],
)
def test_each_wrong_answer_fails_its_claim(
    tmp_path: Path, challenge: task.GraphChallenge, claim: int, wrong: tuple[str, Any], complaint: str
) -> None:
    result, graph, (question, answer) = right(challenge), challenge.graphs[1], wrong
    result["graphs"][1][question] = [max(graph.paths(), key=graph.weight)] if answer == "heaviest" else answer
    with pytest.raises(AssertionError, match=complaint):
        RESULTS[claim](left(tmp_path, result), challenge)


def test_a_grid_without_its_last_path_fails(tmp_path: Path, challenge: task.GraphChallenge) -> None:
    result = right(challenge)
    result["grid"]["paths"] -= 1
    with pytest.raises(AssertionError, match="paths in the grid"):
        task.test_all_paths_of_a_grid_are_counted(left(tmp_path, result), challenge)


def test_a_slow_search_or_a_false_yardstick_fails(tmp_path: Path, challenge: task.GraphChallenge) -> None:
    result = right(challenge)
    result["grid"]["took"] = 1e6
    with pytest.raises(AssertionError, match="expected at least 1000 times"):
        task.test_paths_are_found_faster_than_by_walking(left(tmp_path, result), challenge)
    result = right(challenge)
    result["walked"]["paths"] = 1
    with pytest.raises(AssertionError, match="paths walked, got 1"):
        task.test_paths_are_found_faster_than_by_walking(left(tmp_path, result), challenge)


@pytest.mark.parametrize("seed", range(3))
def test_triangles_and_matchings_of_random_graphs(seed: int) -> None:
    """Once more, by trying all subgraphs of the right size."""
    rng = random.Random(seed)
    graph = oracle.draw_graph(rng, range(oracle.VERTICES))
    subsets = [chosen for size in range(5) for chosen in combinations(range(oracle.EDGES), size)]
    ends = {chosen: [end for number in chosen for end in graph.edges[number][:2]] for chosen in subsets}
    assert graph.matchings() == sum(len(set(used)) == len(used) for used in ends.values())
    assert graph.triangles() == [list(c) for c in subsets if len(c) == 3 and len(set(ends[c])) == 3]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"mapped": []}, r"expected one _graphillion in the experiment's process, got \[\]"),
        ({"version": "1.8"}, r"expected Graphillion 0.98, got '1.8'"),
        ({"names": [*task.NAMES, "_omp_num_threads"]}, r"expected _graphillion to define \[.*_omp_num_threads"),
    ],
)
def test_another_version_is_not_the_given_source(
    tmp_path: Path, challenge: task.GraphChallenge, monkeypatch: pytest.MonkeyPatch, wrong: Any, complaint: str
) -> None:
    machine: Any = None
    monkeypatch.setattr(evidence, "package_owner", lambda *_: None)
    monkeypatch.setattr(evidence, "changed_after_handover", lambda *_: True)
    result = right(challenge)
    task.test_the_extension_was_built_from_the_given_source(machine, machine, left(tmp_path, result))
    with pytest.raises(AssertionError, match=complaint):
        task.test_the_extension_was_built_from_the_given_source(machine, machine, left(tmp_path, result | wrong))


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        (("package_owner", "python3-graphillion"), "should be built here, .* is of the package python3-graphillion"),
        (("changed_after_handover", False), "is older than the hand-over"),
    ],
)
def test_an_extension_from_elsewhere_is_refused(
    tmp_path: Path,
    challenge: task.GraphChallenge,
    monkeypatch: pytest.MonkeyPatch,
    told: tuple[str, Any],
    complaint: str,
) -> None:
    machine: Any = None
    monkeypatch.setattr(evidence, "package_owner", lambda *_: None)
    monkeypatch.setattr(evidence, "changed_after_handover", lambda *_: True)
    monkeypatch.setattr(evidence, told[0], lambda *_: told[1])
    with pytest.raises(AssertionError, match=complaint):
        task.test_the_extension_was_built_from_the_given_source(machine, machine, left(tmp_path, right(challenge)))
