"""mimalloc, built from the given source, serves every allocation of unchanged programs, keeps their data, and is fast.

A trace of allocations over threads is drawn anew. The host knows by bookkeeping what memory must hold at its end.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.mimalloc_aplas19 import mimalloc_oracle as oracle

VERSION = 209
"""What `mi_version` of 2.0.9 returns."""
SYMBOLS = {"mi_malloc", "_mi_page_malloc", "_mi_segment_page_alloc"}
"""Exported, and hidden within an unstripped library."""
COMMANDS = {"plain": "mimalloc-run", "secure": "mimalloc-run-secure"}
ROUNDS = range(5)
FASTER = 1.2
"""Than the C library's allocator, best of five: 2.2 times natively on two busy cores, 2 times emulated."""
IN_ORDER = 0.9
"""Share of neighbouring allocations with ascending addresses: 1 by default, 0.5 on average in random order."""


@dataclass(frozen=True)
class AllocationChallenge(Challenge):
    """A trace with its ending, and arguments of a program."""

    ending: oracle.Ending
    arguments: list[str]


def draw(seed: int) -> AllocationChallenge:
    rng = random.Random(seed)
    trace = oracle.draw_trace(rng)
    arguments = ["x" * rng.randint(1, 50), "two  words", "", "*", "-h", "y" * rng.randint(51, 99)]
    rng.shuffle(arguments)
    return AllocationChallenge(
        command="python3 mimalloc_experiment.py",
        inputs={
            "mimalloc_experiment.py": oracle.material("mimalloc_experiment.py"),
            "trial.c": oracle.material("mimalloc_trial.c"),
            "trace.txt": "".join(f"{operation}\n" for operation in trace).encode(),
            "arguments.json": json.dumps(arguments).encode(),
        },
        outputs=("results.json",),
        ending=oracle.ending(trace),
        arguments=arguments,
    )


def test_both_libraries_were_built_from_the_given_source(
    server: Host, agent_run: AgentRun, experiment: Experiment
) -> None:
    """`malloc` of the programs lies in two fresh, unstripped libraries of no package, both mimalloc 2.0.9."""
    paths = {}
    for name, command in COMMANDS.items():
        seen = _result(experiment, f"trace-{name}")
        path = paths[name] = str(seen.get("malloc"))
        owner = evidence.package_owner(server, path)
        assert owner is None, f"{command}: expected malloc of a library built here, {path} is of the package {owner}"
        assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
        missing = SYMBOLS - evidence.symbols(server, path)
        assert not missing, f"{command}: expected {path} to be mimalloc, unstripped, it lacks {sorted(missing)}"
        assert seen.get("version") == VERSION, f"{command}: expected mi_version {VERSION}, got {seen.get('version')}"
    assert paths["plain"] != paths["secure"], f"expected two libraries, both commands use {paths['plain']}"


def test_every_block_comes_from_mimalloc(experiment: Experiment) -> None:
    """No block of any size lies outside of mimalloc's heap, and neither does one that the C library allocates."""
    for name, command in COMMANDS.items():
        seen = _result(experiment, f"trace-{name}")
        got = (seen.get("foreign"), seen.get("strdup_is_its_own"))
        assert got == (0, True), (
            f"{command}: expected no block outside of mimalloc's heap and strdup's block within, (0, True), got {got}; "
            "see results.json"
        )


def test_blocks_keep_their_content_across_threads(experiment: Experiment, challenge: AllocationChallenge) -> None:
    """Blocks of the drawn trace are never damaged, zeroed and aligned as asked, and hold at its end what they must."""
    expected = {**asdict(challenge.ending), "corrupt": 0, "unzeroed": 0, "misaligned": 0}
    for name, command in COMMANDS.items():
        seen = _result(experiment, f"trace-{name}")
        wrong = {key: (value, seen.get(key)) for key, value in expected.items() if seen.get(key) != value}
        assert not wrong, f"{command}: (expected, got) differ in {wrong}; see results.json"


def test_programs_run_as_they_would_without(experiment: Experiment, challenge: AllocationChallenge) -> None:
    """Arguments come through one by one, and so does the exit status."""
    expected = list(map(len, challenge.arguments))
    for name, command in COMMANDS.items():
        got = _result(experiment, f"arguments-{name}", status=7).get("lengths")
        assert got == expected, f"{command}: expected arguments {challenge.arguments}, of lengths {expected}, got {got}"


def test_only_the_secure_build_allocates_in_random_order(experiment: Experiment) -> None:
    """Blocks of one size that are allocated in a row lie in a row by default, and are scattered when secure."""
    runs = (_result(experiment, f"order-{name}") for name in COMMANDS)
    plain, secure = (_number(seen, "ascending") / _number(seen, "steps") for seen in runs)
    assert plain > IN_ORDER, f"mimalloc-run: expected ascending addresses, {plain:.0%} of the steps go up"
    assert secure < IN_ORDER, (
        f"mimalloc-run-secure: expected addresses in random order, {secure:.0%} of the steps go up"
    )


def test_the_secure_build_survives_a_double_free(experiment: Experiment) -> None:
    """A block that was freed twice is not given out twice, and the program goes on."""
    got = _result(experiment, "twice-secure").get("handed_out_twice")
    assert got == 0, f"mimalloc-run-secure: expected no block to be handed out twice, {got!r} were; see results.json"


def test_threads_that_free_for_each_other_are_faster_than_with_libc(experiment: Experiment) -> None:
    """The paper's claim, on its larson benchmark, in turns with the C library's allocator on the same machine."""
    libc, plain = (
        [_result(experiment, f"larson-{allocator}-{number}") for number in ROUNDS] for allocator in ("libc", "plain")
    )
    versions = [sorted({str(seen.get("version")) for seen in runs}) for runs in (libc, plain)]
    assert versions == [["0"], [str(VERSION)]], (
        f"expected mimalloc, of version {VERSION}, in the programs that mimalloc-run starts, and in no others, "
        f"without and with it there were the versions {versions}"
    )
    baseline, speed = (max(_number(seen, "operations_per_second") for seen in runs) for runs in (libc, plain))
    assert speed >= FASTER * baseline, (
        f"expected at least {FASTER} x {baseline / 1e6:.2f} million operations a second of libc, got {speed / 1e6:.2f}"
    )


def _result(experiment: Experiment, name: str, status: int = 0) -> dict[str, Any]:
    """What a run of the trial printed."""
    runs = experiment.json("results.json")
    run = runs.get(name) if isinstance(runs, dict) else None
    assert isinstance(run, dict), f"expected a run {name!r} in results.json, got {run!r:.200}"
    assert run.get("status") == status, (
        f"{name}: expected exit status {status}, got {run.get('status')}; it said {str(run.get('err'))[-300:]!r}"
    )
    try:
        printed = json.loads(str(run.get("out")))
    except ValueError:
        printed = None
    assert isinstance(printed, dict), (
        f"{name}: expected one JSON object, got {str(run.get('out'))[:200]!r} and {str(run.get('err'))[-300:]!r}"
    )
    return printed


def _number(seen: dict[str, Any], key: str) -> float:
    value = seen.get(key)
    assert isinstance(value, int | float), f"expected a number {key!r}, got {value!r}; see results.json"
    return float(value)
