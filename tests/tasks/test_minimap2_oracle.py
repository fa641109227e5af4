"""The challenge and the oracle of minimap2_bioinf18: no machine, no aligner, alignments written by hand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.minimap2_bioinf18 import minimap2_oracle as oracle
from tasks.minimap2_bioinf18 import test_minimap2_bioinf18 as task

Line = dict[str, str]
"""Fields of a SAM line by name."""
FIELDS = (
    "name",
    "flag",
    "chromosome",
    "start",
    "quality",
    "cigar",
    "next",
    "next_start",
    "length",
    "bases",
    "phred",
    "tags",
)


def hit(cigar: str, bases: str, edits: int | None = None) -> oracle.Hit:
    """A hit at the first base of a chromosome."""
    pairs = tuple((int(length), kind) for length, kind in oracle.CIGAR.findall(cigar))
    return oracle.Hit(True, False, "chr1", 0, 60, pairs, bases.encode(), edits)


class Run:
    """An experiment as it should come out: each read aligned by what was planted, to be spoilt by a test."""

    def __init__(self, challenge: task.ReadsChallenge, outputs: Path) -> None:
        self.challenge, self.outputs = challenge, outputs
        call = f"minimap2 -ax map-ont {challenge.genome} {challenge.reads}"
        self.program = f"@PG\tID:minimap2\tPN:minimap2\tVN:2.24-r1122\tCL:{call}"
        self.lines = {name: self.line(name) for name in challenge.sample.reads}
        self.summary: dict[str, object] = {}

    def line(self, name: str) -> Line:
        sample = self.challenge.sample
        read, origin = sample.reads[name], sample.origins.get(name)
        line = dict.fromkeys(FIELDS, "*") | {"name": name, "flag": "4", "start": "0", "quality": "0", "tags": "rl:i:0"}
        if origin is None:
            return line | {"bases": read.decode()}
        bases = oracle.reverse_complement(read) if origin.reverse else read
        cigar, edits = planted_cigar(sample.chromosomes[origin.chromosome][origin.start : origin.end], bases)
        return line | {
            "flag": "16" if origin.reverse else "0",
            "chromosome": origin.chromosome,
            "start": str(origin.start + 1),
            "quality": "60" if origin.unique_bases else "1",
            "cigar": cigar,
            "bases": bases.decode(),
            "tags": f"NM:i:{edits}",
        }

    def write(self) -> None:
        (self.outputs / "out").mkdir(exist_ok=True)
        lines = ["\t".join(line[field] for field in FIELDS) for line in self.lines.values()]
        (self.outputs / "out/aln.sam").write_text("\n".join([self.program, *lines]) + "\n")
        mapped = [int(line["quality"]) for line in self.lines.values() if line["cigar"] != "*"]
        qualities = {name: sum(low <= q <= high for q in mapped) for name, (low, high) in task.RANGES.items()}
        summary = {"reads": len(self.challenge.sample.reads), "mapped": len(mapped), "qualities": qualities}
        (self.outputs / "out/summary.json").write_text(json.dumps(summary | self.summary))

    def first(self, wanted: Callable[[oracle.Origin | None], bool]) -> Line:
        """The line of the first read whose origin is as wanted."""
        origins = self.challenge.sample.origins
        return next(line for name, line in self.lines.items() if wanted(origins.get(name)))

    @property
    def experiment(self) -> Experiment:
        return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=self.outputs)


def planted_cigar(genome: bytes, bases: bytes) -> tuple[str, int]:
    """Any alignment will do whose edits are few: here the reads carry substitutions only."""
    assert len(genome) == len(bases)
    return f"{len(bases)}M", sum(a != b for a, b in zip(genome, bases, strict=True))


@pytest.fixture(scope="module")
def challenge() -> task.ReadsChallenge:
    """A drawn challenge whose reads are replaced by ones with substitutions only, so that aligning them is trivial."""
    drawn = task.draw(5)
    rng = np.random.default_rng(5)
    reads = dict(drawn.sample.reads)
    for name, origin in drawn.sample.origins.items():
        bases = bytearray(drawn.sample.chromosomes[origin.chromosome][origin.start : origin.end])
        for place in np.flatnonzero(rng.random(len(bases)) < 0.08):
            bases[place] = ord("A")
        reads[name] = oracle.reverse_complement(bytes(bases)) if origin.reverse else bytes(bases)
    return dataclasses.replace(drawn, sample=dataclasses.replace(drawn.sample, reads=reads))


@pytest.fixture
def run(challenge: task.ReadsChallenge, tmp_path: Path) -> Run:
    return Run(challenge, tmp_path)


def test_a_seed_draws_one_challenge() -> None:
    assert task.draw(8) == task.draw(8)
    assert task.draw(8).inputs != task.draw(9).inputs


def test_a_read_is_its_origin_with_errors_on_the_right_strand() -> None:
    sample = oracle.draw_sample(1, placed=20, ambiguous=5, unrelated=3)
    assert (len(sample.reads), len(sample.origins)) == (28, 25)
    for name, origin in sample.origins.items():
        genome = sample.chromosomes[origin.chromosome][origin.start : origin.end]
        read = oracle.reverse_complement(sample.reads[name]) if origin.reverse else sample.reads[name]
        # With a tenth of the bases wrong, 0.9 ** 8 = 43 % of all words of eight are kept; few are there by chance.
        kept, other = shared_words(genome, read), shared_words(genome, oracle.reverse_complement(read))
        assert kept > 0.3 > other, f"{name}: {kept:.2f} of the words are kept, {other:.2f} on the other strand"


def shared_words(genome: bytes, read: bytes) -> float:
    """Fraction of the genome's words of eight bases that the read has too."""
    words = {read[i : i + 8] for i in range(len(read) - 7)}
    return sum(genome[i : i + 8] in words for i in range(len(genome) - 7)) / (len(genome) - 7)


