"""Minimap2, built from the given source, puts fresh noisy long reads where they came from and knows when it can't.

The genome and the reads are drawn anew with planted repeats and errors; the reads' names say nothing of their origin,
which never leaves the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.minimap2_bioinf18 import minimap2_oracle as oracle

VERSION = "2.24"
SYMBOLS = {"mm_align_skeleton", "mg_lchain_dp", "mm_sketch"}
"""Functions of minimap2: in the symbol table of a fresh build, not in a distribution's stripped program."""
TOLERANCE = 50
"""Bases by which an end may be off: alignments are clipped where errors crowd at the end of a read."""
FOUND = 0.95
"""Of the reads that reach at least 500 bases out of the repeats; 72 draws found every single one."""
DIFFERENT = 0.2
"""Reads carry 10 % errors and 72 draws gave 7 to 13 % differing bases; a wrong place gives more than 40 %."""
RANGES = {"0": (0, 0), "1-9": (1, 9), "10-29": (10, 29), "30-60": (30, 60)}


@dataclass(frozen=True)
class ReadsChallenge(Challenge):
    """The files' names and the drawn sample with the origin of each read."""

    genome: str
    reads: str
    sample: oracle.Sample


def draw(seed: int) -> ReadsChallenge:
    sample = oracle.draw_sample(seed, placed=200, ambiguous=20, unrelated=20)
    # The names are drawn too: they must come back in the line that says how minimap2 was called.
    genome, reads = f"genome-{seed % 99991:05d}.fa", f"reads-{seed % 99989:05d}.fq"
    return ReadsChallenge(
        command=f"map-reads {genome} {reads} out",
        inputs={genome: sample.fasta(), reads: sample.fastq()},
        outputs=("out/aln.sam", "out/summary.json"),
        genome=genome,
        reads=reads,
        sample=sample,
    )


def test_minimap2_was_built_from_the_given_source(server: Host, agent_run: AgentRun) -> None:
    """The `minimap2` on PATH is an ELF program of no package, newer than the hand-over, with its symbols."""
    path = evidence.program(server, "minimap2")
    assert path, "expected a command `minimap2` on PATH after env.sh, there is none"
    owner = evidence.package_owner(server, path)
    assert owner is None, f"minimap2 should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    missing = SYMBOLS - evidence.symbols(server, path)
    assert not missing, f"expected {path} to be minimap2 as an unstripped ELF program, it lacks {sorted(missing)}"


def test_alignments_are_sam_by_this_version_on_these_files(experiment: Experiment, challenge: ReadsChallenge) -> None:
    """aln.sam parses as SAM, and its @PG line names minimap2 2.24, base-level SAM, the preset and the two files."""
    program = _sam(experiment, challenge).program
    version, call = program.get("VN", ""), program.get("CL", "")
    assert version.split("-")[0] == VERSION, f"expected minimap2 {VERSION}, the @PG line says {version!r}"
    missing = [word for word in ("map-ont", challenge.genome, challenge.reads) if word not in call]
    assert not missing, f"expected minimap2 to be called with {missing}, the @PG line says {call!r}"


def test_every_read_has_its_primary_line(experiment: Experiment, challenge: ReadsChallenge) -> None:
    """No read is lost; each line carries the read's own bases, as they are or reverse-complemented."""
    hits, reads = _sam(experiment, challenge).hits, challenge.sample.reads
    assert hits.keys() == reads.keys(), f"expected {len(reads)} reads, got {len(hits)}; see aln.sam and experiment.log"
    wrong = [
        name
        for name, hit in hits.items()
        if hit.sequence != (oracle.reverse_complement(reads[name]) if hit.reverse else reads[name])
    ]
    assert not wrong, f"expected the reads' own bases, {len(wrong)} lines have others, first {wrong[:3]}; see aln.sam"


