"""The challenge and the oracle of stxxl_spe08: no machine, no STXXL, small cases solved by hand."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.stxxl_spe08 import stxxl_oracle as oracle
from tasks.stxxl_spe08 import test_stxxl_spe08 as task

SMALL = oracle.Settings(seed=7, records=301, memory=8, capacity=1)
IN_MEMORY = """#!{python}
import json, struct, sys
records = sorted(struct.iter_unpack("<QQ", open(sys.argv[1], "rb").read()))
open(sys.argv[2], "wb").write(b"".join(struct.pack("<QQ", *record) for record in records))
print(json.dumps({{"version": "1.4.1", "read": 0, "written": 0}}))
"""
"""An extsort that sorts rightly, in memory."""


@pytest.fixture(scope="module")
def challenge() -> task.SortChallenge:
    return task.draw(5)


def right(challenge: task.SortChallenge) -> dict[str, Any]:
    """The result of a deployment that does everything well."""
    size = challenge.settings.size
    said = json.dumps({"version": "1.4.1", "read": 3 * size, "written": 2 * size})
    run = {"status": 0, "said": said, "resident": 20 << 20, "read": 4 * size, "written": 3 * size}
    disks = {count: {"on disks": [2 * size // count] * count, "digest": challenge.digest} for count in task.DISKS}
    return {str(count): run | disks[count] for count in task.DISKS}


def left(folder: Path, result: dict[str, Any]) -> Experiment:
    (folder / "result.json").write_text(json.dumps(result))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def test_keys_are_often_equal_and_sometimes_huge() -> None:
    records = oracle.draw_records(SMALL)
    keys = records[:, 0].tolist()
    assert all(key & ~0xFF000000000000FF == 0 for key in keys)
    assert max(keys) >= 2**63 > min(keys)
    many = oracle.draw_records(oracle.Settings(seed=7, records=70_001, memory=8, capacity=1))[:, 0].tolist()
    assert len(set(many)) < 65_537 < len(many)


def test_the_digest_is_of_records_sorted_as_pairs() -> None:
    pairs = sorted((int(key), int(payload)) for key, payload in oracle.draw_records(SMALL))
    content = b"".join(struct.pack("<QQ", *pair) for pair in pairs)
    assert oracle.sorted_digest(oracle.draw_records(SMALL)) == hashlib.sha256(content).hexdigest()


def test_a_seed_draws_one_challenge_and_another_seed_another(challenge: task.SortChallenge) -> None:
    assert task.draw(5).inputs == challenge.inputs
    assert task.draw(6).settings != challenge.settings


@pytest.mark.parametrize("seed", range(20))
def test_records_are_several_times_the_memory_and_fill_no_block(seed: int) -> None:
    settings = oracle.draw_settings(random.Random(seed))
    assert settings.size % 4096
    assert settings.memory + task.OWN_MEGABYTES < settings.size / oracle.MEGABYTE
    assert 2 * settings.memory < settings.size / oracle.MEGABYTE < 48


def test_the_experiment_makes_the_same_records_and_measures(tmp_path: Path) -> None:
    """The program that goes to the machine, with an extsort that sorts in memory: right, but not external."""
    challenge = task.SortChallenge("", {}, (), SMALL)
    (tmp_path / "settings.json").write_bytes(SMALL.as_json())
    (tmp_path / "experiment.py").write_bytes(oracle.driver())
    program = tmp_path / "extsort"
    program.write_text(IN_MEMORY.format(python=sys.executable))
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([sys.executable, "experiment.py"], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    experiment = Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=tmp_path)
    task.test_records_are_sorted_with_one_disk(experiment, challenge)
    task.test_records_are_sorted_with_two_disks(experiment, challenge)
    with pytest.raises(AssertionError, match=r"1 disks: .* on each disk file of STXXLCFG, got \[0\]"):
        task.test_the_configured_disks_were_used(experiment, challenge)
    with pytest.raises(AssertionError, match=r"by STXXL's count, got \[0, 0\]"):
        task.test_the_sorting_was_external(experiment, challenge)
    run = experiment.json("result.json")["2"]
    assert run["resident"] > oracle.MEGABYTE
    assert run["read"] > SMALL.size
    assert run["written"] >= SMALL.size


CLAIMS = (
    task.test_records_are_sorted_with_one_disk,
    task.test_records_are_sorted_with_two_disks,
    task.test_memory_stays_within_its_limit,
    task.test_the_configured_disks_were_used,
    task.test_the_sorting_was_external,
)


def test_a_right_result_passes(tmp_path: Path, challenge: task.SortChallenge) -> None:
    for claim in CLAIMS:
        claim(left(tmp_path, right(challenge)), challenge)


@pytest.mark.parametrize(
    ("claim", "wrong", "complaint"),
    [
        ((0, 1), {"digest": None}, r"1 disks: expected the sorted file, .* got None"),
        ((0, 1), {"status": -6}, r"1 disks: expected extsort to return 0, got -6"),
        ((1, 2), {"digest": "00"}, r"2 disks: expected the sorted file, .* got 00"),
        ((2, 1), {"resident": 60 << 20}, r"1 disks: expected at most \d+ MB resident .* got 60.0 MB"),
        ((3, 2), {"on disks": [1 << 26, 0]}, r"2 disks: .* got \[67108864, 0\]"),
        ((4, 2), {"written": 1 << 20}, r"2 disks: .* by the kernel's count, got \[\d+, 1048576\]"),
        ((4, 1), {"said": '{"read": "much"}'}, r"1 disks: .* by STXXL's count, got \['much', None\]"),
        ((4, 1), {"said": "sorted"}, r"1 disks: expected extsort to end with a line of JSON, got 'sorted'"),
    ],
)
def test_each_wrong_result_fails_its_claim(
    tmp_path: Path, challenge: task.SortChallenge, claim: tuple[int, int], wrong: dict[str, Any], complaint: str
) -> None:
    result, (number, disks) = right(challenge), claim
    result[str(disks)] |= wrong
    with pytest.raises(AssertionError, match=complaint):
        CLAIMS[number](left(tmp_path, result), challenge)
