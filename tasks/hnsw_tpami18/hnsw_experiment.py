"""Builds and searches the indexes of the challenge with the deployed hnswlib; all goes to result.json and index.bin.

Each part stands for itself: one that fails leaves its error. It needs numpy beside hnswlib.
"""

import json
from pathlib import Path
from typing import Any

import hnswlib  # type: ignore[import-untyped]  # the deployment's, on the machine
import numpy

challenge = json.loads(Path("challenge.json").read_text())
base, queries, newcomers = (numpy.load(f"{name}.npy") for name in ("base", "queries", "newcomers"))
labels = numpy.array(challenge["labels"])
K = challenge["k"]


def built(**options: Any) -> "hnswlib.Index":
    """An index of the base vectors."""
    index = hnswlib.Index(space="l2", dim=base.shape[1])
    index.init_index(max_elements=len(base), M=challenge["m"], ef_construction=challenge["ef_construction"], **options)
    index.add_items(base, labels)
    return index


def answers(index: "hnswlib.Index", points: Any, ef: int, **options: Any) -> "dict[str, Any]":
    """The nearest labels of each point with their distances."""
    index.set_ef(ef)
    found, distances = index.knn_query(points, k=K, **options)
    return {"labels": found.tolist(), "distances": distances.tolist()}


def search() -> "dict[str, Any]":
    """Answers by breadth of the search; the index is saved."""
    index = built()
    index.save_index("index.bin")
    return {str(ef): answers(index, queries, ef) for ef in challenge["efs"]}


def reload() -> "dict[str, Any]":
    """Answers of the saved index, and vectors as it keeps them."""
    index = hnswlib.Index(space="l2", dim=base.shape[1])
    index.load_index("index.bin")
    kept = index.get_items(labels[:K], return_type="list")
    return {**answers(index, queries, max(challenge["efs"])), "kept": kept}


def filtered() -> "dict[str, Any]":
    """Answers among the labels that the filter lets through."""
    allowed = set(challenge["allowed"])
    return answers(built(), queries, max(challenge["efs"]), num_threads=1, filter=lambda label: label in allowed)


def replaced() -> "dict[str, Any]":
    """Answers after some vectors made room for new ones in a full index."""
    index = built(allow_replace_deleted=True)
    for label in challenge["deleted"]:
        index.mark_deleted(label)
    index.add_items(newcomers, numpy.array(challenge["new_labels"]), replace_deleted=True)
    return {
        "count": index.get_current_count(),
        "queries": answers(index, queries, max(challenge["efs"])),
        "newcomers": answers(index, newcomers, max(challenge["efs"])),
    }


result: "dict[str, Any]" = {}
for part in (search, reload, filtered, replaced):
    try:
        result[part.__name__] = part()
    except Exception as error:
        print(f"the part {part.__name__} did not work; see result.json")
        result[part.__name__] = {"error": f"{type(error).__name__}: {error}"}
maps = [line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
result["mapped"] = sorted({path for path in maps if "hnswlib" in path})
Path("result.json").write_text(json.dumps(result))
