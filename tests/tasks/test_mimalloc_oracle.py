"""The challenge and the oracle of mimalloc_aplas19: no machine, no allocator, small cases solved by hand."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.mimalloc_aplas19 import mimalloc_oracle as oracle
from tasks.mimalloc_aplas19 import test_mimalloc_aplas19 as task
from tasks.mimalloc_aplas19.mimalloc_oracle import Operation

Runs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def challenge() -> task.AllocationChallenge:
    return task.draw(3)


def left(folder: Path, runs: Runs) -> Experiment:
    """An experiment in which the trial printed these."""
    results = {
        name: {"status": 7 if name.startswith("arguments") else 0, "out": json.dumps(out), "err": ""}
        for name, out in runs.items()
    }
    (folder / "results.json").write_text(json.dumps(results))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def right(challenge: task.AllocationChallenge) -> Runs:
    """What the trial prints in a deployment that does everything well."""
    own = {"malloc": "/home/agent/lib/libmimalloc.so", "version": 209, "strdup_is_its_own": True}
    ending = challenge.ending
    trace = {"allocated": ending.allocated, "live": ending.live, "crc": ending.crc}
    faults = {"corrupt": 0, "unzeroed": 0, "misaligned": 0, "foreign": 0}
    runs: Runs = {}
    for name, ascending in (("plain", 63), ("secure", 31)):
        runs[f"trace-{name}"] = {**own, **trace, **faults}
        runs[f"order-{name}"] = {**own, "steps": 63, "ascending": ascending}
        runs[f"arguments-{name}"] = {**own, "lengths": [len(argument) for argument in challenge.arguments]}
    runs["twice-secure"] = {**own, "handed_out_twice": 0}
    for number in task.ROUNDS:
        runs[f"larson-libc-{number}"] = {"version": 0, "operations_per_second": 2e6}
        runs[f"larson-plain-{number}"] = {**own, "operations_per_second": 4e6}
    return runs


def test_a_pattern_by_hand() -> None:
    assert oracle.pattern(250, 3) == bytes([250, 1, 8])
    assert oracle.pattern(0, 600)[256:512] == oracle.pattern(0, 256)


def test_the_ending_of_a_trace_by_hand() -> None:
    trace = [
        Operation(0, 0, "m", 4, size=2),
        Operation(0, 1, "c", 1, size=1),
        Operation(1, 1, "r", 4, size=3),
        Operation(1, 0, "f", 1),
        Operation(2, 0, "a", 0, size=1, align=16),
    ]
    left_over = bytes([4]) + bytes([2, 9, 16])  # slot 0 of line 4, then slot 4 of line 2
    assert oracle.ending(trace) == oracle.Ending(allocated=4, live=2, crc=zlib.crc32(left_over))
    assert str(trace[4]) == "2 0 a 0 1 16"


def test_no_two_threads_have_a_slot_in_one_phase_and_all_kinds_of_blocks_are_drawn() -> None:
    trace = task.draw(5).inputs["trace.txt"].decode().split("\n")[:-1]
    lines = [
        (int(phase), int(thread), kind, int(slot), int(size))
        for phase, thread, kind, slot, size, _ in map(str.split, trace)
    ]
    owners: dict[tuple[int, int], int] = {}
    for phase, thread, _, slot, _ in lines:
        assert owners.setdefault((phase, slot), thread) == thread
    assert len({thread for (_, slot), thread in owners.items() if slot < oracle.THREADS}) == oracle.THREADS
    assert {kind for _, _, kind, _, _ in lines} == set("mcarf")
    assert max(size for *_, size in lines) > 1 << 20


def test_a_seed_draws_one_challenge_and_another_seed_another() -> None:
    assert task.draw(5) == task.draw(5)
    assert task.draw(5).ending != task.draw(6).ending
    assert task.draw(5).arguments != task.draw(6).arguments


def test_a_right_result_passes(tmp_path: Path, challenge: task.AllocationChallenge) -> None:
    good = left(tmp_path, right(challenge))
    task.test_every_block_comes_from_mimalloc(good)
    task.test_blocks_keep_their_content_across_threads(good, challenge)
    task.test_programs_run_as_they_would_without(good, challenge)
    task.test_only_the_secure_build_allocates_in_random_order(good)
    task.test_the_secure_build_survives_a_double_free(good)
    task.test_threads_that_free_for_each_other_are_faster_than_with_libc(good)


WRONG: list[tuple[str, dict[str, Any], Callable[..., None], str]] = [
    (
        "trace-secure",
        {"foreign": 3},
        task.test_every_block_comes_from_mimalloc,
        r"mimalloc-run-secure: .*got \(3, True\)",
    ),
    (
        "trace-plain",
        {"strdup_is_its_own": False},
        task.test_every_block_comes_from_mimalloc,
        r"mimalloc-run: .*got \(0, False\)",
    ),
    (
        "trace-plain",
        {"corrupt": 1},
        task.test_blocks_keep_their_content_across_threads,
        r"mimalloc-run: .*'corrupt': \(0, 1\)",
    ),
    (
        "trace-secure",
        {"crc": 1},
        task.test_blocks_keep_their_content_across_threads,
        r"mimalloc-run-secure: .*'crc': \(\d+, 1\)",
    ),
    (
        "arguments-plain",
        {"lengths": [1, 2]},
        task.test_programs_run_as_they_would_without,
        r"mimalloc-run: expected arguments .* got \[1, 2\]",
    ),
    (
        "order-secure",
        {"ascending": 63},
        task.test_only_the_secure_build_allocates_in_random_order,
        "mimalloc-run-secure: expected addresses in random order, 100% of the steps go up",
    ),
    (
        "order-plain",
        {"ascending": 31},
        task.test_only_the_secure_build_allocates_in_random_order,
        "mimalloc-run: expected ascending addresses, 49% of the steps go up",
    ),
    (
        "twice-secure",
        {"handed_out_twice": 1999},
        task.test_the_secure_build_survives_a_double_free,
        "to be handed out twice, 1999 were",
    ),
    (
        "larson-libc-2",
        {"operations_per_second": 3.9e6},
        task.test_threads_that_free_for_each_other_are_faster_than_with_libc,
        "expected at least 1.2 x 3.90 million operations a second of libc, got 4.00",
    ),
    (
        "larson-libc-0",
        {"version": 209},
        task.test_threads_that_free_for_each_other_are_faster_than_with_libc,
        r"and in no others, .* versions \[\['0', '209'\], \['209'\]\]",
    ),
    (
        "larson-plain-0",
        {"operations_per_second": "fast"},
        task.test_threads_that_free_for_each_other_are_faster_than_with_libc,
        "expected a number 'operations_per_second', got 'fast'",
    ),
]


@pytest.mark.parametrize(("run", "change", "check", "complaint"), WRONG)
def test_each_wrong_result_fails(
    tmp_path: Path,
    challenge: task.AllocationChallenge,
    *,
    run: str,
    change: dict[str, Any],
    check: Callable[..., None],
    complaint: str,
) -> None:
    runs = right(challenge)
    runs[run] |= change
    fixtures = {"experiment": left(tmp_path, runs), "challenge": challenge}
    with pytest.raises(AssertionError, match=complaint):
        check(**{name: fixtures[name] for name in inspect.signature(check).parameters})


def test_a_program_that_crashed_fails_with_what_it_said(tmp_path: Path, challenge: task.AllocationChallenge) -> None:
    experiment = left(tmp_path, right(challenge))
    results = json.loads((tmp_path / "results.json").read_text())
    results["trace-plain"] = {"status": -6, "out": "", "err": "free(): invalid pointer"}
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(AssertionError, match=r"trace-plain: expected exit status 0, got -6; .*invalid pointer"):
        task.test_blocks_keep_their_content_across_threads(experiment, challenge)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_the_trial_replays_a_trace_with_any_right_allocator(
    tmp_path: Path, challenge: task.AllocationChallenge
) -> None:
    """Here with the C library's: every count but that of mimalloc's own blocks is as the oracle says."""
    (tmp_path / "trial.c").write_bytes(challenge.inputs["trial.c"])
    subprocess.run(
        ["cc", "-std=gnu11", "-O2", "-Wall", "-Werror", "-pthread", "-o", "trial", "trial.c"], cwd=tmp_path, check=True
    )
    done = subprocess.run(
        [tmp_path / "trial", "trace"], input=challenge.inputs["trace.txt"], capture_output=True, check=True
    )
    seen, ending = json.loads(done.stdout), challenge.ending
    assert (seen["allocated"], seen["live"], seen["crc"]) == (ending.allocated, ending.live, ending.crc)
    assert (seen["corrupt"], seen["unzeroed"], seen["misaligned"]) == (0, 0, 0)
    assert seen["foreign"] == ending.allocated
