"""STXXL, built from the given source, sorts fresh records in a small part of the memory that they fill, on its disks.

The records are drawn anew. The host sorts them in memory and compares digests.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.stxxl_spe08 import stxxl_oracle as oracle

SYMBOLS = {"_ZN5stxxl26get_library_version_stringEv", "_ZN5stxxl6config10initializeEv"}
"""Of the library, in the symbol table of a program that it was linked into or that uses it as a shared library."""
PACKAGES = ("libstxxl-dev", "libstxxl1v5")
OWN_MEGABYTES = 24
"""Beyond MEM_MB: the program, the cache of its vector, stacks. Measured: 6 to 10; all records are more than 36."""
DISKS = (1, 2)


@dataclass(frozen=True)
class SortChallenge(Challenge):
    """What the records are made from."""

    settings: oracle.Settings

    @cached_property
    def digest(self) -> str:
        """Of the sorted file."""
        return oracle.sorted_digest(oracle.draw_records(self.settings))


def draw(seed: int) -> SortChallenge:
    settings = oracle.draw_settings(random.Random(seed))
    return SortChallenge(
        command="python3 sort_experiment.py",
        inputs={"sort_experiment.py": oracle.driver(), "settings.json": settings.as_json()},
        outputs=("result.json",),
        settings=settings,
    )


def test_extsort_was_built_on_the_given_source(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """`extsort` on PATH is of no package, newer than the hand-over, and has an STXXL 1.4.1 that no package brought."""
    path = evidence.program(server, "extsort")
    assert path, "expected a command `extsort` on PATH after env.sh, there is none"
    owner = evidence.package_owner(server, path)
    assert owner is None, f"extsort should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    missing = SYMBOLS - evidence.symbols(server, path)
    assert not missing, f"expected {path} to be an unstripped ELF program with STXXL, it lacks {sorted(missing)}"
    installed = [name for name in PACKAGES if server.package(name).is_installed]
    assert not installed, f"STXXL should be built here, but the packages {installed} are installed"
    for disks in DISKS:
        version = _said(experiment, disks).get("version")
        assert version == "1.4.1", f"{disks} disks: expected version 1.4.1 of STXXL, extsort says {version!r}"


def test_records_are_sorted_with_one_disk(experiment: Experiment, challenge: SortChallenge) -> None:
    """With one disk file, the output has every record, by key and then by payload."""
    _assert_sorted(experiment, challenge, 1)


def test_records_are_sorted_with_two_disks(experiment: Experiment, challenge: SortChallenge) -> None:
    """So it has with two."""
    _assert_sorted(experiment, challenge, 2)


def test_memory_stays_within_its_limit(experiment: Experiment, challenge: SortChallenge) -> None:
    """The paper's point: the process never holds more than it may, which is less than the records need."""
    limit = challenge.settings.memory + OWN_MEGABYTES
    for disks in DISKS:
        resident = _run(experiment, disks)["resident"] / oracle.MEGABYTE
        assert resident <= limit, (
            f"{disks} disks: expected at most {limit} MB resident for MEM_MB = {challenge.settings.memory}, "
            f"got {resident:.1f} MB; the file has {challenge.settings.size / oracle.MEGABYTE:.1f} MB; see result.json"
        )


def test_the_configured_disks_were_used(experiment: Experiment, challenge: SortChallenge) -> None:
    """Each disk file of the configuration holds its share of the records at the end."""
    for disks in DISKS:
        used, share = _run(experiment, disks)["on disks"], challenge.settings.size // disks
        # Records may be spread by chance, so a disk may have somewhat less than its share.
        assert all(there >= share // 2 for there in used), (
            f"{disks} disks: expected about {share:,} bytes on each disk file of STXXLCFG, got {used}; see result.json"
        )


def test_the_sorting_was_external(experiment: Experiment, challenge: SortChallenge) -> None:
    """By STXXL's counters and by the kernel's, the records were read and written at least twice."""
    twice = 2 * challenge.settings.size
    for disks in DISKS:
        for name, counts in (("STXXL", _said(experiment, disks)), ("the kernel", _run(experiment, disks))):
            got = [counts.get("read"), counts.get("written")]
            assert all(isinstance(volume, int) and volume >= twice for volume in got), (
                f"{disks} disks: expected at least {twice:,} bytes read and written by {name}'s count, got {got}; "
                "see result.json"
            )


def _run(experiment: Experiment, disks: int) -> dict[str, Any]:
    result = experiment.json("result.json")
    assert isinstance(result, dict), f"expected an object in result.json, got {result!r:.200}"
    run: dict[str, Any] = result[str(disks)]
    return run


def _said(experiment: Experiment, disks: int) -> dict[str, Any]:
    line = _run(experiment, disks)["said"]
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    assert isinstance(said, dict), f"{disks} disks: expected extsort to end with a line of JSON, got {line!r:.200}"
    return said


def _assert_sorted(experiment: Experiment, challenge: SortChallenge, disks: int) -> None:
    run = _run(experiment, disks)
    assert run["status"] == 0, f"{disks} disks: expected extsort to return 0, got {run['status']}; see experiment.log"
    assert run["digest"] == challenge.digest, (
        f"{disks} disks: expected the sorted file, SHA-256 {challenge.digest}, got {run['digest']}; see result.json"
    )
