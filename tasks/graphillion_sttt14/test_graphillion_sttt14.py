"""Graphillion 0.98, ported and built from the given source, holds very large sets of graphs, with the right members.

Graphs and grids are drawn anew. The host finds the same sets by walking, by brute force, and by Kirchhoff's theorem.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.graphillion_sttt14 import graphillion_oracle as oracle

NAMES = ["_elem_limit", "_graphs", "_num_elems", "_show_messages", "load", "loads", "setset", "setset_iterator"]
"""What the extension of this version defines; later versions define more."""
GRID, MISSING, SMALL_GRID = 7, 5, 4
"""Squares on a side of the grid of which all paths are found, and of the one whose paths are walked."""
MORE_PER_SECOND = 1_000
"""Measured: a million times as many paths per second as by walking. A list of paths can't even reach ten times."""


@dataclass(frozen=True)
class GraphChallenge(Challenge):
    """The graphs, and the number of paths of both grids."""

    graphs: tuple[oracle.Graph, ...]
    grid_paths: int
    small_grid_paths: int


def draw(seed: int) -> GraphChallenge:
    rng = random.Random(seed)
    graphs = tuple(oracle.draw_graph(rng, labels) for labels in oracle.draw_labels(rng))
    grid, small = oracle.draw_grid(rng, GRID, MISSING), oracle.draw_grid(rng, SMALL_GRID, 1)
    asked = {"graphs": list(map(asdict, graphs)), "grid": asdict(grid), "small grid": asdict(small)}
    return GraphChallenge(
        command="python3 graph_experiment.py",
        inputs={"graph_experiment.py": oracle.driver(), "challenge.json": json.dumps(asked).encode()},
        outputs=("result.json",),
        graphs=graphs,
        grid_paths=grid.count_paths(),
        small_grid_paths=small.count_paths(),
    )


def test_the_extension_was_built_from_the_given_source(
    server: Host, agent_run: AgentRun, experiment: Experiment
) -> None:
    """The `_graphillion` that the experiment loaded is of no package, newer than the hand-over, and of version 0.98."""
    result = _result(experiment)
    mapped = result["mapped"]
    assert len(mapped) == 1, f"expected one _graphillion in the experiment's process, got {mapped}; see result.json"
    owner = evidence.package_owner(server, mapped[0])
    assert owner is None, f"Graphillion should be built here, but {mapped[0]} is of the package {owner}"
    assert evidence.changed_after_handover(server, mapped[0], agent_run), f"{mapped[0]} is older than the hand-over"
    assert result["version"] == "0.98", f"expected Graphillion 0.98, got {result['version']!r}; see result.json"
    assert result["names"] == NAMES, f"expected _graphillion to define {NAMES}, it defines {result['names']!r:.500}"


def test_paths_are_those_that_walking_finds(experiment: Experiment, challenge: GraphChallenge) -> None:
    """Whatever vertices are called, each simple path between both ends is in the set, and nothing else."""
    for graph, got in _answers(experiment, challenge, "paths"):
        assert got == graph.paths(), _differ("paths", graph, graph.paths(), got)


def test_spanning_trees_are_as_many_as_kirchhoff_says(experiment: Experiment, challenge: GraphChallenge) -> None:
    """The set of spanning trees is as large as a cofactor of the Laplacian."""
    for graph, got in _answers(experiment, challenge, "trees"):
        assert got == graph.spanning_trees(), _differ("spanning trees", graph, graph.spanning_trees(), got)


def test_matchings_and_cliques_are_those_of_brute_force(experiment: Experiment, challenge: GraphChallenge) -> None:
    """Subgraphs of degree at most one are as many as there are, and cliques of three vertices are all triangles."""
    for graph, got in _answers(experiment, challenge, "matchings"):
        assert got == graph.matchings(), _differ("matchings", graph, graph.matchings(), got)
    for graph, got in _answers(experiment, challenge, "cliques"):
        assert got == graph.triangles(), _differ("triangles", graph, graph.triangles(), got)


def test_sets_are_complemented_united_and_intersected(experiment: Experiment, challenge: GraphChallenge) -> None:
    """`~` leaves all other subgraphs; `|`, `&` and `-` of the paths through two edges hold what they must."""
    for graph, got in _answers(experiment, challenge, "others"):
        expected = 2 ** len(graph.edges) - len(graph.paths())
        assert got == expected, _differ("members of ~paths", graph, expected, got)
    for graph, got in _answers(experiment, challenge, "algebra"):
        one, other = ({tuple(path) for path in graph.paths() if number in path} for number in graph.marked)
        sizes = [len(one | other), len(one & other), len(one - other)]
        assert got == sizes, _differ("members of |, & and -", graph, sizes, got)


def test_the_first_by_weight_is_a_lightest_path(experiment: Experiment, challenge: GraphChallenge) -> None:
    """`min_iter` begins with a path of which none is lighter."""
    for graph, got in _answers(experiment, challenge, "lightest"):
        paths = graph.paths()
        assert got in [[path] for path in paths], _differ("a path first", graph, graph.ends, got)
        least, weight = min(map(graph.weight, paths)), graph.weight(got[0])
        assert weight == least, f"expected a path of weight {least} first, got one of {weight}; see result.json"


def test_another_process_loads_what_was_dumped(experiment: Experiment, challenge: GraphChallenge) -> None:
    """A set comes back from a file as it was, in a process that did not make it."""
    for graph, got in _answers(experiment, challenge, "reloaded"):
        assert got == graph.paths(), _differ("paths from a file", graph, graph.paths(), got)


def test_all_paths_of_a_grid_are_counted(experiment: Experiment, challenge: GraphChallenge) -> None:
    """The paper's example: paths from corner to corner, thousands of millions of them, to the last one."""
    got = _result(experiment)["grid"]["paths"]
    assert got == challenge.grid_paths, f"expected {challenge.grid_paths:,} paths in the grid, got {got!r}"


def test_paths_are_found_faster_than_by_walking(experiment: Experiment, challenge: GraphChallenge) -> None:
    """Paths per second against a program that walks each of them, same machine, same run."""
    result = _result(experiment)
    walked = result["walked"]["paths"]
    assert walked == challenge.small_grid_paths, f"expected {challenge.small_grid_paths} paths walked, got {walked}"
    found, by_walking = (result[way]["paths"] / result[way]["took"] for way in ("grid", "walked"))
    assert found >= MORE_PER_SECOND * by_walking, (
        f"expected at least {MORE_PER_SECOND} times the {by_walking:.3g} paths/s of walking, got {found:.3g} paths/s; "
        "see result.json"
    )


def _result(experiment: Experiment) -> dict[str, Any]:
    result = experiment.json("result.json")
    assert isinstance(result, dict), f"expected an object in result.json, got {result!r:.200}"
    return result


def _answers(experiment: Experiment, challenge: GraphChallenge, question: str) -> list[tuple[oracle.Graph, Any]]:
    answers = [answer[question] for answer in _result(experiment)["graphs"]]
    return list(zip(challenge.graphs, answers, strict=True))


def _differ(what: str, graph: oracle.Graph, expected: Any, got: Any) -> str:
    return f"vertices {graph.vertices}: expected {what} {expected!r:.200}, got {got!r:.200}; see result.json"
