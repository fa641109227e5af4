"""Asks the deployed graphillion about the graphs in challenge.json; answers go to result.json, edges by their numbers.

Called as `reload NUMBER`, it loads what a first process had dumped for that graph, and prints the edges of each member.
It runs on any deployed Python from 3.6 on.
"""

import json
import sys
import time
from itertools import islice
from pathlib import Path
from subprocess import PIPE, run
from typing import Any

import _graphillion  # type: ignore[import-not-found]  # the deployment's, on the machine
import graphillion  # type: ignore[import-not-found]
from graphillion import GraphSet

challenge = json.loads(Path("challenge.json").read_text())


def members(graphs: "Any", edges: "list[list[Any]]") -> "list[list[int]]":
    """Each graph of a set as the sorted numbers of its edges."""
    number = {frozenset(edge[:2]): place for place, edge in enumerate(edges)}
    return sorted(sorted(number[frozenset(edge[:2])] for edge in graph) for graph in graphs)


def universe(edges: "list[list[Any]]") -> "None":
    GraphSet.set_universe([tuple(edge) for edge in edges])


def explore(place: "int", graph: "dict[str, Any]") -> "dict[str, Any]":
    """What the sets of one weighted graph hold."""
    edges, (start, end) = graph["edges"], graph["ends"]
    universe(edges)
    paths = GraphSet.paths(start, end)
    one, other = (paths.including(tuple(edges[number][:2])) for number in graph["marked"])
    with Path(f"paths-{place}").open("w") as file:
        paths.dump(file)
    again = run([sys.executable, __file__, "reload", str(place)], check=True, stdout=PIPE)
    return {
        "paths": members(paths, edges),
        "lightest": members(islice(paths.min_iter(), 1), edges),
        "others": len(~paths),
        "algebra": [len(one | other), len(one & other), len(one - other)],
        "trees": len(GraphSet.trees(start, is_spanning=True)),
        "matchings": len(GraphSet.graphs(degree_constraints={vertex: range(2) for vertex in graph["vertices"]})),
        "cliques": members(GraphSet.cliques(3), edges),
        "reloaded": json.loads(again.stdout.splitlines()[-1]),
    }


def count_grid(grid: "dict[str, Any]") -> "dict[str, Any]":
    """How many paths a grid has from corner to corner, and how long it took to find all of them."""
    universe(grid["edges"])
    begun = time.perf_counter()
    paths = GraphSet.paths(*grid["ends"])
    return {"paths": len(paths), "took": time.perf_counter() - begun}


def walk_grid(grid: "dict[str, Any]") -> "dict[str, Any]":
    """The same by walking each path on its own, without graphillion."""
    beside = {}  # type: dict[int, list[int]]
    for u, v in grid["edges"]:
        beside.setdefault(u, []).append(v)
        beside.setdefault(v, []).append(u)
    start, end = grid["ends"]

    def walk(here: "int", visited: "set[int]") -> "int":
        if here == end:
            return 1
        return sum(walk(there, visited | {there}) for there in beside[here] if there not in visited)

    begun = time.perf_counter()
    paths = walk(start, {start})
    return {"paths": paths, "took": time.perf_counter() - begun}


if sys.argv[1:2] == ["reload"]:
    edges = challenge["graphs"][int(sys.argv[2])]["edges"]
    universe(edges)
    with Path(f"paths-{sys.argv[2]}").open() as file:
        print(json.dumps(members(GraphSet.load(file), edges)))
    raise SystemExit

maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
result = {
    "version": graphillion.__version__,
    "names": sorted(name for name in dir(_graphillion) if not name.startswith("__")),
    "mapped": sorted({fields[5] for fields in maps if "_graphillion" in fields[-1]}),
    "graphs": [explore(place, graph) for place, graph in enumerate(challenge["graphs"])],
    "grid": count_grid(challenge["grid"]),
    "walked": walk_grid(challenge["small grid"]),
}
Path("result.json").write_text(json.dumps(result))
print({key: result[key] for key in result if key != "graphs"})
