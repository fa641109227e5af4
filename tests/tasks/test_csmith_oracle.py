"""The challenge and the oracle of csmith_pldi11: no machine, no generator, small cases solved by hand."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.csmith_pldi11 import csmith_oracle as oracle
from tasks.csmith_pldi11 import test_csmith_pldi11 as task

PROGRAM = """/*
 * This is a RANDOMLY GENERATED PROGRAM.
 *
 * Generator: csmith 2.3.0
 * Options:   {options} --seed {seed}
 * Seed:      {seed}
 */
#include <stdio.h>
int main (void)
{{
    unsigned long crc32_context = 0xFEDCBA98UL;
    printf("checksum = %lX\\n", crc32_context ^ 0xFFFFFFFFUL);
    return 0;
}}
"""
"""In the form of Csmith's."""
RIGHT = "1234567"
"""What it prints."""


@pytest.fixture(scope="module")
def challenge() -> task.CampaignChallenge:
    return task.draw(3)


def program(challenge: task.CampaignChallenge, seed: int) -> str:
    return PROGRAM.format(options=" ".join(challenge.campaign.options), seed=seed)


def left(folder: Path, challenge: task.CampaignChallenge, programs: Any, **wrong: str) -> Experiment:
    """An experiment that left this campaign; `wrong` replaces programs, as `p17="..."`."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out/campaign.json").write_text(json.dumps({"programs": programs}))
    campaign = challenge.campaign
    kept = {}
    for seed, plants in zip(campaign.seeds, campaign.plants, strict=True):
        (folder / f"out/{seed}.c").write_text(wrong.get(f"p{seed}", program(challenge, seed)))
        for compiler in oracle.ODD:
            if campaign.compilers.index(compiler) not in plants:
                kept[f"{seed}-{compiler.split()[0][2:]}"] = RIGHT
    generated = {str(seed): program(challenge, seed) for seed in campaign.seeds}
    (folder / "result.json").write_text(json.dumps({"status": 0, "generated": generated, "kept": kept}))
    return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=folder)


def right(challenge: task.CampaignChallenge) -> list[dict[str, Any]]:
    """The report of a campaign that does everything well."""
    campaign, programs = challenge.campaign, []
    for seed, plants in zip(campaign.seeds, campaign.plants, strict=True):
        results = [RIGHT] * len(campaign.compilers)
        for place, plant in plants.items():
            results[place] = "89ABCDEF" if plant == oracle.WRONG else plant
        suspects = None if 2 * len(plants) >= len(results) else sorted(plants)
        programs.append({"seed": seed, "results": results, "suspects": suspects})
    return programs


def number_with(challenge: task.CampaignChallenge, *plants: str) -> int:
    """Which program has exactly these plants."""
    return next(i for i, planted in enumerate(challenge.campaign.plants) if sorted(planted.values()) == sorted(plants))


@pytest.mark.parametrize(
    ("results", "suspects"),
    [
        (["A", "A", "A", "A"], []),
        (["A", "timeout", "A", "A"], [1]),
        (["B", "A", "A", "A", "failed"], [0, 4]),
        (["A", "A", "B", "failed"], None),
        (["A", "A", "B", "B"], None),
        (["failed"] * 3, []),
    ],
)
def test_suspects_by_hand(results: list[str], suspects: list[int] | None) -> None:
    assert oracle.suspects(results) == suspects


def test_plants_by_hand() -> None:
    compilers = ["gcc -O0", oracle.ODD[1], oracle.HONEST[1], oracle.ODD[0]]
    campaign = oracle.Campaign([1, 2, 3], compilers, [], [{}, {1: "failed"}, {1: "failed", 3: oracle.WRONG}])
    assert campaign.honest == [0, 2]
    assert campaign.planted(oracle.ODD[1]) == {"2": "failed", "3": "failed"}


@pytest.mark.parametrize(
    ("result", "it_is"), [("1234567", True), ("0", True), ("", False), ("failed", False), (7, False)]
)
def test_checksums(result: object, it_is: bool) -> None:
    assert oracle.is_checksum(result) is it_is


def test_a_seed_draws_one_challenge_and_another_seed_another() -> None:
    assert task.draw(5) == task.draw(5)
    assert task.draw(5).campaign.seeds != task.draw(6).campaign.seeds
    assert {tuple(task.draw(seed).campaign.compilers) for seed in range(9)} > {tuple(task.draw(0).campaign.compilers)}


def test_a_right_campaign_passes(tmp_path: Path, challenge: task.CampaignChallenge) -> None:
    good = left(tmp_path, challenge, right(challenge))
    task.test_programs_are_those_of_their_seeds(good, challenge)
    task.test_honest_compilers_agree_on_every_program(good, challenge)
    task.test_reported_checksums_are_those_of_the_programs(good, challenge)
    task.test_planted_bugs_are_reported(good, challenge)
    task.test_the_vote_suspects_the_right_compilers(good, challenge)


def test_a_program_that_never_ends_is_nobodys_fault(tmp_path: Path, challenge: task.CampaignChallenge) -> None:
    """It runs for ever with the wrong compiler, too."""
    programs = right(challenge)
    programs[number_with(challenge, oracle.WRONG)].update(results=["timeout"] * 4, suspects=[])
    good = left(tmp_path, challenge, programs)
    task.test_honest_compilers_agree_on_every_program(good, challenge)
    task.test_planted_bugs_are_reported(good, challenge)
    task.test_the_vote_suspects_the_right_compilers(good, challenge)


def test_a_campaign_that_gave_up_fails(tmp_path: Path, challenge: task.CampaignChallenge) -> None:
    experiment = left(tmp_path, challenge, right(challenge))
    result = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**result, "status": 2}))
    with pytest.raises(AssertionError, match="csmith-campaign: expected exit status 0, got 2"):
        task.test_planted_bugs_are_reported(experiment, challenge)


Change = Callable[[task.CampaignChallenge, list[dict[str, Any]]], None]


def honest_disagree(challenge: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    programs[0]["results"][challenge.campaign.honest[1]] = "0"


def nothing_compiles(_: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    for report in programs:
        report.update(results=["compile error"] * 4, suspects=[])


def nothing_ends(_: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    for report in programs:
        report["results"] = ["timeout"] * 4


def nobody_accused(challenge: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    programs[number_with(challenge, "failed")]["suspects"] = []


def invented_checksums(challenge: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    programs[number_with(challenge)]["results"] = ["ABC"] * 4


def bug_overlooked(challenge: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    programs[number_with(challenge, oracle.WRONG)]["results"] = [RIGHT] * 4


def crash_misnamed(challenge: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    report = programs[number_with(challenge, "failed")]
    report["results"] = ["timeout" if result == "failed" else result for result in report["results"]]


def everybody_accused(challenge: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    programs[number_with(challenge, oracle.WRONG, "failed")]["suspects"] = [0, 1, 2, 3]


def seed_left_out(_: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    del programs[2]


def no_strings(_: task.CampaignChallenge, programs: list[dict[str, Any]]) -> None:
    programs[0]["results"] = [None] * 4


@pytest.mark.parametrize(
    ("change", "check", "complaint"),
    [
        (honest_disagree, task.test_honest_compilers_agree_on_every_program, "expected one result of all compilers"),
        (
            nothing_compiles,
            task.test_honest_compilers_agree_on_every_program,
            "expected programs that run",
        ),
        (nothing_compiles, task.test_planted_bugs_are_reported, "expected the result '.*', got 'compile error'"),
        (nothing_ends, task.test_honest_compilers_agree_on_every_program, "end with a checksum, 0 did"),
        (nobody_accused, task.test_the_vote_suspects_the_right_compilers, r"expected suspects \[\d\] by .* got \[\]"),
        (invented_checksums, task.test_reported_checksums_are_those_of_the_programs, "reported is 'ABC'"),
        (bug_overlooked, task.test_planted_bugs_are_reported, f"expected another checksum than {RIGHT}"),
        (crash_misnamed, task.test_planted_bugs_are_reported, "expected the result 'failed', got 'timeout'"),
        (everybody_accused, task.test_the_vote_suspects_the_right_compilers, "expected suspects None by the vote"),
        (seed_left_out, task.test_planted_bugs_are_reported, "expected the seeds"),
        (no_strings, task.test_planted_bugs_are_reported, "expected strings as results"),
    ],
)
def test_each_wrong_campaign_fails(
    tmp_path: Path, challenge: task.CampaignChallenge, change: Change, check: Callable[..., None], complaint: str
) -> None:
    programs = right(challenge)
    change(challenge, programs)
    fixtures = {"experiment": left(tmp_path, challenge, programs), "challenge": challenge}
    with pytest.raises(AssertionError, match=complaint):
        check(**{name: fixtures[name] for name in inspect.signature(check).parameters})


def test_programs_of_another_seed_or_with_other_options_fail(tmp_path: Path, challenge: task.CampaignChallenge) -> None:
    seed = challenge.campaign.seeds[1]
    other = {f"p{seed}": program(challenge, seed).replace("--no-jumps ", "")}
    with pytest.raises(AssertionError, match=f"out/{seed}.c: expected these lines in its head"):
        task.test_programs_are_those_of_their_seeds(left(tmp_path, challenge, right(challenge), **other), challenge)
    other = {f"p{seed}": program(challenge, seed) + "int more;\n"}
    with pytest.raises(AssertionError, match=f"out/{seed}.c: expected the program that csmith writes"):
        task.test_programs_are_those_of_their_seeds(left(tmp_path, challenge, right(challenge), **other), challenge)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
@pytest.mark.parametrize("plant", [None, oracle.WRONG, "failed", "compile error"])
def test_an_odd_compiler_does_what_is_planted(
    tmp_path: Path, challenge: task.CampaignChallenge, plant: str | None
) -> None:
    compiler, source = tmp_path / "first-cc", tmp_path / "17.c"
    compiler.write_bytes(challenge.inputs["first-cc"])
    compiler.chmod(0o755)
    (tmp_path / "kept").mkdir()
    (tmp_path / "plants.json").write_text(json.dumps({"first-cc": {"17": plant} if plant else {}}))
    source.write_text(program(challenge, 17))
    made = subprocess.run([compiler, "-O1", "-w", "-o", tmp_path / "program", source], check=False)
    assert (made.returncode == 0) == (plant != "compile error")
    assert (tmp_path / "kept/17-first-cc").is_file() == (plant is None)
    if made.returncode == 0:
        run = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False)
        printed = {None: f"checksum = {RIGHT}\n", oracle.WRONG: "checksum = FEDCBA98\n", "failed": ""}[plant]
        assert (run.stdout, run.returncode) == (printed, 3 if plant == "failed" else 0)
