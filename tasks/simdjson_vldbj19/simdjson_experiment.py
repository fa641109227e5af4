"""Runs on the machine under test: calls `jsonstat` on every file of the challenge and keeps what it said.

Standard library only. It judges nothing; what it measures of Python's own parser is the baseline for the speed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path


def call(*arguments: str) -> dict[str, object]:
    """Exit status, output and errors of one call; a crash by signal N has status -N."""
    try:
        done = subprocess.run(["jsonstat", *arguments], capture_output=True, check=False)
    except OSError as error:
        return {"status": None, "out": "", "err": str(error)}
    return {
        "status": done.returncode,
        "out": done.stdout.decode(errors="replace")[:10_000],
        "err": done.stderr.decode(errors="replace")[-1_000:],
    }


def loaded_libraries() -> list[str]:
    """Shared libraries of simdjson that `jsonstat` is bound to, in this environment."""
    bound = subprocess.run(["ldd", shutil.which("jsonstat") or ""], capture_output=True, text=True, check=False)
    return re.findall(r"=> (/\S*simdjson\S*)", bound.stdout)


def python_gigabytes_per_second(path: str, repeats: int) -> float:
    """How fast Python's own parser reads the same bytes on this machine."""
    data = Path(path).read_text(encoding="utf-8")
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        json.loads(data)
        best = min(best, time.perf_counter() - start)
    return len(data.encode()) / best / 1e9


def main() -> None:
    results = {path.name: call(str(path)) for path in sorted(Path().glob("*.json"))}
    results |= {path.name: call("--lines", str(path)) for path in sorted(Path().glob("*.ndjson"))}
    baseline = python_gigabytes_per_second("messages.json", repeats=5)
    Path("results.json").write_text(
        json.dumps(
            {"calls": results, "libraries": loaded_libraries(), "python_gigabytes_per_second": baseline},
        )
    )


if __name__ == "__main__":
    main()
