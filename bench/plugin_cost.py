"""Measures what the installed plugin costs a pytest run that has nothing to do with it.

Both kinds of run alternate, so that a busy host slows both down alike, and medians are compared. CPU time is shown
beside wall time because it hardly depends on what else the host does.

    python bench/plugin_cost.py [--runs 25] [--limit-ms 30]

Exit status 1 when the plugin costs more than the limit of wall time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

WITHOUT = ("-p", "no:deploybench")


@dataclass(frozen=True)
class Cost:
    """One run of pytest, in milliseconds."""

    wall: float
    cpu: float


def run(project: Path, *args: str) -> Cost:
    """Run the project's tests once."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"pytest ended with exit status {process.returncode}: {' '.join(command)}")
    return Cost(wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--runs", type=int, default=25, help="runs of each kind (default: 25)")
    options.add_argument("--limit-ms", type=float, default=30.0, help="most wall time it may cost (default: 30)")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="plugin-cost-") as folder:
        project = Path(folder)
        (project / "test_unrelated.py").write_text("def test_unrelated():\n    pass\n", encoding="utf-8")
        run(project)
        run(project, *WITHOUT)  # these two only warm the caches
        pairs = [(run(project, *WITHOUT), run(project)) for _ in range(chosen.runs)]
    worst = 0.0
    for kind in ("wall", "cpu"):
        without, with_plugin = (statistics.median(getattr(pair[side], kind) for pair in pairs) for side in (0, 1))
        cost = with_plugin - without
        worst = max(worst, cost if kind == "wall" else 0.0)
        print(
            f"{kind} time, medians of {chosen.runs}: {without:.1f} ms without, {with_plugin:.1f} ms with the plugin: "
            f"{cost:+.1f} ms, ratio {with_plugin / without:.3f}"
        )
    sys.exit(worst > chosen.limit_ms)


if __name__ == "__main__":
    main()
