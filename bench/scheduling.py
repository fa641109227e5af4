"""Simulates the whole benchmark, 51 tasks x 4 models, on 16, 64 and 200 workers, under three schedulers of xdist.

    python bench/scheduling.py

The real scheduler classes decide; only the workers are simulated, by xdist's rules: a worker begins a check when it
knows the next one or that none will come, and the first check of a trial on a worker makes machine, agent and
experiment run. Trials last as long as their budgets allow, or, in the second table, some drawn share of that which no
scheduler knows. The bound is what no schedule can beat: the longest trial, or all of them spread evenly.

Exit status 1 when the plugin's scheduler is above the limit where trials last as expected.
"""

from __future__ import annotations

import heapq
import itertools
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, LoadScheduling

from pytest_deploybench import taskfile
from pytest_deploybench.plugin import settings
from pytest_deploybench.plugin.layer1_checks import CHECKS
from pytest_deploybench.plugin.lineup import Lineup, assemble
from pytest_deploybench.plugin.scheduling import TrialScheduling
from pytest_deploybench.schedule import expected_s

ROOT = Path(__file__).parents[1]
WORKERS = (16, 64, 200)
LIMIT = 1.05
"""Most makespan in units of the bound."""
MODELS = ("model-a", "model-b", "model-c", "model-d")
OWN_CHECKS = 4
CHECK_S = 1.0
EXPERIMENT_S = 120.0
PLANNED: Mapping[float, str] = {
    1800: "libsvm_tist11 hnsw_tpami18 mimalloc_aplas19 simdjson_vldbj19 stxxl_spe08 spin_tse11 gfcomplete_fast13 "
    "minimap2_bioinf18",
    2700: "rcpp_jss11",
    3600: "keops_jmlr21 sbert_emnlp19 neuralode_neurips18 whisper_icml23 csmith_pldi11 repa_icfp10 d3_tvcg11 "
    "jellyfish_bioinf11",
    5400: "xgboost_kdd16_cpu word2vec_nips13 adalora_iclr23 pyg_iclrw19 nerfacc_iccv23 lintrans_icml20 "
    "graphillion_sttt14 etcd_atc14 egg_popl21 htseq_bioinf15",
    7200: "theano_nipsw12 xgboost_kdd16_gpu gptq_iclr23 zero_sc20 gsplat_jmlr25 lightgbm_nips17_gpu fairseq_naacl19 "
    "erofs_atc19 f2fs_fast15 why3_esop13 pycuda_parco12 mdanalysis_jcc11",
    9000: "wireguard_ndss17 mptcp_nsdi12 damon_hpdc22 elpa_jpcm14",
    10800: "mmseg_github24 flashattn_neurips22 mamba_colm24 vllm_sosp23 minkowski_cvpr19 natten_cvpr23 "
    "zookeeper_atc10 lammpsgpu_cpc11",
}
"""The agent's budget in seconds of each of the 51 tasks, for those whose folder is not there yet."""

SCHEDULERS = {"deploybench": TrialScheduling, "--dist loadfile": LoadFileScheduling, "--dist load": LoadScheduling}


def budgets() -> dict[str, float]:
    """Seconds that a trial of each task may take, from the task's folder where there is one."""
    planned = {name: agent_s + EXPERIMENT_S for agent_s, names in PLANNED.items() for name in names.split()}
    return planned | {task.id: expected_s(task) for task in taskfile.discover(ROOT / "tasks")}


@dataclass
class Config:
    """As much of pytest's configuration as schedulers ask for."""

    workers: int
    lineup: Lineup
    stash: pytest.Stash = field(default_factory=pytest.Stash)
    option: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(loadscopereorder=True))

    def __post_init__(self) -> None:
        self.stash[settings.KEY] = SimpleNamespace(lineup=self.lineup)  # type: ignore[assignment]

    def getvalue(self, name: str) -> list[str]:
        return {"tx": [f"{self.workers}*popen"]}[name]

    def getoption(self, name: str) -> None:
        return {"maxschedchunk": None}[name]


