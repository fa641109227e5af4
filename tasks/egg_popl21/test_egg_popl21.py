"""Egg, built from the given source, proves and refutes fresh equations by equality saturation, and shows its proofs.

The program is the experimenter's: compiled on the machine by cargo, which says itself what it linked. Proofs are
followed step by step on the host.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.egg_popl21 import egg_oracle as oracle

VERSION = "0.9.5"
SOURCE = "/home/agent/artifact/src/lib.rs"


@dataclass(frozen=True)
class EggChallenge(Challenge):
    """The terms with what is true of them."""

    terms: oracle.Terms
    seed: int


def draw(seed: int) -> EggChallenge:
    terms = oracle.draw_terms(seed)
    return EggChallenge(
        command=(
            "cargo build --release --offline --message-format=json-render-diagnostics > build.json && "
            '$(sed -n \'s/.*"executable":"\\([^"]*\\)".*/\\1/p\' build.json)'
        ),
        inputs={**oracle.program(), "challenge.txt": terms.as_input()},
        outputs=("build.json", "report.json"),
        terms=terms,
        seed=seed,
    )


def linked(experiment: Experiment) -> list[dict[str, Any]]:
    """What cargo says of each library named egg that it compiled or had compiled."""
    try:
        messages = [json.loads(line) for line in experiment.text("build.json").splitlines()]
    except (ValueError, RecursionError) as error:
        raise AssertionError(f"build.json: expected messages of cargo: {error}") from None
    told = [message for message in messages if isinstance(message, dict) and isinstance(message.get("target"), dict)]
    return [message for message in told if message["target"].get("name") == "egg"]


def answers(experiment: Experiment, key: str, count: int) -> list[dict[str, Any]]:
    """As many answers as questions were asked."""
    report = experiment.json("report.json")
    found = report.get(key) if isinstance(report, dict) else None
    good = isinstance(found, list) and [type(each) for each in found] == [dict] * count
    assert good, f"report.json: expected {count} answers in {key!r}, got {str(found)[:200]}; see experiment.log"
    return list(found or [])


def test_the_library_was_built_from_the_given_source(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """The one egg that cargo linked is 0.9.5, compiled from ~/artifact after the hand-over."""
    eggs = linked(experiment)
    assert len(eggs) == 1, f"expected one library egg to be linked, cargo tells of {len(eggs)}; see build.json"
    source, package = eggs[0]["target"].get("src_path"), str(eggs[0].get("package_id"))
    assert source == SOURCE, f"expected egg to be compiled from {SOURCE}, cargo took {source}"
    assert VERSION in package, f"expected egg {VERSION}, cargo compiled {package}"
    files = eggs[0].get("filenames")
    assert files, f"expected cargo to name the compiled library, got {files!r}; see build.json"
    for file in files:
        assert evidence.changed_after_handover(server, str(file), agent_run), f"{file} is older than the hand-over"


def test_every_equation_that_holds_is_proved_step_by_step(experiment: Experiment, challenge: EggChallenge) -> None:
    """The proof leads from the left term to the right, and each step applies the rule that it names."""
    terms = challenge.terms
    found = answers(experiment, "proofs", len(terms.pairs))[::2]
    for (left, right), answer in zip(terms.equal, found, strict=True):
        proof = answer.get("proof")
        wrong = oracle.proof_error(left, right, proof if isinstance(proof, list) else [])
        assert not wrong, f"report.json: the proof of {oracle.text(left)} = {oracle.text(right)}: {wrong}"


def test_no_equation_that_fails_is_proved(experiment: Experiment, challenge: EggChallenge) -> None:
    """Terms that some numbers tell apart are searched for a while, and no proof is found."""
    terms = challenge.terms
    found = answers(experiment, "proofs", len(terms.pairs))[1::2]
    for (left, right), answer in zip(terms.unequal, found, strict=True):
        claim = f"{oracle.text(left)} = {oracle.text(right)}"
        assert answer.get("proof") == [], f"report.json: {claim} is false, but was proved: {answer.get('proof')}"


def test_simplified_terms_are_equal_and_small(experiment: Experiment, challenge: EggChallenge) -> None:
    """Extraction finds a term of the same value, no larger than the one that was blown up."""
    bloated = challenge.terms.bloated
    found = answers(experiment, "simplified", len(bloated))
    for (term, least), answer in zip(bloated, found, strict=True):
        simple = oracle.parse(str(answer.get("term")))
        claim = f"report.json: {oracle.text(term)} was simplified to {oracle.text(simple)[:200]}"
        assert oracle.same(term, simple, random.Random(challenge.seed)), f"{claim}, which is not equal"
        assert oracle.size(simple) <= least, f"{claim}, of size {oracle.size(simple)}; there is one of size {least}"