def test_reads_lie_where_they_came_from(experiment: Experiment, challenge: ReadsChallenge) -> None:
    """Of the reads with an origin that can be told, nearly all are on the right strand within a few bases of it."""
    sam = _sam(experiment, challenge)
    origins = {name: origin for name, origin in challenge.sample.origins.items() if origin.unique_bases >= 500}
    found = sum(origin.is_found_by(sam.hit(name), TOLERANCE) for name, origin in origins.items())
    assert found >= FOUND * len(origins), (
        f"expected at least {FOUND:.0%} of {len(origins)} reads within {TOLERANCE} bases of their origin, got {found}"
    )


def test_alignments_hold_base_by_base(experiment: Experiment, challenge: ReadsChallenge) -> None:
    """Walking each CIGAR over read and genome accounts for the whole read and counts the edits that NM claims."""
    hits = {name: hit for name, hit in _sam(experiment, challenge).hits.items() if hit.mapped}
    assert hits, "expected alignments, no read is mapped; see aln.sam and experiment.log"
    for name, hit in hits.items():
        read, chromosome = challenge.sample.reads[name], challenge.sample.chromosomes[hit.chromosome]
        assert hit.query_bases == len(read), f"{name}: expected a CIGAR over {len(read)} bases, got {hit.query_bases}"
        edits = hit.count_edits(chromosome)
        assert edits == hit.edits, f"{name}: expected NM:i:{edits} by its own CIGAR, got {hit.edits}; see aln.sam"
        assert edits <= DIFFERENT * hit.aligned(), (
            f"{name}: expected edits in at most {DIFFERENT:.0%} of {hit.aligned()} aligned bases, got {edits}"
        )


def test_unrelated_reads_stay_unmapped(experiment: Experiment, challenge: ReadsChallenge) -> None:
    """Random sequence is not forced onto the genome."""
    sam = _sam(experiment, challenge)
    mapped = [name for name in challenge.sample.reads.keys() - challenge.sample.origins if sam.hit(name).mapped]
    assert not mapped, f"expected random reads to stay unmapped, got {mapped}; see aln.sam"


def test_errors_are_confined_to_low_mapping_quality(experiment: Experiment, challenge: ReadsChallenge) -> None:
    """The paper's figure in small: none of quality >= 30 is misplaced; reads from within a repeat get less than 10."""
    sam, origins = _sam(experiment, challenge), challenge.sample.origins
    sure = {name for name, hit in sam.hits.items() if hit.mapped and hit.quality >= 30}
    misplaced = [name for name in sure & origins.keys() if not origins[name].is_found_by(sam.hit(name), TOLERANCE)]
    assert not misplaced, f"expected every read of quality >= 30 at its origin, {misplaced} are not; see aln.sam"
    ambiguous = {name for name, origin in origins.items() if origin.unique_bases == 0}
    bold = sorted(name for name in ambiguous if sam.hit(name).mapped and sam.hit(name).quality >= 10)
    assert not bold, f"expected a quality below 10 for reads from five equal places, {bold} got more; see aln.sam"
    assert len(sure) >= len(origins) / 2, f"expected most reads to be placed with quality >= 30, got {len(sure)}"


def test_the_summary_agrees_with_the_alignments(experiment: Experiment, challenge: ReadsChallenge) -> None:
    """summary.json counts reads, mapped reads and mapping qualities as aln.sam has them."""
    hits = _sam(experiment, challenge).hits.values()
    qualities = [hit.quality for hit in hits if hit.mapped]
    expected = {
        "reads": len(challenge.sample.reads),
        "mapped": len(qualities),
        "qualities": {name: sum(low <= q <= high for q in qualities) for name, (low, high) in RANGES.items()},
    }
    got = experiment.json("out/summary.json")
    assert got == expected, f"expected {expected} as aln.sam has it, got {got}"


def _sam(experiment: Experiment, challenge: ReadsChallenge) -> oracle.Sam:
    return oracle.read_sam(experiment.text("out/aln.sam"), challenge.sample)