def test_the_repeat_has_five_equal_copies() -> None:
    sample = oracle.draw_sample(1, placed=0, ambiguous=3, unrelated=0)
    origin = next(iter(sample.origins.values()))
    word = sample.chromosomes[origin.chromosome][origin.start : origin.start + 40]
    assert sum(bases.count(word) for bases in sample.chromosomes.values()) == 5
    assert origin.unique_bases == 0


def test_reverse_complement() -> None:
    assert oracle.reverse_complement(b"AACGT") == b"ACGTT"


@pytest.mark.parametrize(
    ("cigar", "bases", "edits", "query", "end"),
    [
        ("4M", "ACGT", 0, 4, 4),
        ("4M", "ACCT", 1, 4, 4),
        ("2M1I2M", "ACTGT", 1, 5, 4),
        ("2M2D2M", "ACAC", 2, 4, 6),
        ("1S3M2H", "TACG", 0, 4, 3),
    ],
)
def test_edits_are_counted_along_the_cigar(cigar: str, bases: str, edits: int, query: int, end: int) -> None:
    one = hit(cigar, bases)
    assert (one.count_edits(b"ACGTACGT"), one.query_bases, one.end) == (edits, query, end)


def test_an_alignment_beyond_the_chromosome_has_no_edit_count() -> None:
    assert hit("4M", "ACGT").count_edits(b"ACG") == -1


def alignments_are_sam(run: Run) -> None:
    task.test_alignments_are_sam_by_this_version_on_these_files(run.experiment, run.challenge)


def every_read(run: Run) -> None:
    task.test_every_read_has_its_primary_line(run.experiment, run.challenge)


def at_their_origin(run: Run) -> None:
    task.test_reads_lie_where_they_came_from(run.experiment, run.challenge)


def base_by_base(run: Run) -> None:
    task.test_alignments_hold_base_by_base(run.experiment, run.challenge)


def unrelated_unmapped(run: Run) -> None:
    task.test_unrelated_reads_stay_unmapped(run.experiment, run.challenge)


def quality_tells(run: Run) -> None:
    task.test_errors_are_confined_to_low_mapping_quality(run.experiment, run.challenge)


def summary_agrees(run: Run) -> None:
    task.test_the_summary_agrees_with_the_alignments(run.experiment, run.challenge)


