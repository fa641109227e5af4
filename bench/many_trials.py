"""Runs 204 trials for real on one host: 51 tasks x 4 contestants, on machines that need no time.

    python bench/many_trials.py [--workers 4] [--tasks 51]

Controller, xdist workers, fleet, collection, scheduling and records are the real ones; only what happens on a machine
is scripted, so that all time and memory is the harness's own. Memory is the proportional set size, at its peak, of the
controller and of its workers; seconds of processor time hardly depend on what else the host does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
CONTESTANTS = ("--deploybench-agent=noop", "--deploybench-agent=reference", "--deploybench-attempts=2")
_MB = 2**20
_LOOK_EVERY_S = 0.5


@dataclass
class Peak:
    """What processes used at most while they were looked at."""

    controller_mb: float = 0.0
    worker_mb: dict[int, float] = field(default_factory=dict)
    """By process id."""
    cpu_s: dict[int, float] = field(default_factory=dict)

    def look(self, controller: psutil.Process) -> None:
        """Take the figures of this moment."""
        for process in (controller, *controller.children()):
            with suppress(psutil.Error):
                used = process.memory_full_info().pss / _MB
                times = process.cpu_times()
                if process == controller:
                    self.controller_mb = max(self.controller_mb, used)
                elif "python" in process.name():
                    self.worker_mb[process.pid] = max(self.worker_mb.get(process.pid, 0.0), used)
                self.cpu_s[process.pid] = times.user + times.system


def write_project(folder: Path, tasks: int) -> dict[str, str]:
    """Tasks and scripted machines; the environment for pytest."""
    from tests.plugin.conftest import STAND_IN
    from tests.support import scripted_provider, task_folder

    for number in range(tasks):
        task_folder.write_task(folder / "tasks", f"toy{number:02d}_venue20", budget__agent_s=600 + 60 * number)
    (folder / "conftest.py").write_text(STAND_IN)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    scripted_provider.register(folder / "site")
    return {
        **os.environ,
        "PYTHONPATH": f"{folder / 'site'}:{ROOT}",
        scripted_provider.VARIABLE: str(folder / "machines"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def run(folder: Path, environment: dict[str, str], workers: int) -> Iterator[psutil.Process]:
    """The session's controller, again and again while it runs."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--deploybench-provider=scripted"),
        *("--deploybench-run-dir=run", f"-n{workers}", *CONTESTANTS),
    ]
    with (folder / "output.txt").open("w") as output:
        session = psutil.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        while session.poll() is None:
            yield session
            time.sleep(_LOOK_EVERY_S)
    if session.returncode:
        sys.exit(f"pytest ended with exit status {session.returncode}:\n{(folder / 'output.txt').read_text()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--tasks", type=int, default=51)
    options = parser.parse_args()
    peak, start = Peak(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="many-trials-") as name:
        folder = Path(name)
        for controller in run(folder, write_project(folder, options.tasks), options.workers):
            peak.look(controller)
        seconds = time.monotonic() - start
        size = (folder / "run" / "run.json").stat().st_size / _MB
    trials = options.tasks * 4
    table = Table("figure", "value", title=f"{trials} trials, {options.workers} workers", box=None)
    table.add_row("wall time", f"{seconds:.0f} s")
    table.add_row("processor time", f"{sum(peak.cpu_s.values()):.0f} s")
    table.add_row("processor time per trial", f"{sum(peak.cpu_s.values()) / trials * 1000:.0f} ms")
    table.add_row("memory of the controller", f"{peak.controller_mb:.0f} MB")
    table.add_row("memory of a worker", f"{sum(peak.worker_mb.values()) / len(peak.worker_mb):.0f} MB")
    table.add_row("run.json", f"{size:.1f} MB")
    Console().print(table)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