@dataclass(eq=False)
class Worker:
    """A simulated worker: checks that it was sent, and the trial whose machine it holds."""

    gateway: SimpleNamespace
    queue: list[int] = field(default_factory=list)
    shutting_down: bool = False
    busy: bool = False
    trial: str | None = None

    def send_runtest_some(self, indices: list[int]) -> None:
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_begin(self) -> bool:
        return not self.busy and (len(self.queue) > 1 or (self.shutting_down and bool(self.queue)))


@dataclass(frozen=True)
class Outcome:
    """What a simulated session took."""

    makespan_s: float
    machines: int


@dataclass(frozen=True)
class Benchmark:
    """All trials of all models, and how long each takes."""

    lineup: Lineup
    collection: list[str]
    """The node ids of all checks, in the order in which the plugin lets a worker collect them."""
    seconds: Mapping[str, float]
    """What a trial takes before its first check, by unit."""

    def bound_s(self, workers: int) -> float:
        """What no schedule can beat: the longest trial, or all of them spread evenly."""
        whole = [took + (len(CHECKS) + OWN_CHECKS) * CHECK_S for took in self.seconds.values()]
        return max(*whole, sum(whole) / workers)

    def ending_early(self) -> Benchmark:
        """The same, with trials that last a drawn share of what they may."""
        share = random.Random(2026)  # noqa: S311 - a simulation
        return replace(self, seconds={unit: took * share.uniform(0.1, 1.0) for unit, took in self.seconds.items()})


def planned() -> Benchmark:
    """The benchmark with trials that last as long as they may."""
    durations, lineup = budgets(), assemble([], MODELS, 1, lambda _: True)
    names = [*CHECKS, *(f"test_claim_{number}" for number in range(OWN_CHECKS))]
    collection = [
        f"tasks/{task}/test_{task}.py::{check}[{trial}]"
        for task in sorted(durations, key=lambda task: -durations[task])
        for trial in lineup.entries
        for check in names
    ]
    return Benchmark(
        lineup, collection, {lineup.unit(nodeid): durations[nodeid.split("/")[1]] for nodeid in collection}
    )


def simulate(scheduler: type, benchmark: Benchmark, workers: int) -> Outcome:
    """What a session with so many workers takes under a scheduler."""
    decides: Any = scheduler(Config(workers, benchmark.lineup), Producer("bench", enabled=False))
    nodes = [Worker(SimpleNamespace(id=f"gw{number}")) for number in range(workers)]
    for node in nodes:
        decides.add_node(node)
    for node in nodes:
        decides.add_node_collection(node, benchmark.collection)
    decides.schedule()
    events: list[tuple[float, int, float]] = []
    now, machines = 0.0, 0
    while True:
        for number, node in enumerate(nodes):
            if node.can_begin:
                unit = benchmark.lineup.unit(benchmark.collection[node.queue[0]])
                took = CHECK_S if node.trial == unit else CHECK_S + benchmark.seconds[unit]
                machines += node.trial != unit
                node.busy, node.trial = True, unit
                heapq.heappush(events, (now + took, number, took))
        if not events:
            break
        now, number, took = heapq.heappop(events)
        nodes[number].busy = False
        decides.mark_test_complete(nodes[number], nodes[number].queue.pop(0), took)
    if any(node.queue for node in nodes):
        sys.exit("a scheduler left checks behind")
    return Outcome(now, machines)


def main() -> None:
    as_planned, too_long = planned(), False
    cases = {"trials last as long as they may": as_planned, "agents end early": as_planned.ending_early()}
    for title, benchmark in cases.items():
        table = Table("workers", "scheduler", "makespan", "/ bound", "machines", title=title, box=None)
        for workers, (name, scheduler) in itertools.product(WORKERS, SCHEDULERS.items()):
            outcome = simulate(scheduler, benchmark, workers)
            ratio = outcome.makespan_s / benchmark.bound_s(workers)
            hours = f"{outcome.makespan_s / 3600:.2f} h"
            table.add_row(str(workers), name, hours, f"{ratio:.3f}", str(outcome.machines))
            too_long |= scheduler is TrialScheduling and benchmark is as_planned and ratio > LIMIT
        Console().print(table)
    sys.exit(too_long)


if __name__ == "__main__":
    main()
