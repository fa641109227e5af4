"""What a fresh machine costs: seconds against a cold boot and against the floor, memory, and the harness's own seconds.

All figures come from one run on this host, as medians; what counts are the ratios.

    cold boot   the same image booted, until a command has run over SSH
    restore     a machine of the saved state, until a command has run over SSH: what each trial waits for
    floor       one more SSH login to a machine that runs: no fresh machine can be had in less
    memory      proportional set size of all processes of one of several idle machines
    harness     a whole trial of a toy task, without its agent's and its experiment's seconds

Run as `python bench/machines.py [--rounds N] [--machines N]` in the repository, on an otherwise idle host.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from pytest_deploybench import folders
from pytest_deploybench.model import Lease, MachineRequest, MachineSize, ProviderOptions
from pytest_deploybench.providers.local import kept
from pytest_deploybench.providers.qemu.provider import QemuProvider
from pytest_deploybench.transport import SshMachine

ROOT = Path(__file__).parents[1]
SIZE = MachineSize(cpus=2, memory_gb=2, disk_gb=10)
RESTORE_OVER_FLOOR, COLD_OVER_RESTORE, MEMORY_MB, HARNESS_S = 1.5, 12.0, 200.0, 6.0
"""Targets."""
_ANSWER_WITHIN_S = 600.0


class Bench:
    """A provider with machines of its own, in a folder that goes afterwards."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.provider = QemuProvider(ProviderOptions(), print, machines=scratch / "machines")

    def create(self) -> Lease:
        return self.provider.create(MachineRequest(f"bench-{uuid.uuid4().hex[:8]}", SIZE, 3600.0, "bench"))

    def until_a_command_ran(self, make: Callable[[], Lease]) -> float:
        """Seconds until a new machine has run a command; it is destroyed afterwards."""
        start = time.monotonic()
        lease = make()
        try:
            login(lease)
            return time.monotonic() - start
        finally:
            self.provider.destroy(lease.machine_id)

    def cold(self) -> Lease:
        """A machine that boots by itself, through the same door."""
        hardware, saved = self.provider._template(SIZE)
        self.provider._templates[SIZE] = hardware, replace(saved, cold_because="the bench wants to see it boot")
        try:
            return self.create()
        finally:
            self.provider._templates[SIZE] = hardware, saved

    def memory_mb(self, lease: Lease) -> float:
        """Proportional set size of a machine's processes."""
        pids = kept.pids(self.scratch / "machines" / lease.machine_id)
        return sum(psutil.Process(pid).memory_full_info().pss for pid in pids) / 2**20


def login(lease: Lease) -> float:
    """Seconds of one new SSH connection and one command."""
    start = time.monotonic()
    with SshMachine(lease) as machine:
        machine.wait_ready(_ANSWER_WITHIN_S)
    return time.monotonic() - start


def harness_s(scratch: Path, rounds: int) -> list[float]:
    """Seconds of whole trials, without those of their agents and experiments."""
    from tests.support.toy import toy_project

    project = toy_project(scratch / "project")
    for number in range(rounds):
        project.task(f"toy_bench{number:02d}")
    run = scratch / "run"
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tasks", "--deploybench-agent=reference"),
            *(f"--deploybench-sources={project.store}", f"--deploybench-run-dir={run}"),
        ],
        cwd=project.folder,
        env={**os.environ, "XDG_STATE_HOME": str(scratch / "state")},
        check=True,
    )
    trials = json.loads((run / "run.json").read_text())["trials"]
    return [
        trial["durations"]["total"] - trial["durations"]["agent"] - trial["durations"]["experiment"] for trial in trials
    ]


def verdict(value: float, target: float, *, at_most: bool) -> str:
    reached = value <= target if at_most else value >= target
    return f"{'at most' if at_most else 'at least'} {target:g}: {'reached' if reached else 'MISSED'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machines", type=int, default=8, help="how many are restored at once for the memory figure")
    options = parser.parse_args()
    folders.state().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folders.state()) as folder:
        scratch = Path(folder)
        bench = Bench(scratch)
        bench.until_a_command_ran(bench.create)  # image and template are there now
        cold = statistics.median(bench.until_a_command_ran(bench.cold) for _ in range(options.rounds))
        restore = statistics.median(bench.until_a_command_ran(bench.create) for _ in range(options.rounds))
        with ThreadPoolExecutor(options.machines) as pool:
            together = time.monotonic()
            leases = [made.result() for made in [pool.submit(bench.create) for _ in range(options.machines)]]
            together = time.monotonic() - together
        try:
            floor = statistics.median(login(leases[0]) for _ in range(options.rounds))
            memory = statistics.median(map(bench.memory_mb, leases))
        finally:
            for lease in leases:
                bench.provider.destroy(lease.machine_id)
        harness = statistics.median(harness_s(scratch, options.rounds))
    table = Table("figure", "median", "target", box=None)
    table.add_row("cold boot", f"{cold:.2f} s", "")
    table.add_row("restore", f"{restore:.2f} s", "")
    table.add_row("floor: one SSH login", f"{floor:.2f} s", "")
    ratio = restore / floor
    table.add_row("restore / floor", f"{ratio:.2f}", verdict(ratio, RESTORE_OVER_FLOOR, at_most=True))
    ratio = cold / restore
    table.add_row("cold boot / restore", f"{ratio:.1f}", verdict(ratio, COLD_OVER_RESTORE, at_most=False))
    table.add_row(f"{options.machines} machines at once", f"{together:.2f} s", "")
    table.add_row("memory of an idle machine", f"{memory:.0f} MB", verdict(memory, MEMORY_MB, at_most=True))
    table.add_row("harness per trial", f"{harness:.1f} s", verdict(harness, HARNESS_S, at_most=True))
    Console().print(table)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
