"""HTSeq 0.6.1p1, built from the given source for Python 3, counts fresh reads per gene as its paper's rules say.

Genes that overlap each other, and spliced, clipped, repeated, badly aligned and unpaired reads, are drawn anew. The
host counts them base by base on a small genome: no interval, step vector or other code of HTSeq has part in the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.htseq_bioinf15 import htseq_oracle as oracle

VERSION = "0.6.1p1"
MODULES = ("_HTSeq", "_StepVector")
LATER = b"from_pysam_AlignedSegment"
"""A method that HTSeq's compiled module has since 0.7; a build of this source cannot hold its name."""


@dataclass(frozen=True)
class CountChallenge(Challenge):
    """Genes and alignments, of which the machine gets the files."""

    study: oracle.Study


def draw(seed: int) -> CountChallenge:
    study = oracle.draw_study(seed)
    return CountChallenge(
        command="python3 htseq_experiment.py",
        inputs={"htseq_experiment.py": oracle.driver(), **study.files},
        outputs=("result.json",),
        study=study,
    )


def finished(experiment: Experiment, run: oracle.Run) -> dict[str, Any]:
    """What a run of htseq-count left.

    Raises:
        AssertionError: it did not come to its end.
    """
    left: dict[str, Any] = experiment.json("result.json")["runs"][run.name]
    assert left["status"] == "0", (
        f"htseq-count on {run.name} ended with status {left['status']}; experiment.log says why"
    )
    return left


def test_both_compiled_modules_were_built_here(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """The experiment's process mapped one _HTSeq and one _StepVector, newer than the hand-over and of no package."""
    mapped = experiment.json("result.json")["mapped"]
    for name in MODULES:
        assert len(mapped[name]) == 1, f"expected one {name} in the process, got {mapped[name]}; see experiment.log"
        path = mapped[name][0]
        owner = evidence.package_owner(server, path)
        assert owner is None, f"{name} should be built here, but {path} is of the package {owner}"
        assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
        assert f"PyInit_{name}" in evidence.symbols(server, path), f"{path} is no module {name} for Python 3"


def test_it_is_the_version_of_the_paper(server: Host, experiment: Experiment) -> None:
    """It says that it is 0.6.1p1, and knows nothing that later versions brought."""
    result = experiment.json("result.json")
    assert result["version"] == VERSION, f"expected HTSeq {VERSION}, got {result['version']}; see experiment.log"
    assert not result["reads_modern_cigar"], "HTSeq 0.6.1p1 refuses the CIGAR operations = and X, this one reads them"
    for path in result["mapped"]["_HTSeq"]:
        assert not evidence.contains(server, path, LATER), f"{path} comes from a later HTSeq: it has {LATER.decode()}"


def test_single_reads_are_counted_in_every_mode(experiment: Experiment, challenge: CountChallenge) -> None:
    """Three modes by three protocols: each table of counts, special counters included, is right to the last line."""
    check_tables(experiment, challenge, "singles.sam")


def test_pairs_are_counted_in_both_orders(experiment: Experiment, challenge: CountChallenge) -> None:
    """Sorted by name or by position, some mates missing or not aligned: each table is right to the last line."""
    check_tables(experiment, challenge, "by-name.sam", "by-position.sam")


def check_tables(experiment: Experiment, challenge: CountChallenge, *files: str) -> None:
    for run in (run for run in challenge.study.runs if run.file in files):
        expected = oracle.table(challenge.study, run).splitlines()
        got = str(finished(experiment, run)["table"]).splitlines()
        differ = sorted(set(expected) ^ set(got))
        assert got == expected, (
            f"htseq-count on {run.name}: {differ[:4]} are not both expected and found; see result.json"
        )


def test_each_read_is_assigned_to_its_gene(experiment: Experiment, challenge: CountChallenge) -> None:
    """The alignments written by -o, each of the input's, carry the gene or special counter that the rules give them."""
    for run in challenge.study.runs:
        expected = oracle.assignments(challenge.study, run)
        records = sorted(
            (fragment.name, flag) for fragment in challenge.study.fragments(run) for flag in fragment.mates
        )
        assigned = finished(experiment, run)["assigned"]
        got = sorted((name, flag & 0xC0) for name, flag, _ in assigned)
        assert got == records, f"-o on {run.name}: expected {len(records)} alignments, got {len(got)} or others"
        wrong = [(name, tag) for name, _, tag in assigned if oracle.in_order(tag) != expected[name]]
        assert not wrong, (
            f"-o on {run.name}: {len(wrong)} alignments are assigned wrongly, {wrong[0][0]} to {wrong[0][1]} "
            f"instead of {expected[wrong[0][0]]}; see result.json"
        )


def test_coverage_is_read_back_in_steps(experiment: Experiment, challenge: CountChallenge) -> None:
    """The step vectors hold, for each chromosome and strand, the coverage counted base by base."""
    got = sorted(experiment.json("result.json")["coverage"])
    expected = sorted(oracle.coverage_steps(challenge.study.singles))
    differ = [step for step in got if step not in expected] or [step for step in expected if step not in got]
    assert got == expected, f"expected {len(expected)} steps of coverage, got {len(got)}; {differ[:1]} differs"