CLAIMS = (
    alignments_are_sam,
    every_read,
    at_their_origin,
    base_by_base,
    unrelated_unmapped,
    quality_tells,
    summary_agrees,
)


def test_every_claim_holds_for_a_true_run(run: Run) -> None:
    run.write()
    for claim in CLAIMS:
        claim(run)


def another_version(run: Run) -> None:
    run.program = run.program.replace("2.24", "2.26")


def another_preset(run: Run) -> None:
    run.program = run.program.replace("map-ont", "map-hifi")


def of_another_file(run: Run) -> None:
    run.program = run.program.replace(run.challenge.reads, "canned.fq")


def a_read_lost(run: Run) -> None:
    run.lines.popitem()


def bases_not_turned(run: Run) -> None:
    line = run.first(lambda origin: origin is not None and origin.reverse)
    line["bases"] = oracle.reverse_complement(line["bases"].encode()).decode()


def _placed(run: Run, lines: Iterable[Line]) -> Iterable[Line]:
    return (line for line in lines if line["name"] in run.challenge.sample.origins)


def strands_ignored(run: Run) -> None:
    for line in _placed(run, run.lines.values()):
        line["flag"] = "0"


def shifted(run: Run) -> None:
    for line in _placed(run, run.lines.values()):
        line["start"] = str(int(line["start"]) + 200)


def edits_miscounted(run: Run) -> None:
    line = run.first(lambda origin: origin is not None)
    line["tags"] = "NM:i:1"


def without_edits(run: Run) -> None:
    line = run.first(lambda origin: origin is not None)
    line["tags"] = "tp:A:P"


def cigar_too_short(run: Run) -> None:
    line = run.first(lambda origin: origin is not None)
    line["cigar"] = "100M"


def forced(run: Run) -> None:
    line = run.first(lambda origin: origin is None)
    line |= {"flag": "0", "chromosome": "chr1", "start": "1", "cigar": f"{len(line['bases'])}M"}


def sure_of_a_copy(run: Run) -> None:
    run.first(lambda origin: origin is not None and origin.unique_bases == 0)["quality"] = "25"


def misplaced_and_sure(run: Run) -> None:
    line = run.first(lambda origin: origin is not None and origin.unique_bases > 500)
    line["start"] = str(int(line["start"]) + 90)


def never_sure(run: Run) -> None:
    for line in run.lines.values():
        line["quality"] = "0"


def summary_of_another_run(run: Run) -> None:
    run.summary = {"mapped": 3}


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (another_version, alignments_are_sam),
        (another_preset, alignments_are_sam),
        (of_another_file, alignments_are_sam),
        (a_read_lost, every_read),
        (bases_not_turned, every_read),
        (strands_ignored, at_their_origin),
        (shifted, at_their_origin),
        (edits_miscounted, base_by_base),
        (without_edits, base_by_base),
        (cigar_too_short, base_by_base),
        (forced, unrelated_unmapped),
        (sure_of_a_copy, quality_tells),
        (misplaced_and_sure, quality_tells),
        (never_sure, quality_tells),
        (summary_of_another_run, summary_agrees),
    ],
)
def test_a_wrong_outcome_fails_its_claim(run: Run, spoil: Callable[[Run], None], claim: Callable[[Run], None]) -> None:
    spoil(run)
    run.write()
    with pytest.raises(AssertionError, match="expected"):
        claim(run)


def test_approximate_mapping_is_no_sam(run: Run) -> None:
    run.write()
    (run.outputs / "out/aln.sam").write_text(
        "read0001\t1889\t3\t1882\t-\tchr2\t140000\t115016\t116907\t652\t1909\t60\n"
    )
    with pytest.raises(AssertionError, match="expected 11 fields of SAM"):
        alignments_are_sam(run)


def test_a_line_of_an_unknown_read_is_refused(run: Run) -> None:
    run.lines["canned"] = run.first(lambda origin: origin is not None) | {"name": "canned"}
    run.write()
    with pytest.raises(AssertionError, match="no such read"):
        every_read(run)
