"""Csmith, built from the given source, writes programs of one meaning, and its campaign finds planted bugs.

Seeds, options and compilers are drawn anew. Two of the compilers miscompile certain programs on purpose; the host knows
which, and whom a vote over the results must therefore suspect.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.csmith_pldi11 import csmith_oracle as oracle

GENERATOR = "csmith 2.3.0"
SYMBOLS = {"_ZN9CGContextD1Ev", "_ZN9CGOptions9max_funcsEv", "_ZN7FactMgrD1Ev"}
"""Functions of Csmith's classes, named in an unstripped program only."""

FINISHED = 2
"""Of the six programs. About one in ten runs for ever, whoever compiled it."""


@dataclass(frozen=True)
class CampaignChallenge(Challenge):
    """The campaign with its plants."""

    campaign: oracle.Campaign


def draw(seed: int) -> CampaignChallenge:
    campaign = oracle.draw_campaign(random.Random(seed))
    plants = {compiler.split()[0][2:]: campaign.planted(compiler) for compiler in oracle.ODD}
    return CampaignChallenge(
        command="python3 csmith_experiment.py",
        inputs={
            "csmith_experiment.py": oracle.material("csmith_experiment.py"),
            "challenge.json": json.dumps({"seeds": campaign.seeds, "options": campaign.options}).encode(),
            "compilers.txt": "".join(f"{compiler}\n" for compiler in campaign.compilers).encode(),
            "plants.json": json.dumps(plants).encode(),
            **dict.fromkeys(plants, oracle.material("odd_cc.py")),
        },
        outputs=("result.json", "out/campaign.json", *(f"out/{seed}.c" for seed in campaign.seeds)),
        campaign=campaign,
    )


def test_csmith_was_built_from_the_given_source(server: Host, agent_run: AgentRun) -> None:
    """The `csmith` on the agent's PATH is an ELF program of no package, newer than the hand-over, and is 2.3.0."""
    path = evidence.program(server, "csmith")
    assert path, "expected a command `csmith` on PATH after env.sh, there is none"
    owner = evidence.package_owner(server, path)
    assert owner is None, f"csmith should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    missing = SYMBOLS - evidence.symbols(server, path)
    assert not missing, f"expected {path} to be Csmith as an unstripped ELF program, it lacks {sorted(missing)}"
    assert evidence.contains(server, path, GENERATOR.encode()), f"expected {path} to be {GENERATOR}"


def test_programs_are_those_of_their_seeds(experiment: Experiment, challenge: CampaignChallenge) -> None:
    """Each program is what csmith writes for this seed with these options, to the last byte."""
    generated = _result(experiment).get("generated")
    assert isinstance(generated, dict), f"expected programs in result.json, got {generated!r:.200}"
    campaign = challenge.campaign
    for seed in campaign.seeds:
        program, expected = experiment.text(f"out/{seed}.c"), generated.get(str(seed))
        assert expected, f"csmith {' '.join(campaign.options)} --seed {seed}: expected a program; see experiment.log"
        head = [f" * Generator: {GENERATOR}", f" * Options:   {' '.join(campaign.options)} --seed {seed}"]
        missing = [line for line in head if line not in program.splitlines()]
        assert not missing, f"out/{seed}.c: expected these lines in its head: {missing}, it begins {program[:200]!r}"
        assert program == expected, f"out/{seed}.c: expected the program that csmith writes for this seed, it differs"


def test_honest_compilers_agree_on_every_program(experiment: Experiment, challenge: CampaignChallenge) -> None:
    """The paper's claim: a program has one meaning, whatever the optimisation, and meets no undefined behaviour."""
    campaign, finished = challenge.campaign, 0
    for seed, results in zip(campaign.seeds, _results(experiment, campaign), strict=True):
        got = {campaign.compilers[place]: results[place] for place in campaign.honest}
        (first, *others) = got.values()
        assert others == [first] * len(others), f"{seed}: expected one result of all compilers without bugs, got {got}"
        assert oracle.is_checksum(first) or first == "timeout", f"{seed}: expected programs that run, got {got}"
        finished += oracle.is_checksum(first)
    assert finished >= FINISHED, f"expected {FINISHED} programs or more to end with a checksum, {finished} did"


