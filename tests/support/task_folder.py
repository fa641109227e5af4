"""Writes whole task folders for tests, right in every key unless told otherwise."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

FORM: dict[str, Any] = {
    "title": "Toy, deployed and judged",
    "paper": {"title": "On Toys", "venue": "VENUE", "year": 2020, "reference": "doi:10.1000/toy"},
    "source": {
        "registry": "pypi",
        "name": "toy",
        "version": "1.0",
        "filename": "toy-1.0.tar.gz",
        "sha256": "0" * 64,
    },
    "domain": "systems",
    "languages": ["C"],
    "difficulty": "easy",
    "labels": ["smoke"],
    "machine": {"cpus": 1, "memory_gb": 1, "disk_gb": 4},
    "budget": {"agent_s": 600, "experiment_s": 60},
}

CHECKS = """\
def test_it_works(layer1):
    pass
"""


def write_task(root: Path, name: str = "toy_venue20", checks: str = CHECKS, **changes: Any) -> Path:
    """Make a task folder; a change `budget__agent_s=5` replaces that key, and the value None removes it."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text(yaml.safe_dump(changed(**changes), sort_keys=False))
    for file in ("paper.md", "instruction.md", "reference.sh", "shallow.sh"):
        (folder / file).write_text(f"{file} of {name}\n")
    (folder / f"test_{name}.py").write_text(checks)
    return folder


def changed(**changes: Any) -> dict[str, Any]:
    """The form with some keys replaced or removed."""
    form = copy.deepcopy(FORM)
    for path, value in changes.items():
        *above, key = path.split("__")
        place = form
        for part in above:
            place = place[part]
        if value is None:
            place.pop(key)
        else:
            place[key] = value
    return form