def test_reported_checksums_are_those_of_the_programs(experiment: Experiment, challenge: CampaignChallenge) -> None:
    """Programs that the odd compilers made without a bug print, run once more, what the campaign reported."""
    campaign, kept = challenge.campaign, _result(experiment).get("kept")
    for number, results in enumerate(_results(experiment, campaign)):
        for place in set(range(len(campaign.compilers))) - {*campaign.honest, *campaign.plants[number]}:
            name = f"{campaign.seeds[number]}-{campaign.compilers[place].split()[0][2:]}"
            expected = kept.get(name) if isinstance(kept, dict) else None
            assert expected, f"{name}: expected the campaign to have compiled this program, it did not; see result.json"
            assert results[place] == expected, (
                f"{name}: expected the checksum {expected}, reported is {results[place]!r}"
            )


def test_planted_bugs_are_reported(experiment: Experiment, challenge: CampaignChallenge) -> None:
    """Where a compiler or its program fails, hangs or is wrong, the campaign says so."""
    campaign = challenge.campaign
    for number, results in enumerate(_results(experiment, campaign)):
        right = results[campaign.honest[0]]
        for place, plant in campaign.plants[number].items():
            said, got = f"{campaign.seeds[number]} by {campaign.compilers[place]}", results[place]
            if plant == oracle.WRONG and oracle.is_checksum(right):
                assert oracle.is_checksum(got), f"{said}: expected a checksum, though a wrong one, got {got!r}"
                assert got != right, f"{said}: expected another checksum than {right}, which the others got"
            else:
                expected = right if plant == oracle.WRONG else plant  # a program that never ends prints nothing wrong
                assert got == expected, f"{said}: expected the result {expected!r}, got {got!r}; see out/campaign.json"


def test_the_vote_suspects_the_right_compilers(experiment: Experiment, challenge: CampaignChallenge) -> None:
    """Suspects are those in the minority; where no result has a majority, nobody is accused."""
    campaign = challenge.campaign
    for seed, results, program in zip(
        campaign.seeds, _results(experiment, campaign), _programs(experiment), strict=True
    ):
        expected, got = oracle.suspects(results), program.get("suspects")
        assert got == expected, (
            f"{seed}: expected suspects {expected} by the vote, got {got}; the results are {results}"
        )


def _result(experiment: Experiment) -> dict[str, Any]:
    result = experiment.json("result.json")
    assert isinstance(result, dict), f"expected an object in result.json, got {result!r:.200}"
    return result


def _programs(experiment: Experiment) -> list[dict[str, Any]]:
    status = _result(experiment).get("status")
    assert status == 0, f"csmith-campaign: expected exit status 0, got {status}; see experiment.log"
    campaign = experiment.json("out/campaign.json")
    programs = campaign.get("programs") if isinstance(campaign, dict) else None
    assert isinstance(programs, list), f"out/campaign.json: expected a list 'programs', got {campaign!r:.200}"
    strange = [program for program in programs if not isinstance(program, dict)]
    assert not strange, f"out/campaign.json: expected objects in 'programs', got {strange!r:.200}"
    return programs


def _results(experiment: Experiment, campaign: oracle.Campaign) -> list[list[str]]:
    """The results of each program by compiler."""
    programs = _programs(experiment)
    got = [program.get("seed") for program in programs]
    assert got == campaign.seeds, f"out/campaign.json: expected the seeds {campaign.seeds}, got {got}"
    for program in programs:
        results, count = program.get("results"), len(campaign.compilers)
        assert isinstance(results, list), f"{program['seed']}: expected a list of results, got {results!r:.200}"
        assert len(results) == count, f"{program['seed']}: expected {count} results, one by compiler, got {results}"
        assert all(isinstance(result, str) for result in results), f"expected strings as results, got {results}"
    return [program["results"] for program in programs]
